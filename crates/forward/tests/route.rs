//! Routing through the whole graph: what leaves, with which headers, and why packets are dropped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;

use std::net::{IpAddr, Ipv4Addr};

use frames::from;
use graph::{Handoff, InterfaceId, Reason};
use millrace_forward::flow::{Flow, Rewrite};
use millrace_forward::neighbor::{Bounds, SlowPath, Timing};
use millrace_forward::rib::{Change, Miss, Route, Target, Via};
use millrace_forward::state::{DEFAULT_VRF, Settings};
use router::{FLOWS, Router, SETTINGS, host, interfaces, mac, prefix_of};
use wire::build::Payload;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};
use wire::{MacAddr, Protocol, ethernet, icmpv4, icmpv6, ipv4, ipv6};

fn link(frame: &[u8]) -> (MacAddr, MacAddr) {
    let (header, _) = ethernet::Header::parse(frame).unwrap();
    (header.destination, header.source)
}

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

/// An IPv4 frame with one byte changed, header checksum put right unless told not to.
fn damaged(at: usize, value: u8, mend: bool) -> Vec<u8> {
    let mut frame = from(0, "10.11.2.3").udp(30);
    frame[14 + at] = value;
    if mend {
        let _ = ipv4::write_checksum(&mut frame[14..]);
    }
    frame
}

#[test]
fn malformed_ipv4_is_dropped_by_name() {
    let mut router = Router::routed();
    for (frame, reason) in [
        (damaged(0, 0x55, true), Reason::Ip4Version),
        (damaged(0, 0x44, false), Reason::Ip4HeaderLength),
        (damaged(2, 0xff, true), Reason::Ip4TotalLength),
        (damaged(10, 0, false), Reason::Ip4Checksum),
        (damaged(12, 127, true), Reason::Ip4MartianSource),
        (damaged(12, 224, true), Reason::Ip4MartianSource),
        (damaged(16, 127, true), Reason::Ip4MartianDestination),
        (damaged(16, 250, true), Reason::Ip4MartianDestination),
        (from(0, "10.11.2.3").udp(30)[..30].to_vec(), Reason::Ip4Truncated),
        (from(0, "10.11.2.3").udp(30)[..10].to_vec(), Reason::EthernetTruncated),
        (from(0, "10.11.2.3").toward(mac(77)).udp(30), Reason::EthernetNotMine),
        (from(0, "10.11.2.3").vlan(5).udp(30), Reason::VlanUnknown),
        (from(0, "10.0.1.255").udp(30), Reason::Ip4DirectedBroadcast),
    ] {
        router.expect_drop(0, &frame, reason);
    }
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
fn malformed_ipv6_is_dropped_by_name() {
    let mut router = Router::routed();
    let good = || from(0, "2001:db8:12::5").udp(30);
    let changed = |at: usize, value: u8| {
        let mut frame = good();
        frame[14 + at] = value;
        frame
    };
    for (frame, reason) in [
        (changed(0, 0x45), Reason::Ip6Version),
        (changed(4, 0xff), Reason::Ip6PayloadLength),
        (changed(8, 0xff), Reason::Ip6MartianSource),
        (good()[..40].to_vec(), Reason::Ip6Truncated),
        (from(0, "ff05::99").udp(30), Reason::Ip6Multicast),
        (from(0, "fe80::99").udp(30), Reason::Ip6LinkLocal),
        (from(0, "::1").udp(30), Reason::Ip6MartianDestination),
        (from(0, "2001:db8:12::5").source("::").udp(30), Reason::Ip6MartianSource),
        (from(0, "ff02::1").source("::1").echo(8), Reason::Ip6MartianSource),
        (from(0, "ff02::1").source("ff02::2").echo(8), Reason::Ip6MartianSource),
        (from(0, "ff02::1").source("::").echo(8), Reason::IcmpNotAllowed),
    ] {
        router.expect_drop(0, &frame, reason);
    }
}

/// The ICMP error that came back to the host behind `port`, its quotation cut to `quoted` bytes.
fn error4(sent: &(u16, Vec<u8>), port: u16) -> (icmpv4::Message, Vec<u8>) {
    assert_eq!(sent.0, port);
    assert_eq!(link(&sent.1), (host(port), mac(port as u8)));
    let packet = &sent.1[14..];
    let header = ipv4::Header::parse(packet).unwrap();
    assert_eq!(header.source().to_string(), format!("10.0.{port}.1"));
    assert_eq!((header.protocol(), header.ttl()), (Protocol::ICMPV4, 64));
    let (icmp, quoted) = icmpv4::Header::parse(&packet[20..]).unwrap();
    (icmp.message(), quoted.to_vec())
}

fn error6(sent: &(u16, Vec<u8>), port: u16) -> (icmpv6::Message, Vec<u8>) {
    assert_eq!((sent.0, link(&sent.1)), (port, (host(port), mac(port as u8))));
    let packet = &sent.1[14..];
    let header = ipv6::Header::parse(packet).unwrap();
    assert_eq!(IpAddr::V6(header.source()), router::ip(&format!("2001:db8:{port}::1")));
    let (icmp, quoted) =
        icmpv6::Header::parse(&packet[40..], header.source(), header.destination()).unwrap();
    (icmp.message(), quoted.to_vec())
}

#[test]
fn time_exceeded_quotes_the_packet() {
    let mut router = Router::with_hosts();
    let frame = from(0, "10.11.2.3").hops(1).udp(1000);
    let (message, quoted) = error4(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv4::Message::TimeExceeded { code: 0 });
    assert_eq!(quoted, frame[14..14 + 548], "as much as fits 576 bytes, as it came");
    let frame = from(0, "2001:db8:11::3").hops(1).udp(1400);
    let (message, quoted) = error6(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv6::Message::TimeExceeded { code: 0 });
    assert_eq!(quoted, frame[14..14 + 1232], "as much as fits 1280 bytes, as it came");
    assert_eq!((router.dropped(Reason::Ip4Ttl), router.dropped(Reason::Ip6HopLimit)), (1, 1));
}

#[test]
fn no_route_is_told() {
    let mut router = Router::with_hosts();
    let sent = router.forward(1, &from(1, "192.0.2.1").udp(10));
    assert_eq!(error4(&sent, 1).0, icmpv4::Message::Unreachable { code: 0, mtu: 0 });
    let sent = router.forward(1, &from(1, "2001:db8:ffff::1").udp(10));
    assert_eq!(error6(&sent, 1).0, icmpv6::Message::Unreachable { code: 0 });
}

#[test]
fn no_error_about_errors_groups_and_later_fragments() {
    let mut router = Router::with_hosts();
    let unreachable = icmpv4::Message::Unreachable { code: 1, mtu: 0 };
    let error = wire::build::Payload::Icmpv4 { message: unreachable, data: &[0; 28] };
    router.expect_drop(1, &from(1, "192.0.2.1").payload(&error), Reason::Ip4NoRoute);
    let mut fragment = from(1, "192.0.2.1").udp(64);
    fragment[14 + 7] = 3;
    ipv4::write_checksum(&mut fragment[14..]).unwrap();
    router.expect_drop(1, &fragment, Reason::Ip4NoRoute);
    let error = icmpv6::Message::TimeExceeded { code: 0 };
    let error = wire::build::Payload::Icmpv6 { message: error, data: &[0; 48] };
    let frame = from(1, "2001:db8:ffff::1").payload(&error);
    router.expect_drop(1, &frame, Reason::Ip6NoRoute);
}

#[test]
fn a_malformed_option_is_told_of_with_its_place() {
    let mut router = Router::with_hosts();
    let with = |options: [u8; 4]| {
        let mut frame = from(0, "10.11.2.3").udp(30);
        drop(frame.splice(34..34, options));
        frame[14] = 0x46;
        let total = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        ipv4::write_checksum(&mut frame[14..]).unwrap();
        frame
    };
    assert_eq!(router.forward(0, &with([1, 68, 3, 0])).0, 1, "options travel on");
    for (options, pointer) in [([1, 68, 1, 0], 21), ([68, 5, 0, 0], 20)] {
        let frame = with(options);
        let (message, quoted) = error4(&router.forward(0, &frame), 0);
        assert_eq!(message, icmpv4::Message::ParameterProblem { code: 0, pointer });
        assert_eq!(quoted, frame[14..]);
    }
    assert_eq!(router.drops(), [("ip4-options", 2)]);
    router.expect_drop(0, &with([131, 3, 4, 0]), Reason::Ip4SourceRoute);
}

#[test]
fn no_error_about_what_came_to_many_stations() {
    let mut router = Router::with_hosts();
    let all_nodes = MacAddr::new([0x33, 0x33, 0, 0, 0, 1]);
    for group in [all_nodes, MacAddr::BROADCAST] {
        let frame = from(0, "2001:db8::1").toward(group).udp(10);
        router.expect_drop(0, &frame, Reason::LocalPort);
    }
}

#[test]
fn a_link_local_source_is_told_that_its_packet_cannot_leave_the_link() {
    let mut router = Router::with_hosts();
    let frame = from(1, "2001:db8:12::5").source("fe80::77").udp(10);
    let (port, sent) = router.forward(1, &frame);
    assert_eq!((port, link(&sent)), (1, (host(1), mac(1))));
    let header = ipv6::Header::parse(&sent[14..]).unwrap();
    assert_eq!(header.source(), mac(1).link_local());
    let (icmp, quoted) =
        icmpv6::Header::parse(&sent[54..], header.source(), header.destination()).unwrap();
    assert_eq!((icmp.message(), quoted), (icmpv6::Message::Unreachable { code: 2 }, &frame[14..]));
    assert_eq!(router.drops(), [("ip6-link-local", 1)]);
}

#[test]
fn icmp_errors_are_rate_limited() {
    let mut router = Router::with_hosts();
    let frame = from(1, "192.0.2.1").udp(10);
    let frames = [&frame[..]; 200];
    assert_eq!(router.receive(1, &frames).len(), 100, "a tenth of a second's worth");
    assert_eq!(router.drops(), [("ip4-no-route", 200)], "each drop counts once, under its cause");
    assert_eq!(router.counters.icmp_limited.get(), 100);
}

#[test]
fn echo_requests_are_answered() {
    let mut router = Router::with_hosts();
    let frame = from(0, "10.0.2.1").hops(3).echo(100);
    let (port, sent) = router.forward(0, &frame);
    assert_eq!((port, link(&sent)), (0, (host(0), mac(0))));
    let header = ipv4::Header::parse(&sent[14..]).unwrap();
    assert_eq!((header.source(), header.ttl()), (std::net::Ipv4Addr::new(10, 0, 2, 1), 64));
    let (icmp, data) = icmpv4::Header::parse(&sent[34..]).unwrap();
    assert_eq!(icmp.message(), icmpv4::Message::EchoReply { identifier: 7, sequence: 9 });
    assert_eq!(data, &frame[42..]);

    let frame = from(0, "2001:db8:1::1").echo(100);
    let (port, sent) = router.forward(0, &frame);
    assert_eq!((port, link(&sent)), (0, (host(0), mac(0))));
    let header = ipv6::Header::parse(&sent[14..]).unwrap();
    let (icmp, _) =
        icmpv6::Header::parse(&sent[54..], header.source(), header.destination()).unwrap();
    assert_eq!(icmp.message(), icmpv6::Message::EchoReply { identifier: 7, sequence: 9 });
}

#[test]
fn an_echo_to_all_routers_of_a_network_is_answered_by_one() {
    let mut router = Router::with_hosts();
    // Of the network that it came in by, and of another one.
    for (all, own) in [("2001:db8::", "2001:db8::1"), ("2001:db8:2::", "2001:db8::1")] {
        let (port, sent) = router.forward(0, &from(0, all).echo(10));
        let header = ipv6::Header::parse(&sent[14..]).unwrap();
        assert_eq!((port, IpAddr::V6(header.source())), (0, router::ip(own)), "{all}");
        let (source, destination) = (header.source(), header.destination());
        assert!(icmpv6::Header::parse(&sent[54..], source, destination).is_ok());
    }
}

#[test]
fn a_link_local_echo_is_answered_on_its_link() {
    let mut router = Router::with_hosts();
    let own = mac(2).link_local().to_string();
    let frame = from(2, &own).source("fe80::77").echo(10);
    let (port, sent) = router.forward(2, &frame);
    assert_eq!((port, link(&sent)), (2, (host(2), mac(2))));
    let header = ipv6::Header::parse(&sent[14..]).unwrap();
    assert_eq!(IpAddr::V6(header.destination()), router::ip("fe80::77"));
    router.expect_drop(1, &from(1, &own).source("fe80::77").echo(10), Reason::Ip6LinkLocal);
}

#[test]
fn what_nothing_serves_is_refused() {
    let mut router = Router::with_hosts();
    let sent = router.forward(0, &from(0, "10.0.0.1").udp(10));
    assert_eq!(error4(&sent, 0).0, icmpv4::Message::Unreachable { code: 3, mtu: 0 });
    let sent = router.forward(0, &from(0, "10.0.0.1").raw(132, &[0; 12]));
    assert_eq!(error4(&sent, 0).0, icmpv4::Message::Unreachable { code: 2, mtu: 0 });
    let sent = router.forward(0, &from(0, "2001:db8::1").udp(10));
    assert_eq!(error6(&sent, 0).0, icmpv6::Message::Unreachable { code: 4 });
    let sent = router.forward(0, &from(0, "2001:db8::1").raw(132, &[0; 12]));
    assert_eq!(error6(&sent, 0).0, icmpv6::Message::ParameterProblem { code: 1, pointer: 6 });
}

#[test]
fn too_big_is_told_or_fragmented() {
    let mut router = Router::with_hosts();
    let mut narrow = interfaces();
    if let Some(interface) = &mut narrow.list[1] {
        interface.mtu = 1280;
    }
    router.rib.set_interfaces(
        &narrow,
        &(0..3).map(|port| (InterfaceId::new(port), host(port))).collect(),
    );
    router.set_interfaces(narrow);
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
fn a_miss_can_be_reflected() {
    let mut router = Router::new(Miss::Reflect, interfaces());
    let (port, sent) = router.forward(2, &from(2, "203.0.113.7").udp(10));
    assert_eq!((port, link(&sent)), (2, (host(2), mac(2))));
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
    assert_eq!(
        ipv4::Header::parse(&sent[14..]).unwrap().source(),
        std::net::Ipv4Addr::new(10, 11, 3, 1)
    );
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

/// A router whose flow 10.0.0.99:1111 to 10.11.2.3:2222 leaves by port 1 as 10.0.1.1:4444, and its answers come back; the
/// same for IPv6.
fn with_translated_flow() -> Router {
    let mut router = Router::with_hosts_and(FLOWS);
    let to = |router: &mut Router, tuple, port: u16, rewrite| {
        let (source_mac, destination_mac) = (mac(port as u8), host(port));
        let flow =
            Flow { tuple, egress: InterfaceId::new(port), source_mac, destination_mac, rewrite };
        router.flows.insert(&flow, &interfaces()).unwrap();
    };
    for (inside, outside, remote) in [
        ("10.0.0.99", "10.0.1.1", "10.11.2.3"),
        ("2001:db8::99", "2001:db8:1::1", "2001:db8:11::3"),
    ] {
        let [inside, outside, remote] = [inside, outside, remote].map(router::ip);
        let rewrite =
            Rewrite { source: Some(outside), source_port: Some(4444), ..Rewrite::default() };
        to(&mut router, udp((inside, 1111), (remote, 2222)), 1, rewrite);
        let rewrite = Rewrite {
            destination: Some(inside),
            destination_port: Some(1111),
            ..Rewrite::default()
        };
        to(&mut router, udp((remote, 2222), (outside, 4444)), 0, rewrite);
    }
    router
}

fn udp((source, from): (IpAddr, u16), (destination, to): (IpAddr, u16)) -> FiveTuple {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            FiveTuple::V4(FiveTuple4::new((source, from), (destination, to), Protocol::UDP))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            FiveTuple::V6(FiveTuple6::new((source, from), (destination, to), Protocol::UDP))
        }
        _ => panic!("two families"),
    }
}

#[test]
fn errors_about_translated_packets_go_to_who_sent_them() {
    let mut router = with_translated_flow();
    let frame = from(0, "10.11.2.3").udp(100);
    let (port, sent) = router.forward(0, &frame);
    let header = ipv4::Header::parse(&sent[14..]).unwrap();
    assert_eq!((port, header.source().to_string()), (1, "10.0.1.1".to_owned()));

    let frame = from(0, "10.11.2.3").hops(1).udp(100);
    let (message, quoted) = error4(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv4::Message::TimeExceeded { code: 0 });
    assert_eq!(quoted, frame[14..], "as it came");
    let frame = from(0, "10.11.2.3").dont_fragment().udp(1500);
    let (message, quoted) = error4(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv4::Message::Unreachable { code: 4, mtu: 1500 });
    assert_eq!(quoted, frame[14..14 + 548]);
    let fragments = router.receive(0, &[&from(0, "10.11.2.3").udp(1500)]);
    assert_eq!(fragments.len(), 2, "what is fragmented is translated");
    let header = ipv4::Header::parse(&fragments[0].1[14..]).unwrap();
    assert_eq!(header.source().to_string(), "10.0.1.1");

    let frame = from(0, "2001:db8:11::3").hops(1).udp(100);
    let (message, quoted) = error6(&router.forward(0, &frame), 0);
    assert_eq!((message, &quoted[..]), (icmpv6::Message::TimeExceeded { code: 0 }, &frame[14..]));
    let frame = from(0, "2001:db8:11::3").udp(1460);
    let (message, quoted) = error6(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv6::Message::PacketTooBig { mtu: 1500 });
    assert_eq!(quoted, frame[14..14 + 1232]);
}

#[test]
fn errors_from_outside_about_translated_packets_reach_who_sent_them() {
    let mut router = with_translated_flow();
    for (destination, on_the_way) in
        [("10.11.2.3", "10.0.1.77"), ("2001:db8:11::3", "2001:db8:1::77")]
    {
        for from_whom in [destination, on_the_way] {
            let frame = from(0, destination).udp(100);
            let outside = router.forward(0, &frame).1;
            let data = &outside[14..];
            let back = from(1, if data[0] >> 4 == 4 { "10.0.1.1" } else { "2001:db8:1::1" });
            let back = back.source(from_whom);
            let error = if data[0] >> 4 == 4 {
                let message = icmpv4::Message::Unreachable { code: 4, mtu: 1400 };
                back.payload(&wire::build::Payload::Icmpv4 { message, data })
            } else {
                let message = icmpv6::Message::PacketTooBig { mtu: 1400 };
                back.payload(&wire::build::Payload::Icmpv6 { message, data })
            };
            let (port, sent) = router.forward(1, &error);
            assert_eq!((port, link(&sent)), (0, (host(0), mac(0))));
            let quoted = match ipv4::Header::parse(&sent[14..]) {
                Ok(header) => {
                    assert_eq!(header.destination().to_string(), "10.0.0.99");
                    assert_eq!(header.source().to_string(), from_whom);
                    icmpv4::Header::parse(&sent[34..]).unwrap().1
                }
                Err(_) => {
                    let header = ipv6::Header::parse(&sent[14..]).unwrap();
                    assert_eq!(IpAddr::V6(header.destination()), router::ip("2001:db8::99"));
                    let (from, to) = (header.source(), header.destination());
                    icmpv6::Header::parse(&sent[54..], from, to).unwrap().1
                }
            };
            // The quoted packet has one hop less than the one that was sent.
            let mut wanted = frame[14..].to_vec();
            match wanted[0] >> 4 {
                4 => ipv4::decrement_ttl(ipv4::Header::checked_mut(&mut wanted).unwrap()).unwrap(),
                _ => wanted[7] -= 1,
            }
            assert_eq!(quoted, wanted);
        }
    }
    // Of who is not in the flow, nothing is translated.
    let sent = router.forward(1, &from(1, "10.0.1.1").udp(10));
    assert_eq!(error4(&sent, 1).0, icmpv4::Message::Unreachable { code: 3, mtu: 0 });
}

#[test]
fn errors_from_inside_about_translated_packets_show_no_inside_address() {
    let mut router = with_translated_flow();
    let ends = [
        ("10.0.0.99", "10.0.0.77", "10.0.1.1", "10.11.2.3"),
        ("2001:db8::99", "2001:db8::77", "2001:db8:1::1", "2001:db8:11::3"),
    ];
    for (host, on_the_way, outside, remote) in ends {
        let answer = Payload::Udp { source_port: 2222, destination_port: 4444, data: &[7; 40] };
        let answer = from(1, outside).source(remote).payload(&answer);
        let (port, inside) = router.forward(1, &answer);
        assert_eq!(port, 0);
        for from_whom in [host, on_the_way] {
            let data = &inside[14..];
            let back = from(0, remote).source(from_whom);
            let error = if data[0] >> 4 == 4 {
                let message = icmpv4::Message::Unreachable { code: 3, mtu: 0 };
                back.payload(&Payload::Icmpv4 { message, data })
            } else {
                let message = icmpv6::Message::Unreachable { code: 4 };
                back.payload(&Payload::Icmpv6 { message, data })
            };
            let (port, sent) = router.forward(0, &error);
            assert_eq!(port, 1);
            let (ends, quoted) = match ipv4::Header::parse(&sent[14..]) {
                Ok(header) => {
                    let ends: (IpAddr, IpAddr) =
                        (header.source().into(), header.destination().into());
                    (ends, icmpv4::Header::parse(&sent[34..]).unwrap().1)
                }
                Err(_) => {
                    let header = ipv6::Header::parse(&sent[14..]).unwrap();
                    let (from, to) = (header.source(), header.destination());
                    let quoted = icmpv6::Header::parse(&sent[54..], from, to).unwrap().1;
                    ((from.into(), to.into()), quoted)
                }
            };
            assert_eq!(ends, (router::ip(outside), router::ip(remote)), "from {from_whom}");
            // As the answer was, with one hop less.
            let mut wanted = answer[14..].to_vec();
            match wanted[0] >> 4 {
                4 => ipv4::decrement_ttl(ipv4::Header::checked_mut(&mut wanted).unwrap()).unwrap(),
                _ => wanted[7] -= 1,
            }
            assert_eq!(quoted, wanted);
        }
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn an_error_comes_from_an_address_that_its_receiver_can_route() {
    let mut narrow = interfaces();
    if let Some(interface) = &mut narrow.list[1] {
        interface.addresses6.retain(|(address, _)| address.is_unicast_link_local());
        interface.addresses4 = vec![(Ipv4Addr::new(192, 0, 2, 1), 24)];
        interface.addresses4.push((Ipv4Addr::new(10, 0, 1, 1), 24));
    }
    let mut router = Router::with_hosts();
    router.rib.set_interfaces(
        &narrow,
        &(0..3).map(|port| (InterfaceId::new(port), host(port))).collect(),
    );
    router.set_interfaces(narrow);
    let source6 = |sent: &[u8]| ipv6::Header::parse(&sent[14..]).unwrap().source();
    // The interface has only a link-local address: for a global one, another's.
    let sent =
        router.receive(1, &[&from(1, "2001:db8:10::3").source("2001:db8:11::9").hops(1).udp(9)]);
    assert_eq!(source6(&sent[0].1).to_string(), "2001:db8::1");
    let own = mac(1).link_local();
    let sent = router.receive(1, &[&from(1, &own.to_string()).source("fe80::9").udp(9)]);
    assert_eq!(source6(&sent[0].1), own);
    // Of several, the one on the receiver's network.
    let (_, sent) = router.forward(1, &from(1, "10.10.2.3").hops(1).udp(9));
    let header = ipv4::Header::parse(&sent[14..]).unwrap();
    assert_eq!(header.source().to_string(), "10.0.1.1");
    // About what was sent to the router itself, the address that was asked (RFC 4443 2.2 (a)).
    let (_, sent) = router.forward(0, &from(0, "2001:db8:2::1").udp(9));
    assert_eq!(source6(&sent).to_string(), "2001:db8:2::1");
}

#[test]
fn routers_in_a_row_spread_flows_each_in_its_own_way() {
    let mut router = Router::with_hosts();
    let via = |port: u16| Via {
        address: router::ip(&format!("10.0.{port}.99")),
        interface: None,
        weight: 1,
    };
    let prefix = prefix_of("198.51.100.0/24");
    let target = Target::Via(vec![via(1), via(2)]);
    let rib = std::mem::replace(&mut router.rib, router::no_routes());
    let (timing, bounds) = (Timing::default(), Bounds::default());
    let mut slow = SlowPath::<Handoff>::new(rib, router.state.clone(), timing, bounds, 0);
    slow.apply(&[Change::Add(Route::of_static(DEFAULT_VRF, prefix, target))]).unwrap();
    for port in 1..3 {
        let address = router::ip(&format!("10.0.{port}.99"));
        slow.add_neighbor(InterfaceId::new(port), address, host(port), 0, &mut Vec::new()).unwrap();
    }
    let mut ways = |seed: u64| -> Vec<u16> {
        let settings = Settings { hash_seed: seed, ..SETTINGS };
        slow.set_switches(Miss::Unreachable, settings, timing, bounds);
        let frames = (0..200).map(|host| from(0, &format!("198.51.100.{host}")).udp(10));
        frames.map(|frame| router.forward(0, &frame).0).collect()
    };
    let (first, again, second) = (ways(1), ways(1), ways(2));
    assert_eq!(first, again);
    // Of what the first router sends to the second, that uses both of its ways.
    let to_second = first.iter().zip(&second).filter(|(first, _)| **first == 1);
    let onward = to_second.filter(|(_, second)| **second == 1).count();
    assert!((20..80).contains(&onward), "{onward} of about 100");
}
