//! Arbitrary frames through the whole graph and the slow path behind it: nothing panics, no buffer
//! is lost, and every packet leaves, waits or is counted.
//!
//! Input: frames one after another, each with two bytes before it. The first: its port (2 bits),
//! whether to put lengths, checksums and addresses right so that it comes further (1 bit), whether a
//! second (1 bit) or a minute and more (1 bit) has passed before it. The other: its length (in units
//! of 8 bytes, the rest of the input for the last one).
#![no_main]

#[path = "../../crates/forward/tests/router/mod.rs"]
mod router;

use std::cell::RefCell;
use std::sync::Arc;

use graph::{Handoff, InterfaceId, Punt, Reason};
use libfuzzer_sys::fuzz_target;
use millrace_forward::Cause;
use millrace_forward::neighbor::{Action, Bounds, SlowPath, Timing};
use millrace_forward::nodes::RELEASED;
use millrace_forward::state::{Bridge, BridgeMember, Mode};
use wire::{EtherType, Protocol, ethernet, icmpv4, icmpv6, ipv4, ipv6};

use router::Router;

const PORT: u8 = 0b0000_0011;
const REPAIR: u8 = 0b0000_0100;
const SECOND: u8 = 0b0000_1000;
const MINUTE: u8 = 0b0001_0000;

const SECONDS: u64 = 1_000_000_000;
/// Long enough for every neighbour that is asked for to be given up.
const GIVEN_UP: u64 = 10;

struct Bed {
    router: Router,
    slow: SlowPath<Handoff>,
}

impl Bed {
    fn new() -> Self {
        let mut all = router::interfaces();
        // Ports 0 and 1 route; port 2 is the only member of a bridge with an IP interface.
        let member =
            BridgeMember { interface: InterfaceId::new(2), vlans: vec![1, 5], untagged: Some(1) };
        all.bridges.push(Bridge {
            name: "br0".to_owned(),
            members: vec![member],
            ip: Some(InterfaceId::new(3)),
            ip_vlan: 1,
            ageing: 300,
            mac_limit: 8,
            vlan_filtering: true,
            flood_rate: 0,
        });
        let mut ip = router::interface(9);
        (ip.port, ip.mode) = (None, Mode::BridgeIp(0));
        all.list.push(Some(ip));
        if let Some(interface) = &mut all.list[2] {
            interface.mode = Mode::Member { bridge: 0, member: 0 };
        }
        let mut router = Router::new(millrace_forward::rib::Miss::Unreachable, all.clone());
        let _ = router.rib.apply(&router::routes());
        // The slow path owns the routing table; the test bed keeps an empty one.
        let rib = std::mem::replace(&mut router.rib, router::no_routes());
        let (timing, bounds) = (Timing::default(), Bounds::default());
        let mut slow = SlowPath::new(rib, router.state.clone(), timing, bounds, 1);
        slow.set_interfaces(Arc::new(all), &Default::default(), router.now, &mut Vec::new());
        Self { router, slow }
    }

    /// The control thread's turn.
    fn turn(&mut self) {
        let mut actions = Vec::new();
        while let Ok(Punt { cause, packet }) = self.router.punts.pop() {
            let cause = Cause::try_from(cause).expect("a node punts for a known cause");
            self.slow.input(cause, packet, self.router.now, &mut actions);
        }
        self.slow.poll(self.router.now, &mut actions);
        for action in actions {
            if let Action::Release { packet } = action {
                self.router.inject(packet, RELEASED);
            }
        }
        self.router.learn();
    }
}

/// Puts right what a random frame has wrong, as far as it is there.
fn repair(port: u16, frame: &mut [u8]) {
    let own = router::interface(if port == 2 { 9 } else { port }).mac;
    let Some((link, packet)) = frame.split_first_chunk_mut::<14>() else { return };
    let Ok((link, _)) = ethernet::Header::parse_mut(link) else { return };
    if !link.destination.is_group() {
        link.destination = own;
    }
    let length = packet.len();
    if let Some(header) = ipv4::Header::peek_mut(packet) {
        *link = ethernet::Header::new(link.destination, link.source, EtherType::IPV4);
        header.set_total_length(length as u16);
        let (at, protocol) = (header.header_length(), header.protocol());
        let _ = ipv4::write_checksum(packet);
        if let (Protocol::ICMPV4, Some(icmp)) = (protocol, packet.get_mut(at..)) {
            let _ = icmpv4::write_checksum(icmp);
        }
    } else if let Some(header) = ipv6::Header::peek_mut(packet) {
        *link = ethernet::Header::new(link.destination, link.source, EtherType::IPV6);
        header.set_payload_length(length.saturating_sub(40) as u16);
        let (source, destination) = (header.source(), header.destination());
        let Ok(upper) = ipv6::upper_layer(packet) else { return };
        if let (Protocol::ICMPV6, Some(icmp)) = (upper.protocol, packet.get_mut(upper.offset..)) {
            let _ = icmpv6::write_checksum(icmp, source, destination);
        }
    }
}

thread_local! {
    static BED: RefCell<Bed> = RefCell::new(Bed::new());
}

fuzz_target!(|input: &[u8]| {
    BED.with_borrow_mut(|bed| {
        let mut rest = input;
        while let [flags, units, after @ ..] = rest {
            let length = (usize::from(*units) * 8).min(after.len()).min(2000);
            let (frame, next) = after.split_at(length);
            rest = next;
            if frame.is_empty() {
                break;
            }
            let port = u16::from(flags & PORT) % router::PORTS;
            let mut frame = frame.to_vec();
            if flags & REPAIR != 0 {
                repair(port, &mut frame);
            }
            bed.router.now += u64::from(flags & SECOND != 0) * SECONDS;
            bed.router.now += u64::from(flags & MINUTE != 0) * 61 * SECONDS;
            bed.router.receive(port, &[&frame]);
            bed.turn();
        }
        for _ in 0..GIVEN_UP {
            bed.router.now += SECONDS;
            bed.turn();
        }
        assert_eq!(bed.router.dropped(Reason::Forgotten), 0, "a node forgot a packet");
        assert_eq!(bed.router.dropped(Reason::Loop), 0, "a packet went round");
        bed.router.assert_no_buffer_is_out();
    });
});
