use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::checksum::Sum;
use crate::protocol::Protocol;
use crate::{icmpv4, icmpv6, ndp, tcp, udp};

const FROM4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const TO4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const FROM6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const TO6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

fn network(six: bool) -> Network {
    let between = if six {
        Network::between(FROM6.into(), TO6.into(), 255)
    } else {
        Network::between(FROM4.into(), TO4.into(), 64)
    };
    between.unwrap()
}

#[test]
fn between_two_versions_there_is_no_packet() {
    assert_eq!(Network::between(FROM4.into(), TO6.into(), 64), None);
    assert_eq!(Network::between(FROM6.into(), TO4.into(), 64), None);
}

/// A built packet's protocol, payload and pseudo header's sum, headers checked.
fn open(packet: &[u8]) -> (Protocol, &[u8], Sum) {
    if packet[0] >> 4 == 4 {
        let header = ipv4::Header::parse(packet).unwrap();
        assert_eq!(usize::from(header.total_length()), packet.len());
        let (protocol, body) = (header.protocol(), &packet[header.header_length()..]);
        let (source, destination) = (header.source(), header.destination());
        (protocol, body, Sum::new().pseudo_v4(source, destination, protocol, body.len() as u16))
    } else {
        let header = ipv6::Header::parse(packet).unwrap();
        assert_eq!(header.total_length(), packet.len());
        let (protocol, body) = (header.next_header(), &packet[ipv6::HEADER_LENGTH..]);
        let (source, destination) = (header.source(), header.destination());
        (protocol, body, Sum::new().pseudo_v6(source, destination, protocol, body.len() as u32))
    }
}

fn build(network: &Network, payload: &Payload<'_>) -> Vec<u8> {
    let mut buffer = [0xee; 2048];
    let length = packet(&mut buffer, network, payload).unwrap();
    assert!(buffer[length..].iter().all(|&byte| byte == 0xee), "wrote beyond its length");
    buffer[..length].to_vec()
}

#[test]
fn frames_carry_their_tag() {
    let mac = |last| MacAddr::new([2, 0, 0, 0, 0, last]);
    let plain = Link { destination: mac(1), source: mac(2), vlan: None };
    let tagged = Link { vlan: VlanId::new(100).ok(), ..plain };
    let payload = Payload::Raw { protocol: Protocol(253), data: &[1, 2, 3] };
    let mut buffer = [0; 64];
    let length = frame(&mut buffer, &plain, &network(false), &payload).unwrap();
    let (header, rest) = ethernet::Header::parse(&buffer[..length]).unwrap();
    assert_eq!(*header, ethernet::Header::new(mac(1), mac(2), EtherType::IPV4));
    assert_eq!(open(rest).1, [1, 2, 3]);

    let length = frame(&mut buffer, &tagged, &network(true), &payload).unwrap();
    let (header, rest) = ethernet::Header::parse(&buffer[..length]).unwrap();
    assert_eq!(header.ether_type(), EtherType::VLAN);
    let (tag, rest) = Tag::parse(rest).unwrap();
    assert_eq!((tag.id(), tag.ether_type()), (100, EtherType::IPV6));
    assert_eq!(open(rest).0, Protocol(253));

    let question = arp::Packet::new(arp::Operation::Request, (mac(2), FROM4), (mac(0), TO4));
    let length = arp(&mut buffer, &tagged, &question).unwrap();
    assert_eq!(length, 46);
    assert_eq!(&buffer[16..18], &[8, 6]);
    assert_eq!(arp::Packet::parse(&buffer[18..length]), Ok(&question));
    assert!(matches!(arp(&mut buffer[..45], &tagged, &question), Err(BuildError::NoRoom { .. })));
}

#[test]
fn neighbor_messages_pass_the_receiver_checks() {
    let mac = MacAddr::new([2, 0, 0, 0, 0, 7]);
    let flags = ndp::Flags { router: true, solicited: false, override_known: true };
    for known in [None, Some(mac)] {
        let question = Neighbor::Solicitation { target: TO6, source_link_layer: known };
        let packet = build(&network(true), &Payload::Neighbor(question));
        let (protocol, body, pseudo) = open(&packet);
        assert_eq!(protocol, Protocol::ICMPV6);
        assert!(pseudo.bytes(body).is_valid());
        match ndp::parse(body, FROM6, TO6, 255).unwrap() {
            ndp::Message::NeighborSolicitation { target, options } => {
                assert_eq!((target, options.source_link_layer()), (TO6, known));
            }
            other => panic!("{other:?}"),
        }

        let answer = Neighbor::Advertisement { flags, target: FROM6, target_link_layer: known };
        let packet = build(&network(true), &Payload::Neighbor(answer));
        let (_, body, pseudo) = open(&packet);
        assert!(pseudo.bytes(body).is_valid());
        match ndp::parse(body, FROM6, TO6, 255).unwrap() {
            ndp::Message::NeighborAdvertisement { flags: found, target, options } => {
                assert_eq!((found, target), (flags, FROM6));
                assert_eq!(options.target_link_layer(), known);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn says_why_it_built_nothing() {
    let mut buffer = vec![0; 70_000];
    let data = vec![0; 66_000];
    let raw = |data| Payload::Raw { protocol: Protocol(253), data };
    let v4 = network(false);
    assert_eq!(packet(&mut buffer, &v4, &raw(&data)), Err(BuildError::TooLong(66_020)));
    assert_eq!(packet(&mut buffer, &network(true), &raw(&data)), Err(BuildError::TooLong(66_000)));
    let refusal = packet(&mut buffer[..29], &v4, &raw(&data[..10]));
    assert_eq!(refusal, Err(BuildError::NoRoom { needed: 30, room: 29 }));
    let fields = tcp::Fields {
        source_port: 1,
        destination_port: 2,
        sequence: 3,
        acknowledgment: 4,
        flags: tcp::Flags::SYN,
        window: 5,
    };
    for length in [1, 44] {
        let payload = Payload::Tcp { fields, options: &data[..length], data: &[] };
        assert_eq!(packet(&mut buffer, &v4, &payload), Err(BuildError::TcpOptions(length)));
    }
    let message = icmpv6::Message::PacketTooBig { mtu: 1280 };
    let refusal = packet(&mut buffer, &v4, &Payload::Icmpv6 { message, data: &[] });
    assert_eq!(refusal, Err(BuildError::Version));
    let message = icmpv4::Message::TimeExceeded { code: 0 };
    let refusal = packet(&mut buffer, &network(true), &Payload::Icmpv4 { message, data: &[] });
    assert_eq!(refusal, Err(BuildError::Version));
}

proptest! {
    #[test]
    fn udp_round_trips(six: bool, source_port: u16, destination_port: u16, data in vec(any::<u8>(), 0..100)) {
        let payload = Payload::Udp { source_port, destination_port, data: &data };
        let packet = build(&network(six), &payload);
        let (protocol, body, pseudo) = open(&packet);
        prop_assert_eq!(protocol, Protocol::UDP);
        let (header, found) = udp::Header::parse(body).unwrap();
        prop_assert_eq!((header.source_port(), header.destination_port()), (source_port, destination_port));
        prop_assert_eq!(header.verify(found, pseudo, false), Ok(()));
        prop_assert_eq!(found, data);
    }

    #[test]
    fn tcp_round_trips(six: bool, ports: (u16, u16), numbers: (u32, u32), flags: u8, window: u16, words in 0..11usize, data in vec(any::<u8>(), 0..100)) {
        let fields = tcp::Fields {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: numbers.0,
            acknowledgment: numbers.1,
            flags: tcp::Flags(flags),
            window,
        };
        let options = vec![1; words * 4];
        let packet = build(&network(six), &Payload::Tcp { fields, options: &options, data: &data });
        let (protocol, body, pseudo) = open(&packet);
        prop_assert_eq!(protocol, Protocol::TCP);
        let segment = tcp::Segment::parse(body).unwrap();
        prop_assert!(segment.is_intact(pseudo));
        prop_assert_eq!((segment.options, segment.data), (&options[..], &data[..]));
        prop_assert_eq!((segment.header.sequence(), segment.header.window()), (numbers.0, window));
    }

    #[test]
    fn icmp_round_trips(identifier: u16, sequence: u16, data in vec(any::<u8>(), 0..100)) {
        let message = icmpv4::Message::EchoRequest { identifier, sequence };
        let packet = build(&network(false), &Payload::Icmpv4 { message, data: &data });
        let (protocol, body, _) = open(&packet);
        prop_assert_eq!(protocol, Protocol::ICMPV4);
        let (header, found) = icmpv4::Header::parse(body).unwrap();
        prop_assert_eq!((header.message(), found), (message, &data[..]));

        let message = icmpv6::Message::EchoRequest { identifier, sequence };
        let packet = build(&network(true), &Payload::Icmpv6 { message, data: &data });
        let (protocol, body, _) = open(&packet);
        prop_assert_eq!(protocol, Protocol::ICMPV6);
        let (header, found) = icmpv6::Header::parse(body, FROM6, TO6).unwrap();
        prop_assert_eq!((header.message(), found), (message, &data[..]));
    }

    #[test]
    fn every_small_buffer_is_refused(six: bool, room in 0..36usize) {
        let payload = Payload::Udp { source_port: 1, destination_port: 2, data: &[7; 8] };
        let refusal = packet(&mut vec![0; room][..], &network(six), &payload);
        let needed = if six { 56 } else { 36 };
        prop_assert_eq!(refusal, Err(BuildError::NoRoom { needed, room }));
    }
}
