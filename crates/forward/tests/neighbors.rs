//! Packets that wait for a neighbour that does not answer, through the whole graph and the slow path.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;
#[path = "router/stack.rs"]
mod stack;

use frames::from;
use graph::{Handoff, Punt};
use millrace_forward::Cause;
use millrace_forward::neighbor::{Action, Bounds, SlowPath, Timing};
use millrace_forward::nodes;
use router::{Router, Sent};
use stack::{packet, segment};
use wire::build::Payload;
use wire::tcp::Flags;
use wire::{icmpv4, icmpv6, ipv4, ipv6};

const ETHERNET: usize = 14;
const SECOND: u64 = 1_000_000_000;

/// A router and its control thread.
struct Bed {
    router: Router,
    slow: SlowPath<Handoff>,
}

impl Bed {
    /// The hosts behind the ports are known; nobody else answers.
    fn new() -> Self {
        let mut router = Router::with_hosts();
        let rib = std::mem::replace(&mut router.rib, router::no_routes());
        let (timing, bounds) = (Timing::default(), Bounds::default());
        let slow = SlowPath::new(rib, router.state.clone(), timing, bounds, 1);
        Self { router, slow }
    }

    /// Takes in what was handed up, and asks for an answer until nobody has given one; what leaves then.
    fn wait(&mut self) -> Vec<Sent> {
        let mut actions = Vec::new();
        while let Ok(Punt { cause, packet }) = self.router.punts.pop() {
            let cause = Cause::try_from(cause).unwrap();
            self.slow.input(cause, packet, self.router.now, &mut actions);
        }
        for _ in 0..3 {
            self.router.now += SECOND;
            self.slow.poll(self.router.now, &mut actions);
        }
        let mut sent = Vec::new();
        for action in actions {
            match action {
                Action::Release { packet } => {
                    sent.extend(self.router.inject(packet, nodes::RELEASED));
                }
                Action::Send { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        sent
    }
}

fn told4(packet: &[u8]) -> (icmpv4::Message, Vec<u8>) {
    let header = ipv4::Header::parse(packet).unwrap();
    assert_eq!(header.source().to_string(), "10.0.0.1");
    let (icmp, quoted) = icmpv4::Header::parse(&packet[20..]).unwrap();
    (icmp.message(), quoted.to_vec())
}

fn told6(packet: &[u8]) -> (icmpv6::Message, Vec<u8>) {
    let header = ipv6::Header::parse(packet).unwrap();
    assert_eq!(header.source().to_string(), "2001:db8::1");
    let (source, destination) = (header.source(), header.destination());
    let (icmp, quoted) = icmpv6::Header::parse(&packet[40..], source, destination).unwrap();
    (icmp.message(), quoted.to_vec())
}

const HOST: icmpv4::Message = icmpv4::Message::Unreachable { code: 1, mtu: 0 };
const ADDRESS: icmpv6::Message = icmpv6::Message::Unreachable { code: 3 };

#[test]
fn who_sent_what_waited_in_vain_is_told() {
    let mut bed = Bed::new();
    let (four, six) = (from(0, "10.0.1.77").udp(40), from(0, "2001:db8:1::77").udp(40));
    assert_eq!(bed.router.receive(0, &[&four, &six]), []);
    let sent = bed.wait();
    assert_eq!(sent.len(), 2, "{:?}", bed.router.drops());
    for (port, frame) in sent {
        assert_eq!((port, &frame[..6]), (0, &router::host(0).octets()[..]));
        let packet = &frame[ETHERNET..];
        let (quoted, whole) = if packet[0] >> 4 == 4 {
            let (message, quoted) = told4(packet);
            assert_eq!(message, HOST);
            (quoted, &four[ETHERNET..])
        } else {
            let (message, quoted) = told6(packet);
            assert_eq!(message, ADDRESS);
            (quoted, &six[ETHERNET..])
        };
        assert_eq!(quoted, whole, "as it came");
    }
    assert_eq!(bed.router.drops(), [("neighbor-unresolved", 2)]);
    bed.router.assert_no_buffer_is_out();
}

#[test]
fn a_stack_is_told_that_what_it_sent_waited_in_vain() {
    let mut bed = Bed::new();
    let mut stack = bed.router.add_stack();
    bed.router.steering.lease(stack.id, 20_000, 256).unwrap();
    let syn = segment((20_000, 80), Flags::SYN, &[]);
    let four = packet("10.0.0.1", "10.0.0.77", &syn);
    let six = packet("2001:db8::1", "2001:db8::77", &syn);
    for lost in [&four, &six] {
        stack.send(lost);
        assert_eq!(bed.router.send_of_stacks(), []);
        assert_eq!(stack.received(), []);
        assert_eq!(bed.wait(), []);
        let error = stack.one();
        if lost[0] >> 4 == 4 {
            assert_eq!(told4(&error), (HOST, lost.to_vec()));
        } else {
            assert_eq!(told6(&error), (ADDRESS, lost.to_vec()));
        }
    }
    assert_eq!(bed.router.drops(), [("neighbor-unresolved", 2)]);
    bed.router.assert_no_buffer_is_out();
}

#[test]
fn an_error_that_waited_in_vain_is_not_answered() {
    let mut bed = Bed::new();
    let data = &[0x45; 28];
    let message = icmpv4::Message::TimeExceeded { code: 0 };
    let four = from(0, "10.0.1.77").payload(&Payload::Icmpv4 { message, data });
    let message = icmpv6::Message::TimeExceeded { code: 0 };
    let six = from(0, "2001:db8:1::77").payload(&Payload::Icmpv6 { message, data });
    assert_eq!(bed.router.receive(0, &[&four, &six]), []);
    assert_eq!(bed.wait(), []);
    assert_eq!(bed.router.drops(), [("neighbor-unresolved", 2)]);
    bed.router.assert_no_buffer_is_out();
}
