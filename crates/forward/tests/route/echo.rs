//! The router answers echo requests.

use std::net::IpAddr;

use graph::Reason;
use wire::{icmpv4, icmpv6, ipv4, ipv6};

use crate::frames::from;
use crate::link;
use crate::router::{self, Router, host, mac};

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
