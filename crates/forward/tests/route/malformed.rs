//! Packets that are wrong are dropped, each under its reason.

use graph::Reason;
use wire::{icmpv4, ipv4};

use crate::error4;
use crate::frames::from;
use crate::router::{Router, mac};

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
