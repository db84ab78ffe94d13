//! Fragments to the router itself, through the whole graph.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;

use frames::from;
use graph::Reason;
use millrace_forward::rib::Miss;
use router::{Router, interfaces};
use wire::{MacAddr, Protocol, icmpv4, icmpv6, ipv4, ipv6};

const ETHERNET: usize = 14;
const ID: u32 = 0xabcd;

/// A frame's fragments, of `size` bytes of payload each.
fn cut(frame: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (link, packet) = frame.split_at(ETHERNET);
    let header = if packet[0] >> 4 == 4 { 20 } else { 40 };
    let (header, payload) = packet.split_at(header);
    let count = payload.len().div_ceil(size);
    let part = |(at, chunk): (usize, &[u8])| {
        let (offset, more) = ((at * size / 8) as u16, at + 1 < count);
        let mut header = header.to_vec();
        if header[0] >> 4 == 4 {
            let fixed = ipv4::Header::peek_mut(&mut header).unwrap();
            fixed.set_fragment(false, more, offset);
            fixed.set_total_length((20 + chunk.len()) as u16);
            ipv4::write_checksum(&mut header).unwrap();
        } else {
            let next_header = ipv6::Header::peek(&header).unwrap().next_header();
            let fixed = ipv6::Header::peek_mut(&mut header).unwrap();
            fixed.set_payload_length((8 + chunk.len()) as u16);
            fixed.set_next_header(Protocol::FRAGMENT);
            let (header_at, named_at) = (40, 6);
            let own = ipv6::Fragment {
                offset,
                more,
                identification: ID,
                header_at,
                named_at,
                next_header,
            };
            header.extend(own.header());
        }
        [link, &header, chunk].concat()
    };
    payload.chunks(size).enumerate().map(part).collect()
}

/// The payload of a packet that was received whole or in fragments in order.
fn payload(frames: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut all = Vec::new();
    for (at, (port, frame)) in frames.iter().enumerate() {
        assert_eq!(*port, 0);
        assert!(frame.len() <= ETHERNET + 1500);
        let packet = &frame[ETHERNET..];
        let more = if packet[0] >> 4 == 4 {
            let header = ipv4::Header::parse(packet).unwrap();
            assert_eq!(usize::from(header.fragment_offset()) * 8, all.len());
            all.extend_from_slice(&packet[20..usize::from(header.total_length())]);
            header.more_fragments()
        } else {
            let header = ipv6::Header::parse(packet).unwrap();
            let upper = ipv6::upper_layer(packet).unwrap();
            let fragment = upper.fragment.unwrap();
            assert_eq!(usize::from(fragment.offset) * 8, all.len());
            assert_eq!((fragment.identification, fragment.next_header), (ID, Protocol::ICMPV6));
            all.extend_from_slice(&packet[48..header.total_length()]);
            fragment.more
        };
        assert_eq!(more, at + 1 < frames.len());
    }
    all
}

#[test]
fn a_long_echo_is_answered_in_fragments() {
    let mut router = Router::with_hosts();
    for own in ["10.0.0.1", "2001:db8::1"] {
        let frame = from(0, own).echo(4000);
        let mut parts = cut(&frame, 1000);
        parts.reverse();
        let (last, first) = parts.split_last().unwrap();
        let first: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
        assert_eq!(router.receive(0, &first), []);
        let reply = payload(&router.receive(0, &[last]));
        let header = if own.contains(':') { 40 } else { 20 };
        assert_eq!(reply[8..], frame[ETHERNET + header + 8..], "the data comes back");
        if header == 20 {
            assert!(matches!(
                icmpv4::Header::parse(&reply).unwrap().0.message(),
                icmpv4::Message::EchoReply { identifier: 7, sequence: 9 }
            ));
        } else {
            let (router, host) = ("2001:db8::1", "2001:db8:0::99");
            let (source, destination) = (router.parse().unwrap(), host.parse().unwrap());
            assert!(matches!(
                icmpv6::Header::parse(&reply, source, destination).unwrap().0.message(),
                icmpv6::Message::EchoReply { identifier: 7, sequence: 9 }
            ));
        }
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn an_answer_in_fragments_has_no_frame_to_be_reflected_by() {
    let mut router = Router::new(Miss::Reflect, interfaces());
    for (own, far, reason) in [
        ("10.0.0.1", "203.0.113.9", Reason::Ip4NoRoute),
        ("2001:db8::1", "2001:db8:ffff::9", Reason::Ip6NoRoute),
    ] {
        let parts = cut(&from(0, own).source(far).echo(4000), 1000);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        assert_eq!(router.receive(0, &parts), []);
        assert_eq!(router.dropped(reason), 3, "all that the answer is cut to");
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn a_long_datagram_to_nobody_is_refused_with_its_start() {
    let mut router = Router::with_hosts();
    for own in ["10.0.0.1", "2001:db8::1"] {
        let frame = from(0, own).udp(4000);
        let parts = cut(&frame, 1200);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let sent = router.receive(0, &parts);
        let [(0, error)] = &sent[..] else { panic!("{sent:?}") };
        let packet = &error[ETHERNET..];
        if packet[0] >> 4 == 4 {
            let (header, quoted) = icmpv4::Header::parse(&packet[20..]).unwrap();
            assert_eq!(header.message(), icmpv4::Message::Unreachable { code: 3, mtu: 0 });
            let quoted = ipv4::Header::peek(quoted).unwrap();
            assert_eq!((quoted.is_fragment(), quoted.total_length()), (false, 4028));
        } else {
            assert_eq!(packet[40..42], [1, 4], "port unreachable");
        }
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn overlaps_and_fragments_that_come_alone_are_dropped_and_counted() {
    let mut router = Router::with_hosts();
    let frame = from(0, "10.0.0.1").echo(2000);
    let (long, short) = (cut(&frame, 1000), cut(&frame, 504));
    assert_eq!(router.receive(0, &[&long[0], &short[1]]), []);
    assert_eq!(router.dropped(Reason::LocalFragment), 2);
    // Alone for a minute: its sender is told when the next packet comes.
    assert_eq!(router.receive(0, &[&long[0]]), []);
    router.now += 61_000_000_000;
    let sent = router.receive(0, &[&from(0, "10.0.0.1").echo(10)]);
    assert_eq!(router.dropped(Reason::ReassemblyTimeout), 1);
    let messages: Vec<_> = sent
        .iter()
        .map(|(_, frame)| icmpv4::Header::parse(&frame[ETHERNET + 20..]).unwrap().0.message())
        .collect();
    assert!(messages.contains(&icmpv4::Message::TimeExceeded { code: 1 }), "{messages:?}");
    assert_eq!(messages.len(), 2);
    router.assert_no_buffer_is_out();
}

/// Code and pointer of the parameter problem that the sender of a frame is told of.
fn problem(router: &mut Router, frame: &[u8]) -> (u8, u32) {
    let (port, sent) = router.forward(0, frame);
    let packet = &sent[ETHERNET..];
    let header = ipv6::Header::parse(packet).unwrap();
    let (from, to) = (header.source(), header.destination());
    let (icmp, quoted) = icmpv6::Header::parse(&packet[40..], from, to).unwrap();
    assert_eq!((port, quoted), (0, &frame[ETHERNET..]));
    let icmpv6::Message::ParameterProblem { code, pointer } = icmp.message() else {
        panic!("{icmp:?}")
    };
    (code, pointer)
}

#[test]
fn extension_headers_that_ask_for_too_much_are_answered() {
    let mut router = Router::with_hosts();
    let own = || from(0, "2001:db8::1");
    let udp = [4, 87, 8, 174, 0, 8, 0, 0];
    let with = |first: u8, header: [u8; 8]| own().raw(first, &[header, udp].concat());
    for (first, header, expected) in [
        (43, [17, 0, 0, 1, 0, 0, 0, 0], (0, 42)),
        (60, [17, 0, 0x87, 4, 0, 0, 0, 0], (2, 42)),
        (0, [17, 0, 0xc7, 4, 0, 0, 0, 0], (2, 42)),
        (60, [0, 0, 1, 4, 0, 0, 0, 0], (1, 40)),
    ] {
        assert_eq!(problem(&mut router, &with(first, header)), expected, "{first}");
    }
    assert_eq!(router.dropped(Reason::Ip6Extension), 4);
    router.expect_drop(0, &with(60, [17, 0, 0x47, 4, 0, 0, 0, 0]), Reason::Ip6Extension);

    let to_all = MacAddr::new([0x33, 0x33, 0, 0, 0, 1]);
    let group = |kind: u8| {
        let options = [17, 0, kind, 4, 0, 0, 0, 0];
        from(0, "ff02::1").toward(to_all).raw(60, &[options, udp].concat())
    };
    assert_eq!(problem(&mut router, &group(0x87)), (2, 42), "to a group, too");
    router.expect_drop(0, &group(0xc7), Reason::Ip6Extension);

    // What may be skipped is.
    let echo = own().echo(10);
    let options = [58, 0, 0x07, 4, 0, 0, 0, 0];
    let frame = own().raw(60, &[&options[..], &echo[ETHERNET + 40..]].concat());
    let (_, sent) = router.forward(0, &frame);
    assert_eq!(sent[ETHERNET + 48], 129, "an echo reply");
    router.assert_no_buffer_is_out();
}

#[test]
fn a_fragment_of_an_odd_length_is_answered_where_others_are_to_follow() {
    let mut router = Router::with_hosts();
    let parts = cut(&from(0, "2001:db8::1").echo(2000), 1001);
    assert_eq!(problem(&mut router, &parts[0]), (0, 4));
    let parts = cut(&from(0, "10.0.0.1").echo(2000), 1001);
    router.expect_drop(0, &parts[0], Reason::LocalFragment);
    assert_eq!(router.dropped(Reason::LocalFragment), 2);
    router.assert_no_buffer_is_out();
}
