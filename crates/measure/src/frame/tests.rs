use std::net::IpAddr;

use proptest::prelude::*;
use wire::build::Link;
use wire::checksum::Sum;
use wire::vlan::VlanId;
use wire::{MacAddr, ethernet, ipv4, ipv6, tcp};

use super::*;

fn stream(ipv6: bool, transport: Transport, vlan: Option<u16>, vary: Vary) -> Stream {
    let address = |four: &str, six: &str| -> IpAddr {
        if ipv6 { six.parse().unwrap() } else { four.parse().unwrap() }
    };
    Stream {
        link: Link {
            destination: MacAddr::new([2, 0, 0, 0, 0, 1]),
            source: MacAddr::new([2, 0, 0, 0, 0, 2]),
            vlan: vlan.map(|id| VlanId::new(id).unwrap()),
        },
        source: address("198.18.0.2", "2001:2::2"),
        destination: address("198.19.0.2", "2001:2:0:8000::2"),
        ports: [49184, 49185],
        transport,
        vary,
    }
}

fn any_stream() -> impl Strategy<Value = Stream> {
    (
        any::<bool>(),
        prop_oneof![Just(Transport::Udp), Just(Transport::Tcp)],
        proptest::option::of(1..4095_u16),
        prop_oneof![Just(Vary::Destination), Just(Vary::Source), Just(Vary::Ports)],
    )
        .prop_map(|(ipv6, transport, vlan, vary)| stream(ipv6, transport, vlan, vary))
}

fn any_signature() -> impl Strategy<Value = Signature> {
    (any::<u16>(), any::<u8>(), 0..Signature::SEQUENCES, 0..Signature::TIMES)
        .prop_map(|(trial, stream, sequence, sent)| Signature { trial, stream, sequence, sent })
}

fn frame(stream: &Stream, size: u16, flow: u32, signature: &Signature) -> Vec<u8> {
    let template = Template::new(stream, size).unwrap();
    let mut frame = vec![0; template.length()];
    assert!(template.write(&mut frame, flow, signature));
    frame
}

fn reader(stream: &Stream) -> Reader {
    Reader::new(stream, stream.link.vlan.is_some())
}

const SIGNATURE: Signature =
    Signature { trial: 7, stream: 1, sequence: 123_456, sent: 987_654_321 };

#[test]
fn the_smallest_frames_are_those_of_ethernet_where_headers_leave_room() {
    let least =
        |ipv6, transport, vlan| stream(ipv6, transport, vlan, Vary::Destination).layout().least();
    assert_eq!(least(false, Transport::Udp, None), 64);
    assert_eq!(least(false, Transport::Tcp, None), 64);
    assert_eq!(least(false, Transport::Udp, Some(5)), 68);
    assert_eq!(least(true, Transport::Udp, None), 84);
    assert_eq!(least(true, Transport::Tcp, None), 84);
    let short = Template::new(&stream(true, Transport::Udp, None, Vary::Ports), 64).unwrap_err();
    assert_eq!(short, FrameError::Short { size: 64, least: 84 });
    assert!(short.to_string().contains("84 or more"), "{short}");
    let long = Template::new(&stream(true, Transport::Udp, None, Vary::Ports), 9217).unwrap_err();
    assert!(long.to_string().contains("9216 or fewer"), "{long}");
}

#[test]
fn flows_differ_where_they_should() {
    for (vary, source, destination, ports) in [
        (Vary::Destination, "198.18.0.2", "198.20.0.1", [49184, 49185]),
        (Vary::Source, "198.19.0.1", "198.19.0.2", [49184, 49185]),
        (Vary::Ports, "198.18.0.2", "198.19.0.2", [49184, 49184]),
    ] {
        let stream = stream(false, Transport::Udp, None, vary);
        // 65535: in the low half it carries into the high one.
        let frame = frame(&stream, 64, 65_535, &SIGNATURE);
        let header = ipv4::Header::parse(&frame[14..]).unwrap();
        assert_eq!(header.source(), source.parse::<std::net::Ipv4Addr>().unwrap());
        assert_eq!(header.destination(), destination.parse::<std::net::Ipv4Addr>().unwrap());
        let [a, b, c, d] = *frame[34..].first_chunk().unwrap();
        let expected = match vary {
            // 49184:49185 and 65,535 flows on: one more on the left, one fewer on the right.
            Vary::Ports => [49185, 49184],
            _ => ports,
        };
        assert_eq!([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])], expected);
    }
}

#[test]
fn a_router_may_change_what_routers_change() {
    let stream = stream(false, Transport::Udp, None, Vary::Destination);
    let mut frame = frame(&stream, 128, 3, &SIGNATURE);
    frame[..12].fill(0x42);
    frame[22] -= 1;
    let checksum = u16::from_be_bytes([frame[24], frame[25]]);
    let checksum = wire::checksum::update_u16(checksum, 64 << 8 | 17, 63 << 8 | 17);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(reader(&stream).read(&frame), Arrival::Intact(SIGNATURE));
    // And padding may follow.
    frame.extend([0; 6]);
    assert_eq!(reader(&stream).read(&frame), Arrival::Intact(SIGNATURE));
}

#[test]
fn a_tag_that_comes_or_goes_is_no_damage() {
    let tagged = stream(false, Transport::Udp, Some(9), Vary::Destination);
    let frame = frame(&tagged, 68, 3, &SIGNATURE);
    let bare = [&frame[..12], &frame[16..]].concat();
    assert_eq!(Reader::new(&tagged, false).read(&bare), Arrival::Intact(SIGNATURE));
    assert_eq!(Reader::new(&tagged, true).read(&frame), Arrival::Intact(SIGNATURE));
}

#[test]
fn what_devices_say_by_themselves_is_foreign() {
    let stream = stream(false, Transport::Udp, None, Vary::Destination);
    let reader = reader(&stream);
    let mut arp = frame(&stream, 64, 0, &SIGNATURE);
    arp[12..14].copy_from_slice(&[8, 6]);
    arp[42..].fill(0);
    assert_eq!(reader.read(&arp), Arrival::Foreign);
    // Somebody else's datagram.
    let mut other = frame(&stream, 64, 0, &SIGNATURE);
    other[36..38].copy_from_slice(&53_u16.to_be_bytes());
    other[42..].fill(0);
    assert_eq!(reader.read(&other), Arrival::Foreign);
    assert_eq!(reader.read(&[]), Arrival::Foreign);
}

#[test]
fn signatures_hold_what_they_say_they_hold() {
    let most = Signature {
        trial: u16::MAX,
        stream: u8::MAX,
        sequence: Signature::SEQUENCES - 1,
        sent: Signature::TIMES - 1,
    };
    assert_eq!(Signature::read(&most.bytes()), Some(most));
    let beyond =
        Signature { sequence: Signature::SEQUENCES + 5, sent: Signature::TIMES + 6, ..most };
    let low = Signature { sequence: 5, sent: 6, ..most };
    assert_eq!(Signature::read(&beyond.bytes()), Some(low));
    assert_eq!(Signature::read(&[0; Signature::LENGTH]), None);
}

proptest! {
    #[test]
    fn frames_are_valid_packets_and_are_recognized(
        stream in any_stream(), more in 0..9000_u16, flow: u32, signature in any_signature(),
    ) {
        let size = (stream.layout().least() + more).min(LONGEST);
        let frame = frame(&stream, size, flow, &signature);
        prop_assert_eq!(frame.len(), usize::from(size - CHECK_SEQUENCE));
        let (link, rest) = ethernet::Header::parse(&frame).unwrap();
        prop_assert_eq!(link.source, stream.link.source);
        let packet = if stream.link.vlan.is_some() { &rest[4..] } else { rest };
        let (body, pseudo) = if stream.source.is_ipv4() {
            let header = ipv4::Header::parse(packet).unwrap();
            let body = &packet[20..];
            prop_assert_eq!(usize::from(header.total_length()), packet.len());
            (body, Sum::new().pseudo_v4(
                header.source(), header.destination(), header.protocol(), body.len() as u16))
        } else {
            let header = ipv6::Header::parse(packet).unwrap();
            let body = &packet[40..];
            prop_assert_eq!(usize::from(header.payload_length()), body.len());
            (body, Sum::new().pseudo_v6(
                header.source(), header.destination(), header.next_header(), body.len() as u32))
        };
        prop_assert!(pseudo.bytes(body).is_valid());
        match stream.transport {
            Transport::Udp => prop_assert_eq!(body[4..6].to_vec(), (body.len() as u16).to_be_bytes()),
            Transport::Tcp => prop_assert!(tcp::Segment::parse(body).is_ok()),
        }
        prop_assert_eq!(reader(&stream).read(&frame), Arrival::Intact(signature));
    }

    #[test]
    fn a_flipped_bit_shows(
        stream in any_stream(), more in 0..200_u16, signature in any_signature(), place: prop::sample::Index, bit in 0..8_u8,
    ) {
        let mut frame = frame(&stream, stream.layout().least() + more, 77, &signature);
        // Ethernet addresses and the tag's number are the link's own.
        let network = stream.layout().network();
        let at = network - 2 + place.index(frame.len() - network + 2);
        frame[at] ^= 1 << bit;
        let arrival = reader(&stream).read(&frame);
        // IPv6's header has no checksum: traffic class, flow label and hop limit are the network's own.
        let free = at == network && bit < 4 || (network + 1..network + 4).contains(&at) || at == network + 7;
        let unchecked = stream.source.is_ipv6() && free;
        if !unchecked {
            prop_assert!(!matches!(arrival, Arrival::Intact(_)), "{at}: {arrival:?}");
        }
    }

    #[test]
    fn bytes_are_never_mistaken(stream in any_stream(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(!matches!(reader(&stream).read(&bytes), Arrival::Intact(_)));
    }
}
