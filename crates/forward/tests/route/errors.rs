//! ICMP errors: who is told of what, and from which address.

use std::net::Ipv4Addr;

use graph::{InterfaceId, Reason};
use millrace_forward::state::Settings;
use wire::{MacAddr, icmpv4, icmpv6, ipv4, ipv6};

use crate::frames::from;
use crate::router::{Router, SETTINGS, host, interfaces, mac};
use crate::{error4, error6, link, with_narrow_port};

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
fn what_is_on_its_last_hop_expires_however_long_it_is() {
    let mut router = with_narrow_port();
    for frame in [from(0, "10.11.2.3"), from(0, "10.11.2.3").dont_fragment()] {
        let frame = frame.hops(1).udp(1400);
        let (message, quoted) = error4(&router.forward(0, &frame), 0);
        assert_eq!(message, icmpv4::Message::TimeExceeded { code: 0 });
        assert_eq!(quoted, frame[14..14 + 548], "as it came");
    }
    let frame = from(0, "2001:db8:11::3").hops(1).udp(1400);
    let (message, quoted) = error6(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv6::Message::TimeExceeded { code: 0 });
    assert_eq!(quoted, frame[14..14 + 1232]);
    assert_eq!(router.drops(), [("ip4-ttl", 2), ("ip6-hop-limit", 1)]);
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
fn ipv6_fragments_are_told_of_whichever_they_are() {
    let mut router = with_narrow_port();
    for protocol in [17_u8, 58] {
        // The last one, at offset 1448.
        let header = [protocol, 0, 0x05, 0xa8, 0, 0, 0xab, 0xcd];
        let fragment = |hops: u8, length: usize| {
            let payload = [&header[..], &vec![0; length][..]].concat();
            from(0, "2001:db8:11::3").hops(hops).raw(44, &payload)
        };
        let (message, _) = error6(&router.forward(0, &fragment(64, 1400)), 0);
        assert_eq!(message, icmpv6::Message::PacketTooBig { mtu: 1280 });
        let (message, _) = error6(&router.forward(0, &fragment(1, 64)), 0);
        assert_eq!(message, icmpv6::Message::TimeExceeded { code: 0 });
    }
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
fn no_error_about_what_was_to_or_from_all_hosts_of_a_network() {
    let mut router = Router::with_hosts();
    let mut optional = from(0, "10.0.1.255").udp(30);
    // A time stamp option that is shorter than its own head.
    drop(optional.splice(34..34, [1, 68, 1, 0]));
    optional[14] = 0x46;
    let total = (optional.len() - 14) as u16;
    optional[16..18].copy_from_slice(&total.to_be_bytes());
    ipv4::write_checksum(&mut optional[14..]).unwrap();
    router.expect_drop(0, &optional, Reason::Ip4Options);
    drop(router);
    // Where they are forwarded, an error to one would reach them all.
    let forwarded = Settings { directed_broadcast: true, ..SETTINGS };
    let mut router = Router::with_hosts_and(forwarded);
    assert_eq!(router.forward(0, &from(0, "10.0.1.255").udp(30)).0, 1);
    router.expect_drop(0, &from(0, "10.0.1.255").hops(1).udp(30), Reason::Ip4Ttl);
    let long = from(0, "10.0.1.255").dont_fragment().udp(1500);
    router.expect_drop(0, &long, Reason::Ip4DontFragment);
    let spoofed = from(0, "10.12.2.3").source("10.0.1.255").hops(1).udp(30);
    router.expect_drop(0, &spoofed, Reason::Ip4Ttl);
    // One host beside it is told.
    let (message, _) = error4(&router.forward(0, &from(0, "10.0.1.99").hops(1).udp(30)), 0);
    assert_eq!(message, icmpv4::Message::TimeExceeded { code: 0 });
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
