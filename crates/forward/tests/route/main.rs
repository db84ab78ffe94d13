//! Routing through the whole graph: what leaves, with which headers, and why packets are dropped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod echo;
mod errors;
mod forwarding;
#[path = "../router/frames.rs"]
mod frames;
mod malformed;
#[path = "../router/mod.rs"]
mod router;
mod translated;

use std::net::IpAddr;

use router::{Router, host, interfaces, mac};
use wire::{MacAddr, Protocol, ethernet, icmpv4, icmpv6, ipv4, ipv6};

/// The hosts are there, and port 1 takes packets of up to 1,280 bytes.
fn with_narrow_port() -> Router {
    let mut router = Router::with_hosts();
    let mut narrow = interfaces();
    if let Some(interface) = &mut narrow.list[1] {
        interface.mtu = 1280;
    }
    router.show(narrow);
    router
}

fn link(frame: &[u8]) -> (MacAddr, MacAddr) {
    let (header, _) = ethernet::Header::parse(frame).unwrap();
    (header.destination, header.source)
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
