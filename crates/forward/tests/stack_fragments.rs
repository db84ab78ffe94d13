//! Datagrams that a stack sends over IPv6 to be cut, through the whole graph: rings in, frames out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;
#[path = "router/stack.rs"]
mod stack;

use frames::from;
use router::Router;
use shm::session::TransportProtocol::Udp;
use stack::{Stack, packet, segment};
use wire::build::Payload;
use wire::tcp::Flags;
use wire::{icmpv6, ipv6};

const ETHERNET: usize = 14;
const OWN: &str = "2001:db8::1";
const HOST: &str = "2001:db8::99";

/// Bytes that differ from their neighbours.
fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// Puts a fragment header behind the fixed one: offset, more, number.
fn with_fragment_header(whole: &[u8], offset_more: u16) -> Vec<u8> {
    let (header, payload) = whole.split_at(ipv6::HEADER_LENGTH);
    let [high, low] = offset_more.to_be_bytes();
    let mut packet = [header, &[header[6], 0, high, low, 1, 2, 3, 4], payload].concat();
    packet[6] = 44;
    let length = (payload.len() + 8) as u16;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet
}

fn datagram(to: &str, data: &[u8]) -> Vec<u8> {
    packet(OWN, to, &Payload::Udp { source_port: 53, destination_port: 7, data })
}

fn server(router: &mut Router) -> Stack {
    let stack = router.add_stack();
    router.listen(&stack, Udp, "[::]:53", 1).unwrap();
    stack
}

#[test]
fn what_is_to_be_cut_leaves_as_fragments() {
    let mut router = Router::with_hosts();
    let mut stack = server(&mut router);
    for length in [1700, 1233, 1232, 10] {
        let whole = datagram(HOST, &data(length));
        stack.send(&with_fragment_header(&whole, 0));
        let sent = router.send_of_stacks();
        // Those that fit the smallest MTU need no fragment header.
        if whole.len() <= 1280 {
            assert_eq!(sent.len(), 1, "{:?}", router.drops());
            assert_eq!(sent[0].1[ETHERNET..], whole, "as it was, hop count included");
            continue;
        }
        assert_eq!(sent.len(), 2, "{length}: {:?}", router.drops());
        let mut payload = Vec::new();
        for (at, (port, frame)) in sent.iter().enumerate() {
            assert_eq!((*port, &frame[..6]), (0, &router::host(0).octets()[..]));
            let fragment = &frame[ETHERNET..];
            assert!(fragment.len() <= 1280);
            let header = ipv6::Header::parse(fragment).unwrap();
            assert_eq!((header.hop_limit(), header.total_length()), (64, fragment.len()));
            let found = ipv6::upper_layer(fragment).unwrap().fragment.unwrap();
            assert_eq!(usize::from(found.offset) * 8, payload.len());
            assert_eq!((found.more, found.identification), (at == 0, 0x0102_0304));
            assert_eq!((found.next_header.0, found.header_at), (17, 40));
            payload.extend_from_slice(&fragment[48..]);
        }
        assert_eq!(payload, whole[40..]);
    }
    assert_eq!(stack.counters.queues.sent.get(), 4);
    assert_eq!(router.drops(), []);
    router.assert_no_buffer_is_out();
}

#[test]
fn another_stack_gets_it_whole() {
    let mut router = Router::with_hosts();
    let mut stack = server(&mut router);
    let mut other = router.add_stack();
    router.listen(&other, Udp, "[2001:db8:1::1]:7", 1).unwrap();
    let whole = datagram("2001:db8:1::1", &data(1700));
    stack.send(&with_fragment_header(&whole, 0));
    assert_eq!(router.send_of_stacks(), []);
    assert_eq!(other.one(), whole);
    router.assert_no_buffer_is_out();
}

#[test]
fn an_error_about_the_first_fragment_reaches_who_has_sent_it() {
    let mut router = Router::with_hosts();
    let mut stack = server(&mut router);
    let whole = datagram(HOST, &data(1700));
    stack.send(&with_fragment_header(&whole, 0));
    let sent = router.send_of_stacks();
    let message = icmpv6::Message::Unreachable { code: 4 };
    for ((_, fragment), reaches) in sent.iter().zip([true, false]) {
        let quoted = &fragment[ETHERNET..ETHERNET + 80];
        let error = from(0, OWN).payload(&Payload::Icmpv6 { message, data: quoted });
        assert_eq!(router.receive(0, &[&error]), []);
        let expected = if reaches { vec![error[ETHERNET..].to_vec()] } else { Vec::new() };
        let got: Vec<_> = stack.received().into_iter().map(|(packet, _)| packet).collect();
        assert_eq!(got, expected);
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn nothing_else_may_have_a_fragment_header() {
    let mut router = Router::with_hosts();
    let mut stack = server(&mut router);
    router.steering.lease(stack.id, 20_000, 256).unwrap();
    let good = datagram(HOST, b"data");
    let tcp = packet(OWN, HOST, &segment((20_000, 7), Flags::ACK, b"data"));
    let payload = Payload::Udp { source_port: 54, destination_port: 7, data: b"data" };
    let stranger = packet(OWN, HOST, &payload);
    let mut two = with_fragment_header(&with_fragment_header(&good, 0), 0);
    two[40] = 44;
    for (packet, reason) in [
        (with_fragment_header(&good, 1), "stack-fragment"),
        (with_fragment_header(&good, 8), "stack-fragment"),
        (with_fragment_header(&tcp, 0), "stack-fragment"),
        (two, "stack-fragment"),
        (with_fragment_header(&stranger, 0), "stack-port"),
    ] {
        let known = stack.refused().iter().find(|(name, _)| *name == reason).map_or(0, |it| it.1);
        stack.send(&packet);
        assert_eq!(router.send_of_stacks(), [], "{packet:x?}");
        assert!(stack.refused().contains(&(reason, known + 1)), "{:?}", stack.refused());
    }
    router.assert_no_buffer_is_out();
}
