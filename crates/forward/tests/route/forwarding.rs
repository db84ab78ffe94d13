//! Where packets leave, and with which headers.

use std::net::Ipv4Addr;

use graph::{Handoff, InterfaceId, Reason};
use millrace_forward::neighbor::{Bounds, SlowPath, Timing};
use millrace_forward::rib::{Change, Miss, Route, Target, Via};
use millrace_forward::state::{Bridge, BridgeMember, DEFAULT_VRF, Interface, Mode, Settings};
use wire::{EtherType, MacAddr, ethernet, icmpv4, icmpv6, ipv4, ipv6};

use crate::frames::from;
use crate::router::{
    self, PORTS, Router, SETTINGS, host, interface, interfaces, mac, prefix_of, routes,
};
use crate::{error4, error6, link, with_narrow_port};

#[test]
fn ipv4_goes_to_its_next_hop_with_one_hop_less() {
    let mut router = Router::routed();
    let frame = from(0, "10.11.2.3").udp(30);
    let (port, sent) = router.forward(0, &frame);
    assert_eq!((port, link(&sent)), (1, (host(1), mac(1))));
    let header = ipv4::Header::parse(&sent[14..]).unwrap();
    assert_eq!(header.ttl(), 63);
    assert_eq!(sent[34..], frame[34..], "the payload is untouched");
}

#[test]
fn ipv6_goes_to_its_next_hop_with_one_hop_less() {
    let mut router = Router::routed();
    let frame = from(0, "2001:db8:12::5").udp(30);
    let (port, sent) = router.forward(0, &frame);
    assert_eq!((port, link(&sent)), (2, (host(2), mac(2))));
    assert_eq!(ipv6::Header::parse(&sent[14..]).unwrap().hop_limit(), 63);
    assert_eq!(sent[22..], frame[22..]);
}

#[test]
fn link_padding_does_not_travel_on() {
    let mut router = Router::routed();
    let mut frame = from(0, "10.11.2.3").udp(1);
    let length = frame.len();
    frame.resize(64, 0xee);
    assert_eq!(router.forward(0, &frame).1.len(), length);
}

#[test]
fn what_is_for_all_stations_of_a_link_stays_there() {
    // No interface has an address, which would bring a route of its own for it.
    let mut bare = interfaces();
    for interface in bare.list.iter_mut().flatten() {
        (interface.addresses4, interface.unnumbered) = (Vec::new(), true);
    }
    let mut router = Router::with(SETTINGS, Miss::Drop, bare);
    let target = Target::Port(InterfaceId::new(1));
    let route = Route::of_static(DEFAULT_VRF, prefix_of("0.0.0.0/0"), target);
    router.rib.apply(&[Change::Add(route)]).unwrap();
    assert_eq!(router.forward(0, &from(0, "192.0.2.1").udp(30)).0, 1);
    for to in [mac(0), MacAddr::BROADCAST] {
        let frame = from(0, "255.255.255.255").toward(to).udp(30);
        router.expect_drop(0, &frame, Reason::LocalProtocol);
    }
}

#[test]
fn many_packets_to_one_special_address_are_dropped_too() {
    let mut router = Router::routed();
    let target = Target::Port(InterfaceId::new(1));
    let route = Route::of_static(DEFAULT_VRF, prefix_of("0.0.0.0/0"), target);
    router.rib.apply(&[Change::Add(route)]).unwrap();
    let mut row = |to: &str| {
        let frame = from(0, to).udp(30);
        router.receive(0, &[frame.as_slice(); 64]).len()
    };
    assert_eq!((row("192.0.2.1"), row("127.0.0.9")), (64, 0));
    assert_eq!(router.dropped(Reason::Ip4MartianDestination), 64);
}

#[test]
fn ipv4_link_local_addresses_stay_on_their_link() {
    let mut all = interfaces();
    if let Some(interface) = &mut all.list[0] {
        interface.addresses4.push((Ipv4Addr::new(169, 254, 0, 1), 16));
    }
    let mut router = Router::new(Miss::Unreachable, all);
    let by = |prefix: &str, port| {
        let target = Target::Port(InterfaceId::new(port));
        Change::Add(Route::of_static(DEFAULT_VRF, prefix_of(prefix), target))
    };
    router.rib.apply(&[by("0.0.0.0/0", 1), by("169.254.0.9/32", 0)]).unwrap();
    let there = |to: &str| from(0, to).source("169.254.0.9");
    router.expect_drop(0, &there("192.0.2.1").udp(30), Reason::Ip4MartianSource);
    router.expect_drop(1, &from(1, "169.254.0.9").udp(30), Reason::Ip4MartianDestination);
    // The router itself is on the link.
    let (port, sent) = router.forward(0, &there("169.254.0.1").echo(30));
    assert_eq!((port, link(&sent)), (0, (host(0), mac(0))));
    let to_all = there("169.254.0.1").toward(MacAddr::BROADCAST).echo(30);
    router.expect_drop(0, &to_all, Reason::Ip4MartianDestination);
    let settings = Settings { martians: false, ..SETTINGS };
    router.state.settings.store(std::sync::Arc::new(settings));
    assert_eq!(router.forward(0, &there("192.0.2.1").udp(30)).0, 1);
    assert_eq!(router.forward(1, &from(1, "169.254.0.9").udp(30)).0, 0);
}

#[test]
fn too_big_is_told_or_fragmented() {
    let mut router = with_narrow_port();
    let sent = router.forward(0, &from(0, "10.11.2.3").dont_fragment().udp(1400));
    assert_eq!(error4(&sent, 0).0, icmpv4::Message::Unreachable { code: 4, mtu: 1280 });
    let sent = router.forward(0, &from(0, "2001:db8:11::3").udp(1400));
    assert_eq!(error6(&sent, 0).0, icmpv6::Message::PacketTooBig { mtu: 1280 });

    let frame = from(0, "10.11.2.3").udp(1400);
    let fragments = router.receive(0, &[&frame]);
    let mut payload = Vec::new();
    for (at, (port, sent)) in fragments.iter().enumerate() {
        assert_eq!((*port, link(sent)), (1, (host(1), mac(1))));
        let header = ipv4::Header::parse(&sent[14..]).unwrap();
        assert!(header.total_length() <= 1280);
        assert_eq!((header.ttl(), header.identification()), (63, 0x1234));
        assert_eq!(usize::from(header.fragment_offset()) * 8, payload.len());
        assert_eq!(header.more_fragments(), at + 1 < fragments.len());
        payload.extend_from_slice(&sent[34..14 + usize::from(header.total_length())]);
    }
    assert_eq!((fragments.len(), &payload[..]), (2, &frame[34..]));
}

#[test]
fn what_is_cut_again_says_where_it_belongs_and_keeps_its_options() {
    let mut router = with_narrow_port();
    // A router alert is for each fragment, a time stamp for the first alone (RFC 791 3.1).
    let (alert, stamp) = ([148, 4, 0, 0], [68, 4, 5, 0]);
    let options = [alert, stamp].concat();
    let plain = from(0, "10.11.2.3").udp(1400);
    let mut frame = [&plain[..34], &options[..], &plain[34..]].concat();
    let total = (frame.len() - 14) as u16;
    let header = ipv4::Header::peek_mut(&mut frame[14..]).unwrap();
    header.set_header_length(28);
    header.set_total_length(total);
    // It is a fragment, and not the last.
    header.set_fragment(false, true, 100);
    ipv4::write_checksum(&mut frame[14..]).unwrap();
    let sent = router.receive(0, &[&frame]);
    let [(1, first), (1, later)] = &sent[..] else { panic!("{sent:?}") };
    let mut payload = Vec::new();
    for (fragment, options) in [(first, &options[..]), (later, &alert[..])] {
        let packet = &fragment[14..];
        let header = ipv4::Header::parse(packet).unwrap();
        assert_eq!(&packet[20..header.header_length()], options);
        assert_eq!(usize::from(header.fragment_offset()) * 8, 800 + payload.len());
        assert!(header.more_fragments() && usize::from(header.total_length()) <= 1280);
        payload.extend_from_slice(&packet[header.header_length()..header.total_length().into()]);
    }
    assert_eq!(payload, frame[42..]);
}

#[test]
fn a_miss_can_be_reflected() {
    let mut router = Router::new(Miss::Reflect, interfaces());
    let (port, sent) = router.forward(2, &from(2, "203.0.113.7").udp(10));
    assert_eq!((port, link(&sent)), (2, (host(2), mac(2))));
}

#[test]
fn an_error_whose_receiver_has_no_route_is_reflected_too() {
    let mut router = Router::new(Miss::Reflect, interfaces());
    router.rib.apply(&routes()).unwrap();
    for (to, far, ether_type) in [
        ("10.11.2.3", "203.0.113.9", EtherType::IPV4),
        ("2001:db8:11::3", "2001:db8:ffff::9", EtherType::IPV6),
    ] {
        let frame = from(0, to).source(far).hops(1).udp(30);
        let (port, sent) = router.forward(0, &frame);
        assert_eq!((port, link(&sent)), (0, (host(0), mac(0))));
        let (header, packet) = ethernet::Header::parse(&sent).unwrap();
        assert_eq!(header.ether_type(), ether_type);
        assert!(packet.ends_with(&frame[14..]), "it quotes the packet");
    }
    // And where the packet came with a tag, with that.
    let mut all = interfaces();
    all.list.push(Some(Interface { vlan: Some(100), ..interface(0) }));
    all.ports[0].vlans.push((100, InterfaceId::new(PORTS)));
    router.show(all);
    let tagged = from(0, "10.11.2.3").source("203.0.113.9").hops(1).vlan(100).udp(30);
    let (port, sent) = router.forward(0, &tagged);
    assert_eq!((port, link(&sent), &sent[12..18]), (0, (host(0), mac(0)), &tagged[12..18]));
    assert_eq!(ipv4::Header::parse(&sent[18..]).unwrap().destination().to_string(), "203.0.113.9");
}

#[test]
fn a_miss_goes_back_through_a_bridge() {
    let mut all = interfaces();
    let ip =
        Interface { name: "br0".to_owned(), port: None, mode: Mode::BridgeIp(0), ..interface(9) };
    all.list.push(Some(ip));
    if let Some(member) = &mut all.list[2] {
        member.mode = Mode::Member { bridge: 0, member: 0 };
    }
    all.bridges.push(Bridge {
        name: "br0".to_owned(),
        members: vec![BridgeMember {
            interface: InterfaceId::new(2),
            vlans: Vec::new(),
            untagged: None,
        }],
        ip: Some(InterfaceId::new(PORTS)),
        ip_vlan: 1,
        ageing: 300,
        mac_limit: 8,
        vlan_filtering: false,
        flood_rate: 0,
    });
    let mut router = Router::new(Miss::Reflect, all);
    let (port, sent) = router.forward(2, &from(2, "203.0.113.7").toward(mac(9)).udp(10));
    assert_eq!((port, link(&sent)), (2, (host(2), mac(9))));
}

#[test]
fn route_kinds_do_what_they_say() {
    let mut router = Router::with_hosts();
    let add = |prefix: &str, target| {
        Change::Add(Route::of_static(DEFAULT_VRF, prefix_of(prefix), target))
    };
    let kinds = [
        add("10.11.1.0/24", Target::Blackhole),
        add("10.11.2.0/24", Target::Unreachable),
        add("10.11.3.0/24", Target::Local),
    ];
    router.rib.apply(&kinds).unwrap();
    router.expect_drop(0, &from(0, "10.11.1.1").udp(10), Reason::Blackhole);
    let sent = router.forward(0, &from(0, "10.11.2.1").udp(10));
    assert_eq!(error4(&sent, 0).0, icmpv4::Message::Unreachable { code: 1, mtu: 0 });
    let (_, sent) = router.forward(0, &from(0, "10.11.3.1").echo(10));
    assert_eq!(ipv4::Header::parse(&sent[14..]).unwrap().source(), Ipv4Addr::new(10, 11, 3, 1));
    assert_eq!(router.forward(0, &from(0, "10.11.4.1").udp(10)).0, 1, "the /16 still holds");
}

#[test]
fn what_waited_for_a_neighbour_goes_where_it_was_to_go() {
    let mut router = Router::routed();
    for (waits, other, neighbor) in [
        ("10.0.1.7", "10.12.0.1", "10.0.1.7/32"),
        ("2001:db8:1::7", "2001:db8:12::1", "2001:db8:1::7/128"),
    ] {
        assert_eq!(router.receive(0, &[&from(0, waits).udp(30)]), [], "its neighbour is not known");
        let packet = router.punts.pop().unwrap().packet;
        // Another packet takes its place in the vector meanwhile.
        assert_eq!(router.forward(0, &from(0, other).udp(30)).0, 2);
        let known =
            Route::of_static(DEFAULT_VRF, prefix_of(neighbor), Target::Port(InterfaceId::new(1)));
        router.rib.apply(&[Change::Add(known)]).unwrap();
        let sent = router.inject(packet, millrace_forward::nodes::RELEASED);
        assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [1]);
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn an_answer_that_waited_keeps_its_hop_count() {
    let mut router = Router::routed();
    for (own, other) in [("10.0.1.1", "10.0.1.7"), ("2001:db8:1::1", "2001:db8:1::7")] {
        let echo = from(1, own).source(other).echo(30);
        assert_eq!(router.receive(1, &[&echo]), [], "the neighbour of the answer is not known");
        let answer = router.punts.pop().unwrap().packet;
        let (length, hops_at) = if own.contains(':') { (128, 14 + 7) } else { (32, 14 + 8) };
        let known = prefix_of(&format!("{other}/{length}"));
        let known = Route::of_static(DEFAULT_VRF, known, Target::Port(InterfaceId::new(1)));
        router.rib.apply(&[Change::Add(known)]).unwrap();
        let sent = router.inject(answer, millrace_forward::nodes::RELEASED);
        let [(1, frame)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(frame[hops_at], 64);
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn routers_in_a_row_spread_flows_each_in_its_own_way() {
    let far4 = |host: u16| format!("198.51.100.{host}");
    spread_flows_in_its_own_way("198.51.100.0/24", |port| format!("10.0.{port}.99"), far4);
    let far6 = |host: u16| format!("2001:db8:aaaa::{host:x}");
    spread_flows_in_its_own_way("2001:db8:aaaa::/48", |port| format!("2001:db8:{port}::99"), far6);
}

/// `near`: the neighbour behind a port, `far`: an address that the prefix has.
fn spread_flows_in_its_own_way(
    prefix: &str,
    near: impl Fn(u16) -> String,
    far: impl Fn(u16) -> String,
) {
    let mut router = Router::with_hosts();
    let via = |port: u16| Via { address: router::ip(&near(port)), interface: None, weight: 1 };
    let target = Target::Via(vec![via(1), via(2)]);
    let rib = std::mem::replace(&mut router.rib, router::no_routes());
    let (timing, bounds) = (Timing::default(), Bounds::default());
    let mut slow = SlowPath::<Handoff>::new(rib, router.state.clone(), timing, bounds, 0);
    slow.apply(&[Change::Add(Route::of_static(DEFAULT_VRF, prefix_of(prefix), target))]).unwrap();
    for port in 1..3 {
        let address = router::ip(&near(port));
        slow.add_neighbor(InterfaceId::new(port), address, host(port), 0, &mut Vec::new()).unwrap();
    }
    let mut ways = |seed: u64| -> Vec<u16> {
        let settings = Settings { hash_seed: seed, ..SETTINGS };
        slow.set_switches(Miss::Unreachable, settings, timing, bounds);
        let frames = (0..200).map(|host| from(0, &far(host)).udp(10));
        frames.map(|frame| router.forward(0, &frame).0).collect()
    };
    let (first, again, second) = (ways(1), ways(1), ways(2));
    assert_eq!(first, again);
    // Of what the first router sends to the second, that uses both of its ways.
    let to_second = first.iter().zip(&second).filter(|(first, _)| **first == 1);
    let onward = to_second.filter(|(_, second)| **second == 1).count();
    assert!((20..80).contains(&onward), "{prefix}: {onward} of about 100");
}
