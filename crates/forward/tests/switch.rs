//! Layer 2 and flows through the whole graph: sub-interfaces, cross-connects, bridges, exact match.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;

use frames::from;
use graph::{InterfaceId, Reason};
use millrace_forward::flow::{Flow, FlowRefusal, Rewrite};
use millrace_forward::rib::Miss;
use millrace_forward::state::{Bridge, BridgeMember, DEFAULT_VRF, Interface, Interfaces, Mode};
use router::{FLOWS, Router, host, interface, interfaces, mac};
use wire::flow::FiveTuple;
use wire::{MacAddr, checksum, ethernet, ipv4, ipv6, udp, vlan};

fn tag_of(frame: &[u8]) -> Option<u16> {
    let (header, rest) = ethernet::Header::parse(frame).unwrap();
    header.ether_type().is_vlan().then(|| vlan::Tag::parse(rest).unwrap().0.id())
}

/// Adds sub-interface `id` of VLAN `vlan` on port `port`.
fn with_vlan(mut all: Interfaces, port: u16, vlan: u16) -> (Interfaces, u16) {
    let id = all.list.len() as u16;
    let sub = Interface {
        name: format!("p{port}.{vlan}"),
        vlan: Some(vlan),
        addresses4: vec![(std::net::Ipv4Addr::new(10, vlan as u8, port as u8, 1), 24)],
        addresses6: Vec::new(),
        ..interface(port)
    };
    all.list.push(Some(sub));
    all.ports[usize::from(port)].vlans.push((vlan, InterfaceId::new(id)));
    (all, id)
}

#[test]
fn sub_interfaces_take_and_give_tagged_frames() {
    let (all, first) = with_vlan(interfaces(), 0, 100);
    let (all, second) = with_vlan(all, 1, 200);
    let mut router = Router::new(Miss::Unreachable, all.clone());
    let beyond = [(InterfaceId::new(first), host(0)), (InterfaceId::new(second), host(1))]
        .into_iter()
        .collect();
    router.rib.set_interfaces(&all, &beyond);
    let add = |prefix: &str, port| {
        let target = millrace_forward::rib::Target::Port(port);
        let route =
            millrace_forward::rib::Route::of_static(DEFAULT_VRF, router::prefix_of(prefix), target);
        millrace_forward::rib::Change::Add(route)
    };
    router
        .rib
        .apply(&[
            add("10.50.0.0/16", InterfaceId::new(second)),
            add("10.60.0.0/16", InterfaceId::new(2)),
        ])
        .unwrap();
    let (port, sent) = router.forward(0, &from(0, "10.50.1.1").vlan(100).udp(20));
    assert_eq!((port, tag_of(&sent)), (1, Some(200)));
    assert_eq!(ipv4::Header::parse(&sent[18..]).unwrap().ttl(), 63);
    let (port, sent) = router.forward(0, &from(0, "10.50.1.1").udp(20));
    assert_eq!((port, tag_of(&sent)), (1, Some(200)), "a tag is put on");
    router.expect_drop(0, &from(0, "10.50.1.1").vlan(101).udp(20), Reason::VlanUnknown);
}

#[test]
fn a_cross_connect_passes_frames_untouched() {
    let mut all = interfaces();
    for (port, other) in [(0, 1), (1, 0)] {
        if let Some(interface) = &mut all.list[port] {
            interface.mode = Mode::CrossConnect(InterfaceId::new(other));
        }
    }
    let mut router = Router::new(Miss::Drop, all);
    let frame = from(0, "10.99.0.1").toward(mac(0x55)).udp(30);
    assert_eq!(router.forward(0, &frame), (1, frame.clone()));
    assert_eq!(router.forward(1, &frame), (0, frame));
    let tagged = from(0, "10.99.0.1").toward(MacAddr::BROADCAST).vlan(7).udp(30);
    assert_eq!(router.forward(0, &tagged), (1, tagged));
    let large = from(0, "10.99.0.1").toward(mac(0x55)).udp(1600);
    router.expect_drop(0, &large, Reason::MtuExceeded);
}

fn bridged(filtering: bool) -> Router {
    Router::new(Miss::Unreachable, bridge(filtering))
}

/// All three ports in one bridge with an IP interface, number 3.
fn bridge(filtering: bool) -> Interfaces {
    let mut all = interfaces();
    let member = |port: u16| BridgeMember {
        interface: InterfaceId::new(port),
        vlans: Vec::new(),
        untagged: None,
    };
    all.bridges.push(Bridge {
        name: "br0".to_owned(),
        members: (0..3).map(member).collect(),
        ip: Some(InterfaceId::new(3)),
        ip_vlan: 1,
        ageing: 300,
        mac_limit: 8,
        vlan_filtering: filtering,
        flood_rate: 100,
    });
    for port in 0..3 {
        if let Some(interface) = &mut all.list[usize::from(port)] {
            interface.mode = Mode::Member { bridge: 0, member: port };
        }
    }
    let ip =
        Interface { name: "br0".to_owned(), port: None, mode: Mode::BridgeIp(0), ..interface(9) };
    all.list.push(Some(ip));
    if filtering {
        all.bridges[0].members[0].untagged = Some(10);
        all.bridges[0].members[1].vlans = vec![10, 20];
        all.bridges[0].members[2].vlans = vec![20];
    }
    all
}

#[test]
fn what_was_learned_stays_with_its_interface_when_members_change() {
    let mut router = bridged(false);
    let station = |port: u16| mac(0xa0 + port as u8);
    for port in 0..3 {
        let hello = from(port, "10.99.0.1").sent_by(station(port)).toward(MacAddr::BROADCAST);
        router.receive(port, &[&hello.udp(30)]);
    }
    router.learn();
    let ports = |router: &mut Router, from_port: u16, to: u16| {
        let frame = from(from_port, "10.99.0.1").sent_by(station(from_port)).toward(station(to));
        let sent = router.receive(from_port, &[&frame.udp(30)]);
        sent.into_iter().map(|(port, _)| port).collect::<Vec<_>>()
    };
    assert_eq!([ports(&mut router, 0, 1), ports(&mut router, 0, 2)], [[1], [2]]);
    let members = |list: &[u16]| {
        let mut all = bridge(false);
        let member = |port: &u16| all.bridges[0].members[usize::from(*port)].clone();
        let new: Vec<BridgeMember> = list.iter().map(member).collect();
        all.bridges[0].members = new;
        for (port, interface) in (0..3_u16).zip(&mut all.list) {
            let place = list.iter().zip(0..).find(|(member, _)| **member == port);
            let mode = place.map_or(Mode::Routed, |(_, member)| Mode::Member { bridge: 0, member });
            interface.as_mut().unwrap().mode = mode;
        }
        all
    };
    router.set_interfaces(members(&[2, 0, 1]));
    assert_eq!([ports(&mut router, 0, 1), ports(&mut router, 0, 2)], [[1], [2]]);
    assert_eq!([ports(&mut router, 2, 0), ports(&mut router, 1, 0)], [[0], [0]]);
    router.set_interfaces(members(&[0, 2]));
    assert_eq!(ports(&mut router, 0, 2), [2]);
    assert_eq!(
        ports(&mut router, 2, 1),
        [0],
        "a station behind no member is looked for by flooding"
    );
}

#[test]
fn a_bridge_floods_then_learns() {
    let mut router = bridged(false);
    let there = from(0, "10.99.0.1").sent_by(mac(0xa0)).toward(mac(0xb0)).udp(30);
    let back = from(1, "10.99.0.2").sent_by(mac(0xb0)).toward(mac(0xa0)).udp(30);
    let ports =
        |sent: Vec<router::Sent>| sent.into_iter().map(|(port, _)| port).collect::<Vec<_>>();
    assert_eq!(ports(router.receive(0, &[&there])), [1, 2], "unknown: to all but its own");
    router.learn();
    assert_eq!(router.forward(1, &back), (0, back.clone()));
    router.learn();
    assert_eq!(router.forward(0, &there), (1, there.clone()));
    router.expect_drop(1, &there, Reason::BridgeSamePort);
    router.learn();
    assert_eq!(router.forward(2, &back).0, 1, "the host has moved with its address");
    let reserved = MacAddr::new([1, 0x80, 0xc2, 0, 0, 0]);
    router.expect_drop(0, &from(0, "10.9.9.9").toward(reserved).udp(1), Reason::BridgeLinkLocal);
}

#[test]
fn a_flood_leaves_out_members_that_cannot_take_it() {
    let mut all = bridge(false);
    if let Some(narrow) = &mut all.list[1] {
        narrow.mtu = 1280;
    }
    let mut router = Router::new(Miss::Unreachable, all);
    let unknown = |bytes: usize| from(0, "10.99.0.1").toward(mac(0xb0)).udp(bytes);
    let smallest = unknown(0).len();
    // A tag more than the MTU and the Ethernet header.
    let (largest, larger) = (unknown(1298 - smallest), unknown(1299 - smallest));
    assert_eq!(router.receive(0, &[&largest]), [(1, largest.clone()), (2, largest)]);
    assert_eq!(router.receive(0, &[&larger]), [(2, larger)]);
    assert_eq!(router.drops(), [("mtu-exceeded", 1)]);
}

#[test]
fn what_is_learned_is_bounded_and_ages() {
    let mut router = bridged(false);
    for last in 0..20 {
        let frame = from(0, "10.99.0.1").sent_by(mac(0xa0 + last)).toward(mac(0xb0)).udp(1);
        router.receive(0, &[&frame]);
    }
    router.learn();
    let second = (router.now / 1_000_000_000) as u32;
    assert_eq!((router.macs.entries(second).count(), router.macs.refused()), (8, 12));
    router.macs.forget(second + 200, |entry| entry.age >= 300);
    assert_eq!(router.macs.entries(second).count(), 8);
    router.macs.forget(second + 300, |entry| entry.age >= 300);
    assert_eq!(router.macs.entries(second).count(), 0);
}

#[test]
fn flooding_is_limited() {
    let mut router = bridged(false);
    let frame = from(0, "10.99.0.1").sent_by(mac(0xa0)).toward(mac(0xb0)).udp(1);
    let sent = router.receive(0, &[&frame[..]; 30]);
    assert_eq!((sent.len(), router.dropped(Reason::BridgeFloodLimit)), (20, 20));
}

#[test]
fn each_bridge_floods_at_its_own_rate() {
    let mut router = bridged(false);
    let mut all = (**router.state.interfaces.load()).clone();
    all.bridges.push(Bridge { name: "br1".to_owned(), flood_rate: 20, ..all.bridges[0].clone() });
    if let Some(interface) = &mut all.list[2] {
        interface.mode = Mode::Member { bridge: 1, member: 2 };
    }
    router.state.interfaces.store(std::sync::Arc::new(all));
    let frame = from(0, "10.99.0.1").sent_by(mac(0xa0)).toward(mac(0xb0)).udp(1);
    assert_eq!(router.receive(2, &[&frame[..]; 30]).len(), 2 * 2, "a tenth of 20, to two members");
    assert_eq!(router.receive(0, &[&frame[..]; 30]).len(), 10 * 2, "the other has its own");
}

#[test]
fn the_bridge_has_an_ip_interface() {
    let mut router = bridged(false);
    let frame = from(9, "10.0.9.1").toward(mac(9)).sent_by(mac(0xa0)).echo(10);
    assert_eq!(router.receive(1, &[&frame]), [], "the reply waits for its neighbour");
    let waiting = router.punts.pop().unwrap();
    assert_eq!(waiting.cause, millrace_forward::Cause::Glean as u16);
    let group = from(9, "10.0.9.1").toward(MacAddr::BROADCAST).sent_by(mac(0xa0)).echo(10);
    let flooded = router.receive(1, &[&group]);
    assert_eq!(flooded.len(), 2, "and a copy for the IP interface, which drops it");
    assert_eq!(router.dropped(Reason::Ip4MartianDestination), 1);
}

#[test]
fn vlan_filtering_keeps_vlans_apart() {
    let mut router = bridged(true);
    let plain = from(0, "10.99.0.1").sent_by(mac(0xa0)).toward(mac(0xb0)).udp(30);
    let sent = router.receive(0, &[&plain]);
    assert_eq!(sent.len(), 1, "VLAN 10 is on members 0 and 1 only");
    assert_eq!((sent[0].0, tag_of(&sent[0].1)), (1, Some(10)));
    let tagged = from(1, "10.99.0.1").sent_by(mac(0xb0)).toward(mac(0xa0)).vlan(10).udp(30);
    let (port, sent) = router.forward(1, &tagged);
    assert_eq!((port, tag_of(&sent)), (0, None), "untagged where the VLAN is");
    router.expect_drop(2, &tagged, Reason::BridgeVlan);
    router.expect_drop(1, &plain, Reason::BridgeVlan);
}

fn flow(tuple: FiveTuple, rewrite: Rewrite) -> Flow {
    Flow {
        tuple,
        egress: InterfaceId::new(2),
        source_mac: mac(0x11),
        destination_mac: mac(0x22),
        rewrite,
    }
}

#[test]
fn a_flow_goes_before_the_routes() {
    let mut router = Router::routed_with(FLOWS);
    for destination in ["10.11.2.3", "2001:db8:11::3"] {
        let frame = from(0, destination).udp(33);
        let tuple = FiveTuple::of(&frame[14..]).unwrap();
        assert_eq!(router.forward(0, &frame).0, 1);
        router.flows.insert(&flow(tuple, Rewrite::default()), &interfaces()).unwrap();
        let (port, sent) = router.forward(0, &frame);
        let (header, _) = ethernet::Header::parse(&sent).unwrap();
        assert_eq!((port, header.destination, header.source), (2, mac(0x22), mac(0x11)));
        assert!(router.flows.remove(&tuple));
        assert_eq!(router.forward(0, &frame).0, 1);
    }
}

/// Source of a packet, where its payload begins, and the sum of its pseudo header.
fn upper(packet: &[u8]) -> (std::net::IpAddr, usize, checksum::Sum) {
    if let Ok(header) = ipv4::Header::parse(packet) {
        let sum = checksum::Sum::new().pseudo_v4(
            header.source(),
            header.destination(),
            header.protocol(),
            header.total_length() - 20,
        );
        (header.source().into(), 20, sum)
    } else {
        let header = ipv6::Header::parse(packet).unwrap();
        let sum = checksum::Sum::new().pseudo_v6(
            header.source(),
            header.destination(),
            header.next_header(),
            u32::from(header.payload_length()),
        );
        (header.source().into(), 40, sum)
    }
}

#[test]
fn a_flow_rewrites_addresses_ports_and_checksums() {
    let mut router = Router::routed_with(FLOWS);
    for (destination, new) in [("10.11.2.3", "192.0.2.55"), ("2001:db8:11::3", "2001:db8:9::55")] {
        let frame = from(0, destination).udp(33);
        let tuple = FiveTuple::of(&frame[14..]).unwrap();
        let rewrite = Rewrite {
            source: Some(router::ip(new)),
            destination_port: Some(53),
            ..Rewrite::default()
        };
        router.flows.insert(&flow(tuple, rewrite), &interfaces()).unwrap();
        assert_eq!(router.flows.get(&tuple), Some(flow(tuple, rewrite)));
        let (_, sent) = router.forward(0, &frame);
        let packet = &sent[14..];
        let (source, at, sum) = upper(packet);
        assert_eq!(source, router::ip(new));
        let (datagram, _) = udp::Header::parse(&packet[at..]).unwrap();
        assert_eq!((datagram.source_port(), datagram.destination_port()), (1111, 53));
        assert!(sum.bytes(&packet[at..]).is_valid(), "the UDP checksum follows");
    }
}

#[test]
fn a_flow_rewrites_udp_lite() {
    let mut router = Router::routed_with(FLOWS);
    for (destination, new) in [("10.11.2.3", "192.0.2.55"), ("2001:db8:11::3", "2001:db8:9::55")] {
        // Ports, a checksum of everything, and data.
        let mut frame = from(0, destination).raw(136, &[4, 87, 8, 174, 0, 0, 0, 0, 1, 2, 3, 4]);
        let (_, at, sum) = upper(&frame[14..]);
        let sum = sum.bytes(&frame[14 + at..]).finish();
        frame[14 + at + 6..14 + at + 8].copy_from_slice(&sum.to_be_bytes());
        let rewrite = Rewrite {
            source: Some(router::ip(new)),
            destination_port: Some(53),
            ..Rewrite::default()
        };
        let tuple = FiveTuple::of(&frame[14..]).unwrap();
        router.flows.insert(&flow(tuple, rewrite), &interfaces()).unwrap();
        let (_, sent) = router.forward(0, &frame);
        let (source, at, sum) = upper(&sent[14..]);
        assert_eq!(source, router::ip(new));
        let datagram = &sent[14 + at..];
        assert_eq!(datagram[..4], [4, 87, 0, 53]);
        assert!(sum.bytes(datagram).is_valid());
    }
}

#[test]
fn a_full_flow_table_keeps_what_it_has() {
    let mut router = Router::routed_with(FLOWS);
    let tuple = |last: u16| {
        let frame = from(0, "10.11.2.3").payload(&wire::build::Payload::Udp {
            source_port: last,
            destination_port: 9,
            data: &[],
        });
        FiveTuple::of(&frame[14..]).unwrap()
    };
    let mut entered = 0;
    let refusal = loop {
        match router.flows.insert(&flow(tuple(entered), Rewrite::default()), &interfaces()) {
            Ok(()) => entered += 1,
            Err(refusal) => break refusal,
        }
        assert!(entered < 1000, "the limit is 100");
    };
    assert_eq!(refusal, FlowRefusal::Full { family: "IPv4", capacity: 100, key: "flows4" });
    assert_eq!(router.flows.len(), (usize::from(entered), 0));
    assert!((0..entered).all(|last| router.flows.get(&tuple(last)).is_some()));
    let other = Flow { egress: InterfaceId::new(77), ..flow(tuple(0), Rewrite::default()) };
    assert_eq!(
        router.flows.insert(&other, &interfaces()),
        Err(FlowRefusal::Egress(InterfaceId::new(77)))
    );
    // One that was there before has its place back, though its egress is gone.
    assert_eq!(router.flows.put_back(&other, &interfaces()), Ok(()));
    assert_eq!(router.flows.get(&tuple(0)), Some(other));
}
