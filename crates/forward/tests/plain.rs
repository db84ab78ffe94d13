//! The short path that most packets take: which frames are on it, and that they leave as they would by the long one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;

use std::net::{Ipv4Addr, Ipv6Addr};

use frames::{FrameBuilder, from};
use graph::{Filter, Handoff, InterfaceId, PortId, Reason, TraceOptions};
use millrace_forward::neighbor::{Bounds, SlowPath, Timing};
use millrace_forward::rib::{Change, Miss, Route, Target, Via};
use millrace_forward::state::{DEFAULT_VRF, Interface, Kind, NextHop, Settings};
use router::{
    FLOWS, PORTS, Router, SETTINGS, Sent, host, interface, interfaces, mac, prefix_of, routes,
};
use wire::{MacAddr, ethernet, vlan};

/// Where the first octets of the packet are: behind the header and its tag.
const HEADER: usize = 14;
const TAGGED: usize = HEADER + vlan::TAG_LENGTH;
/// VLANs of ports 0 and 1.
const VLANS: [u16; 2] = [100, 200];

/// Three ports, and a VLAN on two of them: routes to 10.5N.0.0/16 and 2001:db8:5N::/48 leave by the VLAN of port N.
fn router() -> Router {
    router_with(SETTINGS)
}

fn router_with(settings: Settings) -> Router {
    let mut all = interfaces();
    let mut beyond: Vec<_> = (0..PORTS).map(|port| (InterfaceId::new(port), host(port))).collect();
    let mut changes = routes();
    for (port, vlan) in (0..).zip(VLANS) {
        let id = InterfaceId::new(all.list.len() as u16);
        let sub = Interface {
            name: format!("p{port}.{vlan}"),
            vlan: Some(vlan),
            addresses4: vec![(Ipv4Addr::new(10, vlan as u8, port as u8, 1), 24)],
            addresses6: vec![(Ipv6Addr::new(0x2001, 0xdb8, vlan, port, 0, 0, 0, 1), 64)],
            ..interface(port)
        };
        all.list.push(Some(sub));
        all.ports[usize::from(port)].vlans.push((vlan, id));
        beyond.push((id, host(port)));
        for prefix in [format!("10.5{port}.0.0/16"), format!("2001:db8:5{port}::/48")] {
            let target = Target::Port(id);
            changes.push(Change::Add(Route::of_static(DEFAULT_VRF, prefix_of(&prefix), target)));
        }
    }
    let mut router = Router::with(settings, Miss::Unreachable, all.clone());
    router.rib.set_interfaces(&all, &beyond.into_iter().collect());
    router.rib.apply(&changes).unwrap();
    router
}

/// A priority and a drop eligibility for a tagged frame.
fn with_priority(mut frame: Vec<u8>) -> Vec<u8> {
    frame[HEADER] |= 0xb0;
    frame
}

fn padded(mut frame: Vec<u8>, length: usize) -> Vec<u8> {
    assert!(frame.len() < length);
    frame.resize(length, 0xee);
    frame
}

/// Packets that these nodes have had.
fn seen(router: &Router, nodes: &[&str]) -> u64 {
    let count =
        |name| router.counters.nodes[router.graph.find(name).unwrap().0 as usize].packets.get();
    nodes.iter().map(|name| count(name)).sum()
}

fn checked_again(router: &Router) -> u64 {
    seen(router, &["ip4-input", "ip6-input"])
}

/// Packets that did not leave by the short path.
fn forwarded_by_nodes(router: &Router) -> u64 {
    seen(router, &["ip4-lookup", "ip6-lookup", "ip4-rewrite", "ip6-rewrite"])
}

#[test]
fn common_frames_are_checked_once() {
    let mut router = router();
    for destination in ["10.12.2.3", "2001:db8:12::3"] {
        let to = || from(0, destination);
        let six = destination.contains(':');
        let least = if six { 62 } else { 60 };
        let frames = [
            (to().udp(500), HEADER),
            (to().vlan(100).udp(500), TAGGED),
            (with_priority(to().vlan(100).udp(500)), TAGGED),
            // A short packet, as an acknowledgment of TCP is; IPv6 has just so much room.
            (to().raw(59, &[1; 6]), HEADER),
            (padded(to().raw(59, &[1]), 60), HEADER),
            (padded(to().raw(59, &[]), 60), HEADER),
            (padded(to().vlan(100).raw(59, &[2]), 64), TAGGED),
            (padded(to().vlan(100).raw(59, &[2]), 60), TAGGED),
        ];
        for (frame, header) in frames {
            let length = if six {
                40 + usize::from(u16::from_be_bytes([frame[header + 4], frame[header + 5]]))
            } else {
                usize::from(u16::from_be_bytes([frame[header + 2], frame[header + 3]]))
            };
            let (port, sent) = router.forward(0, &frame);
            assert_eq!((port, sent.len()), (2, HEADER + length), "{destination}, {frame:x?}");
            let hops = if six { 8 } else { 12 };
            assert_eq!(sent[HEADER + hops..], frame[header + hops..header + length]);
        }
        // Untagged and tagged by turns.
        let [untagged, tagged] = [to().udp(9), to().vlan(100).udp(9)];
        assert_eq!(router.receive(0, &[&untagged, &tagged, &untagged, &tagged]).len(), 4);
        assert_eq!((checked_again(&router), forwarded_by_nodes(&router)), (0, 0));
        let rare = [
            padded(to().udp(1), least + 20),
            // 802.1Q 6.9: a priority tag is of no VLAN.
            {
                let mut frame = to().vlan(100).udp(500);
                frame[HEADER..][..2].copy_from_slice(&[0xe0, 0]);
                frame
            },
        ];
        for (frame, count) in rare.iter().zip(1..) {
            router.forward(0, frame);
            assert_eq!(checked_again(&router), count);
        }
        router = again(router);
    }
}

/// A router without counts.
fn again(old: Router) -> Router {
    drop(old);
    router()
}

#[test]
fn a_short_packet_that_lies_about_its_length_is_dropped() {
    let mut router = router();
    for (length, reason) in [(19, Reason::Ip4TotalLength), (47, Reason::Ip4TotalLength)] {
        let mut frame = padded(from(0, "10.12.2.3").raw(59, &[1]), 60);
        frame[HEADER + 3] = length;
        mend(&mut frame[HEADER..HEADER + 20]);
        router.expect_drop(0, &frame, reason);
    }
    let mut frame = padded(from(0, "2001:db8:12::3").raw(59, &[1]), 60);
    frame[HEADER + 5] = 7;
    router.expect_drop(0, &frame, Reason::Ip6PayloadLength);
}

/// Puts the checksum of an IPv4 header right.
fn mend(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = wire::checksum::of(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Frames of every kind by which the short paths differ.
fn kinds() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for destination in ["10.11.0.9", "10.51.0.9", "10.12.0.9", "2001:db8:51::9", "2001:db8:12::9"] {
        let ways: [fn(FrameBuilder) -> FrameBuilder; 2] = [|frame| frame, |frame| frame.vlan(100)];
        for way in ways {
            let to = || way(from(0, destination));
            all.push(to().udp(40));
            all.push(padded(to().raw(59, &[7]), 60));
            all.push(to().hops(1).udp(41));
            all.push(to().sent_by(mac(0x77)).udp(1400));
            // Too long for a link beyond.
            all.push(to().udp(1480));
        }
        all.push(with_priority(from(0, destination).vlan(100).udp(42)));
        // Of no VLAN here.
        all.push(from(0, destination).vlan(101).udp(43));
        all.push(from(0, destination).toward(mac(0x55)).udp(44));
    }
    all
}

/// What becomes of each of these frames when it comes alone.
fn alone(router: &mut Router, frames: &[Vec<u8>]) -> Vec<Vec<Sent>> {
    frames.iter().map(|frame| router.receive(0, &[frame])).collect()
}

#[test]
fn packets_leave_as_they_do_alone_by_the_nodes_whatever_is_around_them() {
    let kinds = kinds();
    let mut by_nodes = router_with(FLOWS);
    let alone = alone(&mut by_nodes, &kinds);
    while by_nodes.punts.pop().is_ok() {}
    drop(by_nodes);
    let mut router = router();
    assert!(alone.iter().filter(|sent| sent.len() == 1).count() * 2 > kinds.len());
    let tagged = |(port, frame): &Sent| {
        *port == 1 && ethernet::Header::parse(frame).unwrap().0.ether_type().is_vlan()
    };
    assert!(alone.iter().flatten().any(tagged));
    let mut seed = 7_u64;
    for _ in 0..200 {
        // Every other link brings packets to one destination only, of the first five of its 13 kinds, which have no tag.
        let one = (seed >> 33) as usize % 10;
        let (first, count) = if one < 5 { (one * 13, 5) } else { (0, kinds.len()) };
        let mut picked = Vec::new();
        while picked.len() < 64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1405_7b7e_f767_814f);
            // Runs of a kind, as a link brings them.
            let run = 1 + (seed >> 40) as usize % 5;
            picked.extend(std::iter::repeat_n(first + (seed >> 48) as usize % count, run));
        }
        let frames: Vec<&[u8]> = picked.iter().map(|kind| kinds[*kind].as_slice()).collect();
        let mut sent = router.receive(0, &frames);
        let mut expected: Vec<Sent> = picked.iter().flat_map(|kind| alone[*kind].clone()).collect();
        sent.sort();
        expected.sort();
        assert_eq!(sent, expected, "seed {seed}");
    }
    // The answers to those whose hops run out wait for a neighbour.
    while router.punts.pop().is_ok() {}
    router.assert_no_buffer_is_out();
}

#[test]
fn packets_of_one_flow_in_a_row_leave_together_but_for_those_that_cannot() {
    for destination in ["10.12.2.3", "2001:db8:12::3", "10.51.2.3", "8.8.8.8"] {
        let mut router = router();
        let to = || from(0, destination);
        let frames: Vec<_> = (0..200_u16)
            .map(|n| match n {
                0 | 63 | 64 | 130 => to().hops(1).udp(40 + usize::from(n)),
                _ => to().udp(40 + usize::from(n)),
            })
            .collect();
        let together: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let sent = router.receive(0, &together);
        while router.punts.pop().is_ok() {}
        let alone: Vec<Sent> =
            frames.iter().flat_map(|frame| router.receive(0, &[frame])).collect();
        while router.punts.pop().is_ok() {}
        assert_eq!(sent, alone, "{destination}");
        assert!(destination == "8.8.8.8" || sent.len() == 196, "{destination}: {}", sent.len());
        router.assert_no_buffer_is_out();
    }
}

#[test]
fn a_stale_next_hop_is_as_fast_and_its_use_is_noticed() {
    uses_are_noticed(router());
    uses_are_noticed(router_with(FLOWS));
}

fn uses_are_noticed(mut router: Router) {
    let hops = router.state.next_hops.clone();
    for destination in ["10.12.2.3", "10.51.2.3"] {
        let frame = from(0, destination).udp(30);
        let fresh = router.forward(0, &frame);
        let (index, hop) = (0..hops.capacity() as u32)
            .map(|index| (index, hops.get(index)))
            .find(|(_, hop)| {
                hop.kind == Kind::Forward
                    && (hop.port, hop.vlan.is_some()) == (PortId::new(fresh.0), fresh.0 == 1)
            })
            .unwrap();
        assert!(!hops.take_used(index), "only stale ones are noticed");
        hops.set(index, &NextHop { kind: Kind::ForwardStale, ..hop });
        assert_eq!(router.forward(0, &frame), fresh);
        assert!(hops.take_used(index));
        assert!(!hops.take_used(index));
        assert_eq!(router.receive(0, &[&frame, &frame]), [fresh.clone(), fresh]);
        assert!(hops.take_used(index));
    }
}

/// What gives the router routes by neighbors.
fn slow_path(router: &mut Router) -> SlowPath<Handoff> {
    let rib = std::mem::replace(&mut router.rib, router::no_routes());
    SlowPath::new(rib, router.state.clone(), Timing::default(), Bounds::default(), 0)
}

fn via(address: &str) -> Via {
    Via { address: router::ip(address), interface: None, weight: 1 }
}

fn route(slow: &mut SlowPath<Handoff>, network: &str, members: Vec<Via>) {
    let target = Target::Via(members);
    let route = Route::of_static(DEFAULT_VRF, prefix_of(network), target);
    slow.apply(&[Change::Add(route)]).unwrap();
}

/// Lets a neighbor be known behind a port.
fn meet(slow: &mut SlowPath<Handoff>, port: u16, neighbor: &Via, mac: MacAddr) {
    let mut actions = Vec::new();
    slow.add_neighbor(InterfaceId::new(port), neighbor.address, mac, 0, &mut actions).unwrap();
}

#[test]
fn packets_to_many_neighbors_leave_by_their_port_as_by_the_nodes() {
    // The last ones by another port than the others.
    let neighbor = |n: u16| via(&format!("10.0.{}.{}", if n < 6 { 2 } else { 1 }, 100 + n));
    let frames: Vec<Vec<u8>> = (0..250_u16)
        .map(|n| {
            // In the second block all leave by one port, in the third one does not.
            let of = if (64..128).contains(&n) || n > 150 { n % 6 } else { n % 8 };
            let to = from(0, &format!("198.51.{of}.{}", n % 256));
            let to = if n % 50 == 49 { to.hops(1) } else { to };
            // Each too long for the next port once.
            to.udp(if n % 40 == 39 { 1480 } else { usize::from(n) })
        })
        .collect();
    let together: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let sent = |settings: Settings| {
        let mut router = Router::with_hosts_and(settings);
        let mut slow = slow_path(&mut router);
        for n in 0..8_u16 {
            route(&mut slow, &format!("198.51.{n}.0/24"), vec![neighbor(n)]);
            meet(&mut slow, if n < 6 { 2 } else { 1 }, &neighbor(n), mac(0xa0 + n as u8));
        }
        let mut sent = router.receive(0, &together);
        // One whose use is to be noticed, amid the others.
        let hops = router.state.next_hops.clone();
        let stale = (0..hops.capacity() as u32)
            .find(|index| hops.get(*index).destination == mac(0xa3))
            .unwrap();
        hops.set(stale, &NextHop { kind: Kind::ForwardStale, ..hops.get(stale) });
        sent.extend(router.receive(0, &together));
        assert!(hops.take_used(stale));
        let by_nodes = forwarded_by_nodes(&router);
        while router.punts.pop().is_ok() {}
        router.assert_no_buffer_is_out();
        (sent, by_nodes)
    };
    let (short, by_nodes) = sent(SETTINGS);
    let (long, all) = sent(FLOWS);
    assert_eq!(short, long);
    assert!(short.len() > 2 * 230 && by_nodes * 10 < all, "{} {by_nodes} {all}", short.len());
}

#[test]
fn flows_are_spread_as_by_the_nodes() {
    let ports = |settings: Settings| -> Vec<u16> {
        let mut router = Router::with_hosts_and(settings);
        let mut slow = slow_path(&mut router);
        for (network, hosts) in [("198.51.100.0/24", "10.0"), ("2001:db8:aa::/48", "2001:db8")] {
            let six = hosts.contains(':');
            let member = |port: u16| {
                let text =
                    if six { format!("{hosts}:{port}::99") } else { format!("{hosts}.{port}.99") };
                via(&text)
            };
            route(&mut slow, network, vec![member(1), member(2)]);
            for port in 1..3 {
                meet(&mut slow, port, &member(port), host(port));
            }
        }
        let frames: Vec<Vec<u8>> = (0..100)
            .flat_map(|last| [format!("198.51.100.{last}"), format!("2001:db8:aa::{last:x}")])
            .map(|destination| from(0, &destination).udp(10))
            .collect();
        let together: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let mut sent = router.receive(0, &together);
        sent.sort();
        assert_eq!(sent.len(), frames.len());
        let mut alone: Vec<Sent> = frames.iter().map(|frame| router.forward(0, frame)).collect();
        let ports = alone.iter().map(|(port, _)| *port).collect();
        alone.sort();
        assert_eq!(sent, alone);
        ports
    };
    let short = ports(SETTINGS);
    assert_eq!(short, ports(FLOWS));
    assert!([1, 2].iter().all(|port| short.iter().filter(|other| *other == port).count() > 50));
}

#[test]
fn a_trace_is_told_of_each_node() {
    let mut router = router();
    for (destination, nodes) in [
        ("10.12.2.3", ["ethernet-input", "ip4-lookup", "ip4-rewrite"]),
        ("2001:db8:12::3", ["ethernet-input", "ip6-lookup", "ip6-rewrite"]),
    ] {
        let frame = from(0, destination).udp(30);
        let untraced = router.forward(0, &frame);
        let before = forwarded_by_nodes(&router);
        let options = TraceOptions { filter: Filter::default(), packets: 1, ring: 16 };
        let (tracer, mut steps) = graph::trace(options);
        assert!(router.graph.set_tracer(Some(tracer)).is_none());
        // The other one of the vector goes with it, so both leave in their order.
        assert_eq!(router.receive(0, &[&frame, &frame]), [untraced.clone(), untraced.clone()]);
        let told: Vec<&str> =
            std::iter::from_fn(|| steps.pop().ok()).map(|step| step.node).collect();
        assert_eq!(told, nodes);
        assert_eq!(forwarded_by_nodes(&router), before + 4);
        assert_eq!(router.forward(0, &frame), untraced);
        assert_eq!(forwarded_by_nodes(&router), before + 4, "the trace is over");
    }
}
