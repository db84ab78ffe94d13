//! VRFs in the whole graph: each packet follows the routes of the VRF that it came in by, and leaves it only where a route
//! leads to another.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;
#[path = "router/stack.rs"]
mod stack;

use frames::{FrameBuilder, from};
use graph::{Handoff, InterfaceId, Punt, Reason};
use millrace_forward::Cause;
use millrace_forward::nodes;
use millrace_forward::rib::{Change, Miss, Route, Target, Via};
use millrace_forward::state::{DEFAULT_VRF, Interface, Interfaces, Mode, VrfId};
use router::{PORTS, Router, host, interface, interfaces, ip, mac, prefix_of};
use shm::session::TransportProtocol::Tcp;
use stack::{packet, segment};
use wire::tcp::Flags;
use wire::{ipv4, ipv6};

const RED: VrfId = 1;
const BLUE: VrfId = 2;
const ETHERNET: usize = 14;
/// ICMP type (RFC 792).
const TIME_EXCEEDED: u8 = 11;
/// Interface of VLAN 100 on port 0.
const SUB: u16 = PORTS;

/// Port n is in the VRF n of the default one, red and blue; VLAN 100 of port 0 is in red.
fn vrfs() -> Interfaces {
    let mut all = interfaces();
    for (port, interface) in (0..).zip(&mut all.list) {
        interface.as_mut().unwrap().vrf = port;
    }
    let addresses4 = vec![(ip4("10.0.50.1"), 24)];
    all.list.push(Some(Interface { vlan: Some(100), vrf: RED, addresses4, ..interface(0) }));
    all.ports[0].vlans.push((100, InterfaceId::new(SUB)));
    all.vrfs = [(RED, "red".to_owned()), (BLUE, "blue".to_owned())].into();
    all
}

fn ip4(text: &str) -> std::net::Ipv4Addr {
    text.parse().unwrap()
}

fn route(vrf: VrfId, prefix: &str, target: Target) -> Change {
    Change::Add(Route::of_static(vrf, prefix_of(prefix), target))
}

/// In each VRF, 10.9.0.0/16 and 2001:db8:9::/48 lead out of its own port, and the host behind that is known.
fn router() -> Router {
    let mut router = Router::new(Miss::Unreachable, interfaces());
    router.show(vrfs());
    let out = |vrf: VrfId| {
        let hosts = [format!("10.0.{vrf}.99/32"), format!("2001:db8:{vrf}::99/128")];
        let [host4, host6] = &hosts;
        ["10.9.0.0/16", "2001:db8:9::/48", host4.as_str(), host6.as_str()]
            .map(|prefix| route(vrf, prefix, Target::Port(InterfaceId::new(vrf))))
    };
    router.rib.apply(&[DEFAULT_VRF, RED, BLUE].map(out).concat()).unwrap();
    router
}

fn leak(router: &mut Router, vrf: VrfId, prefix: &str, to: VrfId) {
    router.rib.apply(&[route(vrf, prefix, Target::Vrf(to))]).unwrap();
}

/// Asserts that a frame is dropped for that reason; who has sent it may be told.
fn refused(router: &mut Router, port: u16, frame: &[u8], reason: Reason) {
    let before = router.dropped(reason);
    let sent = router.receive(port, &[frame]);
    assert!(sent.iter().all(|(out, _)| *out == port), "nothing leaves by another port");
    assert_eq!(router.dropped(reason), before + 1, "drops: {:?}", router.drops());
}

fn source4(frame: &[u8]) -> String {
    ipv4::Header::parse(&frame[ETHERNET..]).unwrap().source().to_string()
}

#[test]
fn each_packet_follows_the_routes_of_its_own_vrf() {
    let mut router = router();
    for port in 0..PORTS {
        for to in ["10.9.1.1", "2001:db8:9::1"] {
            let (out, frame) = router.forward(port, &from(port, to).udp(20));
            assert_eq!((out, &frame[..6]), (port, &host(port).octets()[..]), "{to} from {port}");
        }
    }
    // All in one vector, so that runs of several VRFs come together.
    let frames: Vec<(u16, Vec<u8>)> =
        [0, 1, 1, 2, 1, 0, 2].map(|port| (port, from(port, "10.9.1.1").udp(20))).into();
    let tagged = from(0, "10.9.1.1").source("10.0.50.9").vlan(100).udp(20);
    let all = [frames, vec![(0, tagged)]].concat();
    let sent = router.receive_mixed(all.iter().map(|(port, frame)| (*port, frame.as_slice())));
    let counts = [0, 1, 2].map(|port| sent.iter().filter(|(out, _)| *out == port).count());
    assert_eq!(counts, [2, 4, 2], "the VLAN's is red");
    router.assert_no_buffer_is_out();
}

#[test]
fn the_default_vrf_is_not_where_others_look() {
    let mut router = router();
    router
        .rib
        .apply(&[route(DEFAULT_VRF, "10.8.0.0/16", Target::Port(InterfaceId::new(0)))])
        .unwrap();
    assert_eq!(router.forward(0, &from(0, "10.8.1.1").udp(20)).0, 0);
    // No route in red: the sender is told, from an address of red, by red's routes.
    let (out, error) = router.forward(1, &from(1, "10.8.1.1").hops(9).udp(20));
    assert_eq!((out, source4(&error)), (1, "10.0.1.1".to_owned()));
    assert_eq!(router.dropped(Reason::Ip4NoRoute), 1);
    // Nor does the default VRF see red's networks and addresses.
    for to in ["10.0.1.9", "10.0.1.1"] {
        refused(&mut router, 0, &from(0, to).udp(20), Reason::Ip4NoRoute);
    }
}

#[test]
fn own_addresses_answer_in_their_vrf() {
    let mut router = router();
    for port in 0..PORTS {
        for to in [format!("10.0.{port}.1"), format!("2001:db8:{port}::1")] {
            // The host beyond a router in the same VRF, so that the answer needs a route.
            let far = if to.contains(':') { "2001:db8:9::7" } else { "10.9.0.7" };
            let (out, answer) = router.forward(port, &from(port, &to).source(far).echo(20));
            assert_eq!(out, port, "{to}");
            let kind = answer[if to.contains(':') { ETHERNET + 40 } else { ETHERNET + 20 }];
            assert_eq!(kind, if to.contains(':') { 129 } else { 0 }, "an echo reply");
        }
    }
}

#[test]
fn expired_packets_are_told_of_in_their_vrf() {
    let mut router = router();
    for port in 0..PORTS {
        let far = from(port, "10.9.1.1").source("10.9.0.7").hops(1);
        let (out, error) = router.forward(port, &far.udp(20));
        assert_eq!((out, source4(&error)), (port, format!("10.0.{port}.1")));
        assert_eq!(error[ETHERNET + 20], TIME_EXCEEDED);
    }
}

#[test]
fn one_address_in_two_vrfs() {
    let mut all = vrfs();
    for id in [1, 2] {
        let interface = all.list[id].as_mut().unwrap();
        interface.addresses4 = vec![(ip4("192.0.2.1"), 24)];
    }
    let mut router = Router::new(Miss::Unreachable, interfaces());
    router.show(all);
    for port in [1, 2] {
        let frame = from(port, "192.0.2.1").source("192.0.2.9").echo(20);
        assert_eq!(router.receive(port, &[&frame]), [], "its answer waits for the neighbour");
        let Punt { cause, packet } = router.punts.pop().unwrap();
        assert_eq!((cause, packet.interface), (Cause::Glean as u16, InterfaceId::new(port)));
        assert_eq!(router.state.next_hops.get(packet.next_hop).interface, InterfaceId::new(port));
        router.rib.apply(&[route(port, "192.0.2.9/32", Target::Port(packet.interface))]).unwrap();
        let sent = router.inject(packet, nodes::RELEASED);
        assert_eq!((sent.len(), sent[0].0), (1, port));
        assert_eq!(sent[0].1[ETHERNET + 8], 64, "an answer keeps its hop count");
    }
}

#[test]
fn a_leak_leads_to_routes_networks_and_addresses_of_the_other_vrf() {
    let mut router = router();
    leak(&mut router, RED, "10.9.0.0/16", BLUE);
    leak(&mut router, RED, "2001:db8:9::/48", BLUE);
    leak(&mut router, RED, "10.0.2.0/24", BLUE);
    for to in ["10.9.1.1", "2001:db8:9::1"] {
        let (out, frame) = router.forward(1, &from(1, to).hops(5).udp(20));
        assert_eq!(out, 2, "{to}");
        let hops = if to.contains(':') { frame[ETHERNET + 7] } else { frame[ETHERNET + 8] };
        assert_eq!(hops, 4, "one hop, however many look-ups");
    }
    // The connected network of blue: its neighbour is asked for there.
    assert_eq!(router.receive(1, &[&from(1, "10.0.2.9").udp(20)]), []);
    let punted = router.punts.pop().unwrap().packet;
    assert_eq!(router.state.next_hops.get(punted.next_hop).interface, InterfaceId::new(2));
    let hop = Change::Add(Route::of_static(
        BLUE,
        prefix_of("10.0.2.9/32"),
        Target::Port(InterfaceId::new(2)),
    ));
    router.rib.apply(&[hop]).unwrap();
    let released = router.inject(punted, nodes::RELEASED);
    assert_eq!(released.len(), 1);
    assert_eq!(released[0].0, 2, "when it has answered, the packet takes the same way");
    // Blue's own address.
    let (out, answer) = router.forward(1, &from(1, "10.0.2.1").source("10.9.0.7").echo(20));
    assert_eq!((out, source4(&answer)), (2, "10.0.2.1".to_owned()), "by red's routes, which leak");
    // Errors go back by the sender's VRF.
    leak(&mut router, RED, "10.6.0.0/16", BLUE);
    let (out, error) = router.forward(1, &from(1, "10.6.0.1").udp(20));
    assert_eq!((out, source4(&error)), (1, "10.0.1.1".to_owned()));
    // The other way nothing is leaked.
    refused(&mut router, 2, &from(2, "10.0.1.9").udp(20), Reason::Ip4NoRoute);
}

#[test]
fn leaks_in_a_row_are_followed_and_a_loop_is_dropped() {
    let mut router = router();
    leak(&mut router, DEFAULT_VRF, "10.7.0.0/16", RED);
    leak(&mut router, RED, "10.7.0.0/16", BLUE);
    router.rib.apply(&[route(BLUE, "10.7.0.0/16", Target::Port(InterfaceId::new(2)))]).unwrap();
    assert_eq!(router.forward(0, &from(0, "10.7.0.1").udp(20)).0, 2);
    assert_eq!(router.forward(1, &from(1, "10.7.0.1").udp(20)).0, 2);
    leak(&mut router, BLUE, "10.7.0.0/16", DEFAULT_VRF);
    for port in 0..PORTS {
        router.expect_drop(port, &from(port, "10.7.0.1").udp(20), Reason::VrfLoop);
    }
    // One with two only, in a vector with what goes on.
    leak(&mut router, RED, "2001:db8:7::/48", BLUE);
    leak(&mut router, BLUE, "2001:db8:7::/48", RED);
    let (bad, good) = (from(1, "2001:db8:7::1").udp(20), from(1, "2001:db8:9::1").udp(20));
    let sent = router.receive(1, &[&bad, &good, &bad]);
    assert_eq!(sent.len(), 1);
    assert_eq!(router.dropped(Reason::VrfLoop), 5);
    router.assert_no_buffer_is_out();
}

#[test]
fn groups_and_blackholes_work_in_every_vrf() {
    let mut router = router();
    let via = |port: u16, last: u8| Via {
        address: ip(&format!("10.0.{port}.{last}")),
        interface: Some(InterfaceId::new(port)),
        weight: 1,
    };
    router
        .rib
        .apply(&[
            route(RED, "10.5.0.0/16", Target::Blackhole),
            route(RED, "10.4.0.0/16", Target::Via(vec![via(1, 7), via(1, 8)])),
            // A next hop that names its interface leads out of the VRF, too.
            route(RED, "10.3.0.0/16", Target::Via(vec![via(2, 7)])),
        ])
        .unwrap();
    router.expect_drop(1, &from(1, "10.5.0.1").udp(20), Reason::Blackhole);
    for (to, interface) in [("10.4.0.1", 1), ("10.3.0.1", 2)] {
        assert_eq!(router.receive(1, &[&from(1, to).udp(20)]), []);
        let Punt { cause, packet } = router.punts.pop().unwrap();
        assert_eq!(cause, Cause::Unresolved as u16);
        let hop = router.state.next_hops.get(packet.next_hop);
        assert_eq!(hop.interface, InterfaceId::new(interface), "{to}");
    }
}

#[test]
fn what_is_for_the_link_stays_on_it() {
    let mut router = router();
    // A neighbour solicitation to the solicited-node group of port 1.
    let own = format!("2001:db8:{}::1", 1);
    let group = ipv6::solicited_node(own.parse().unwrap());
    let frame = from(1, &group.to_string()).toward(ipv6_group_mac(&group)).echo(8);
    let (out, answer) = router.forward(1, &frame);
    assert_eq!((out, answer[ETHERNET + 40]), (1, 129), "an echo to a group that it has joined");
    let link_local = mac(1).link_local().to_string();
    let from_link = host(1).link_local().to_string();
    let (out, _) = router.forward(1, &from(1, &link_local).source(&from_link).echo(8));
    assert_eq!(out, 1);
}

/// RFC 2464 7.
fn ipv6_group_mac(group: &std::net::Ipv6Addr) -> wire::MacAddr {
    let [.., a, b, c, d] = group.octets();
    wire::MacAddr::new([0x33, 0x33, a, b, c, d])
}

#[test]
fn a_bridge_interface_has_a_vrf_too() {
    let mut all = vrfs();
    let ip = Interface { port: None, mode: Mode::BridgeIp(0), vrf: BLUE, ..interface(9) };
    all.list.push(Some(ip));
    all.list[0].as_mut().unwrap().mode = Mode::Member { bridge: 0, member: 0 };
    all.bridges.push(millrace_forward::state::Bridge {
        name: "br0".to_owned(),
        members: vec![millrace_forward::state::BridgeMember {
            interface: InterfaceId::new(0),
            vlans: Vec::new(),
            untagged: None,
        }],
        ip: Some(InterfaceId::new(SUB + 1)),
        ip_vlan: 1,
        ageing: 300,
        mac_limit: 8,
        vlan_filtering: false,
        flood_rate: 0,
    });
    let mut router = Router::new(Miss::Unreachable, interfaces());
    router.show(all);
    router.rib.apply(&[route(BLUE, "10.9.0.0/16", Target::Port(InterfaceId::new(2)))]).unwrap();
    let frame: FrameBuilder = from(0, "10.9.0.1").toward(mac(9));
    assert_eq!(router.forward(0, &frame.udp(20)).0, 2);
}

#[test]
fn stacks_serve_the_default_vrf_alone() {
    let mut router = router();
    let mut stack = router.add_stack();
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    let syn = segment((1111, 80), Flags::SYN, &[]);
    assert_eq!(router.receive(0, &[&from(0, "10.0.0.1").payload(&syn)]), []);
    assert_eq!(stack.received().len(), 1);
    for port in [1, 2] {
        let frame = from(port, &format!("10.0.{port}.1")).payload(&syn);
        let (out, reset) = router.forward(port, &frame);
        assert_eq!((out, source4(&reset)), (port, format!("10.0.{port}.1")), "nobody is there");
        assert_eq!(stack.received(), []);
    }
    // A leak to the default VRF changes nothing of that.
    leak(&mut router, RED, "10.0.0.0/24", DEFAULT_VRF);
    let (out, _) = router.forward(1, &from(1, "10.0.0.1").payload(&syn));
    assert_eq!((out, stack.received()), (1, vec![]));
    // What a stack sends has an address of the default VRF, and follows its routes, those to others too.
    leak(&mut router, DEFAULT_VRF, "10.0.1.0/24", RED);
    let answer = |source: &str, to: &str| packet(source, to, &segment((80, 1111), Flags::ACK, &[]));
    stack.send(&answer("10.0.1.1", "10.0.1.99"));
    assert_eq!(router.send_of_stacks(), []);
    assert_eq!(stack.refused(), [("stack-source", 1)]);
    stack.send(&answer("10.0.0.1", "10.0.1.99"));
    let sent = router.send_of_stacks();
    assert_eq!((sent.len(), sent[0].0), (1, 1), "{:?}", router.drops());
    assert_eq!(sent[0].1[ETHERNET + 8], 64, "the hop count stays");
}

#[test]
fn what_came_by_an_interface_that_is_gone_is_in_no_vrf() {
    let mut router = router();
    // It waits for a neighbour in red. The default VRF would know where to send it.
    assert_eq!(router.receive(1, &[&from(1, "10.0.1.9").udp(20)]), []);
    let waits = router.punts.pop().unwrap().packet;
    let other = route(DEFAULT_VRF, "10.0.1.0/24", Target::Port(InterfaceId::new(0)));
    router.rib.apply(&[other]).unwrap();
    let mut all = vrfs();
    all.list[1] = None;
    router.show(all);
    assert_eq!(router.inject(waits, nodes::RELEASED), []);
    assert_eq!(router.drops(), [("no-port", 1)]);
    // It goes while a packet is anywhere between two nodes.
    for node in ["ip4-input", "input-features", "vrf-input", "output-features"] {
        let frame = from(1, "10.9.1.1").udp(20);
        let mut buffer = router.pool.alloc().unwrap();
        buffer.append(frame.len()).unwrap().copy_from_slice(&frame);
        let (interface, network) = (InterfaceId::new(1), ETHERNET as u16);
        let packet = Handoff { interface, egress: interface, network, ..Handoff::of(buffer) };
        assert_eq!(router.inject(packet, node), [], "{node}");
    }
    assert_eq!(router.drops(), [("no-port", 5)]);
    router.assert_no_buffer_is_out();
}

#[test]
fn an_interface_without_its_vrf_forwards_nothing() {
    let mut router = router();
    let mut all = vrfs();
    all.vrfs.remove(&RED);
    router.show(all);
    assert_eq!(router.receive(1, &[&from(1, "10.9.1.1").udp(20)]), []);
    assert_eq!(router.dropped(Reason::Ip4NoRoute), 2, "the packet, and the answer to its sender");
}
