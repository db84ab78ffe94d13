//! What nobody has is answered with a reset.

use graph::Reason;
use millrace_forward::state::Settings;
use shm::session::TransportProtocol::Tcp;
use wire::tcp::{Flags, Segment};
use wire::{ipv4, ipv6};

use crate::frames::from;
use crate::router::{self, Router};
use crate::stack::segment;
use crate::{ETHERNET, syn};

#[test]
fn nobody_home_is_said_with_a_reset() {
    let mut router = Router::with_hosts();
    for own in ["10.0.0.1", "2001:db8::1"] {
        let cases = [
            (Flags::SYN, &b""[..], (0, 1001, Flags::RST | Flags::ACK)),
            (Flags::SYN | Flags::FIN, b"abc", (0, 1005, Flags::RST | Flags::ACK)),
            (Flags(0), b"abcd", (0, 1004, Flags::RST | Flags::ACK)),
            (Flags::ACK, b"abcd", (2000, 0, Flags::RST)),
            (Flags::SYN | Flags::ACK, b"", (2000, 0, Flags::RST)),
        ];
        for (flags, data, expected) in cases {
            let (port, frame) =
                router.forward(0, &from(0, own).hops(3).payload(&segment((7, 9), flags, data)));
            let packet = &frame[ETHERNET..];
            let (tcp, hops, intact) = if let Ok(header) = ipv4::Header::parse(packet) {
                let pseudo = wire::checksum::Sum::new().pseudo_v4(
                    header.source(),
                    header.destination(),
                    header.protocol(),
                    20,
                );
                let segment = Segment::parse(&packet[20..]).unwrap();
                (segment, header.ttl(), segment.is_intact(pseudo))
            } else {
                let header = ipv6::Header::parse(packet).unwrap();
                let (from, to) = (header.source(), header.destination());
                let pseudo =
                    wire::checksum::Sum::new().pseudo_v6(from, to, wire::Protocol::TCP, 20);
                let segment = Segment::parse(&packet[40..]).unwrap();
                (segment, header.hop_limit(), segment.is_intact(pseudo))
            };
            let said = (tcp.header.sequence(), tcp.header.acknowledgment(), tcp.header.flags());
            assert_eq!((port, said, hops, intact), (0, expected, 64, true), "{flags:?}");
            assert_eq!((tcp.header.source_port(), tcp.header.destination_port()), (9, 7));
            assert_eq!(packet.len(), if own.contains(':') { 60 } else { 40 });
        }
        router.expect_drop(
            0,
            &from(0, own).payload(&segment((7, 9), Flags::RST | Flags::ACK, &[])),
            Reason::ResetNotAllowed,
        );
        let mut broken = from(0, own).payload(&segment((7, 9), Flags::SYN, b"x"));
        *broken.last_mut().unwrap() ^= 1;
        router.expect_drop(0, &broken, Reason::TcpMalformed);
        let mut short = from(0, own).raw(6, &[0; 19]);
        router.expect_drop(0, &short, Reason::TcpMalformed);
        short = from(0, own).raw(6, &[0xf0; 40]);
        router.expect_drop(0, &short, Reason::TcpMalformed);
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn nothing_is_said_to_a_group_or_in_its_name() {
    let mut router = Router::with_hosts();
    // Martians would not come as far as this.
    let settings = Settings { martians: false, ..**router.state.settings.load() };
    router.state.settings.store(std::sync::Arc::new(settings));
    for source in ["224.0.0.5", "255.255.255.255", "127.0.0.1", "0.0.0.0", "240.0.0.1"] {
        let frame = from(0, "10.0.0.1").source(source).payload(&syn(7));
        router.expect_drop(0, &frame, Reason::ResetNotAllowed);
    }
    for source in ["ff02::1", "::1"] {
        let frame = from(0, "2001:db8::1").source(source).payload(&syn(7));
        router.expect_drop(0, &frame, Reason::ResetNotAllowed);
    }
}

#[test]
fn resets_have_a_rate() {
    let mut router = Router::with_hosts();
    let frame = from(0, "10.0.0.1").payload(&syn(7));
    let mut sent = 0;
    for _ in 0..8 {
        sent += router.receive(0, &[&frame[..]; 32]).len();
    }
    // A tenth of a second's worth of 1,000 a second, and 8 milliseconds.
    assert!((100..=108).contains(&sent), "{sent}");
    assert_eq!(router.dropped(Reason::ResetRateLimited), 256 - sent as u64);
    router.assert_no_buffer_is_out();
}

#[test]
fn a_reset_leaves_by_the_link_where_the_sender_is_link_local() {
    let mut router = Router::with_hosts();
    let own = router::mac(0).link_local().to_string();
    let stack = router.add_stack();
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    let frame = from(0, &own).source("fe80::99").payload(&syn(7));
    let (port, frame) = router.forward(0, &frame);
    assert_eq!((port, &frame[..6]), (0, &router::host(0).octets()[..]));
    let segment = Segment::parse(&frame[ETHERNET + 40..]).unwrap();
    assert!(segment.header.flags().contains(Flags::RST), "no stack knows which link it would be");
}

#[test]
fn when_a_stack_has_ended_its_peers_are_told() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.listen(&stack, Tcp, "10.0.0.1:80", 1).unwrap();
    let data = from(0, "10.0.0.1").payload(&segment((7, 80), Flags::ACK, b"hello"));
    assert_eq!(router.receive(0, &[&data]), []);
    assert_eq!(stack.received().len(), 1);
    router.end_stack(&stack);
    let (_, frame) = router.forward(0, &data);
    let reset = Segment::parse(&frame[ETHERNET + 20..]).unwrap().header;
    assert_eq!((reset.flags(), reset.sequence()), (Flags::RST, 2000));
    // A new stack at its place has nothing to do with it.
    let mut next = router.add_stack();
    assert_eq!((next.id.place(), next.id == stack.id), (stack.id.place(), false));
    router.forward(0, &data);
    assert_eq!(next.received(), []);
    assert_eq!(router.listen(&stack, Tcp, "10.0.0.1:80", 1).ok(), None);
    router.assert_no_buffer_is_out();
}
