//! The router answers echo requests.

use std::net::{IpAddr, Ipv6Addr};

use graph::Reason;
use millrace_forward::Cause;
use millrace_forward::state::Settings;
use wire::build::{Neighbor, Payload};
use wire::tcp::{Fields, Flags};
use wire::{MacAddr, icmpv4, icmpv6, ipv4, ipv6};

use crate::frames::{FrameBuilder, from};
use crate::link;
use crate::router::{self, Router, SETTINGS, host, mac};

#[test]
fn echo_requests_are_answered() {
    let mut router = Router::with_hosts();
    // The last hop is enough to get here (RFC 1812 5.3.1).
    let frame = from(0, "10.0.2.1").hops(1).echo(100);
    let (port, sent) = router.forward(0, &frame);
    assert_eq!((port, link(&sent)), (0, (host(0), mac(0))));
    let header = ipv4::Header::parse(&sent[14..]).unwrap();
    assert_eq!((header.source(), header.ttl()), (std::net::Ipv4Addr::new(10, 0, 2, 1), 64));
    let (icmp, data) = icmpv4::Header::parse(&sent[34..]).unwrap();
    assert_eq!(icmp.message(), icmpv4::Message::EchoReply { identifier: 7, sequence: 9 });
    assert_eq!(data, &frame[42..]);

    let frame = from(0, "2001:db8:1::1").hops(1).echo(100);
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
fn what_says_that_it_is_from_all_hosts_of_a_network_is_not_answered() {
    let forwarded = Settings { directed_broadcast: true, ..SETTINGS };
    let mut router = Router::with_hosts_and(forwarded);
    assert_eq!(router.forward(0, &from(0, "10.0.1.255").udp(10)).0, 1, "it would reach them");
    let spoofed = || from(0, "10.0.0.1").source("10.0.1.255");
    router.expect_drop(0, &spoofed().echo(10), Reason::IcmpNotAllowed);
    let fields = Fields {
        source_port: 7,
        destination_port: 9,
        sequence: 1000,
        acknowledgment: 0,
        flags: Flags::SYN,
        window: 0,
    };
    let syn = Payload::Tcp { fields, options: &[], data: &[] };
    router.expect_drop(0, &spoofed().payload(&syn), Reason::ResetNotAllowed);
    assert_eq!(router.forward(0, &from(0, "10.0.0.1").source("10.0.1.99").echo(10)).0, 1);
}

/// A frame from the host behind port 1 to a group, of a whole hop count. On port 0, the link-local address ends in zeros, so
/// that its solicited node is that of all routers.
fn to_group(group: Ipv6Addr) -> FrameBuilder {
    from(1, &group.to_string()).toward(MacAddr::from_ipv6_multicast(group)).hops(255)
}

#[test]
fn a_router_hears_the_groups_that_it_belongs_to() {
    let mut router = Router::with_hosts();
    let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    // Who looks for all routers of the network asks the solicited node of their address.
    let [own, all_routers] = ["2001:db8:1::1", "2001:db8:1::"].map(v6);
    let [of_own, of_all] = [own, all_routers].map(ipv6::solicited_node);
    for group in [v6("ff02::1"), v6("ff02::2"), v6("ff05::2"), of_own, of_all] {
        let (port, sent) = router.forward(1, &to_group(group).echo(10));
        let source = ipv6::Header::parse(&sent[14..]).unwrap().source();
        assert_eq!((port, source), (1, own), "{group}");
    }
    for target in [own, all_routers] {
        let message = Neighbor::Solicitation { target, source_link_layer: Some(host(1)) };
        // Later it asks again, there alone, from its link-local address.
        let [again, link_local] = [target.to_string(), host(1).link_local().to_string()];
        let again = from(1, &again).source(&link_local).hops(255);
        for frame in [to_group(ipv6::solicited_node(target)), again] {
            let frame = frame.payload(&Payload::Neighbor(message));
            assert_eq!(router.receive(1, &[&frame]), []);
            assert_eq!(router.punts.pop().unwrap().cause, Cause::Nd as u16, "{target}");
        }
    }
    for group in [v6("ff02::5"), v6("ff05::1"), ipv6::solicited_node(v6("2001:db8::9"))] {
        router.expect_drop(1, &to_group(group).echo(10), Reason::Ip6Multicast);
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
