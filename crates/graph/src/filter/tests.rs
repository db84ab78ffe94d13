use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use wire::MacAddr;

use super::*;

/// A frame with `tags` VLAN tags around `payload`.
fn frame(tags: usize, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    (0..tags).for_each(|n| bytes.extend([0x81, 0, 0, n as u8 + 5]));
    bytes.extend(ether_type.0.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn ip4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, protocol, 0, 0];
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    bytes
}

fn ip6(source: Ipv6Addr, destination: Ipv6Addr, hop_by_hop: bool, protocol: u8) -> Vec<u8> {
    let length = if hop_by_hop { 8 } else { 0 };
    let first = if hop_by_hop { 0 } else { protocol };
    let mut bytes = vec![0x60, 0, 0, 0, 0, length, first, 64];
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    if hop_by_hop {
        // Itself, then six bytes of padding.
        bytes.extend([protocol, 0, 1, 4, 0, 0, 0, 0]);
    }
    bytes
}

fn host(address: impl Into<IpAddr>) -> Filter {
    Filter { host: Some(address.into()), ..Filter::default() }
}

fn protocol(text: &str) -> Filter {
    Filter { protocol: Some(text.parse().unwrap()), ..Filter::default() }
}

proptest! {
    #[test]
    fn finds_ip4_behind_tags(a: u32, b: u32, other: u32, number: u8, tags in 0..=TAGS) {
        let (a, b, other): (Ipv4Addr, Ipv4Addr, Ipv4Addr) = (a.into(), b.into(), other.into());
        let bytes = frame(tags, EtherType::IPV4, &ip4(a, b, number));
        prop_assert!(host(a).matches(PortId::new(1), &bytes));
        prop_assert!(host(b).matches(PortId::new(1), &bytes));
        prop_assert_eq!(host(other).matches(PortId::new(1), &bytes), other == a || other == b);
        prop_assert!(!host(a.to_ipv6_mapped()).matches(PortId::new(1), &bytes));
        prop_assert!(protocol(&number.to_string()).matches(PortId::new(1), &bytes));
        prop_assert!(!protocol(&number.wrapping_add(1).to_string()).matches(PortId::new(1), &bytes));
        prop_assert!(!protocol("arp").matches(PortId::new(1), &bytes));
    }

    #[test]
    fn finds_ip6_behind_tags_and_extensions(a: u128, b: u128, tags in 0..=TAGS, options: bool) {
        let (a, b): (Ipv6Addr, Ipv6Addr) = (a.into(), b.into());
        let bytes = frame(tags, EtherType::IPV6, &ip6(a, b, options, 58));
        prop_assert!(host(a).matches(PortId::new(1), &bytes));
        prop_assert!(host(b).matches(PortId::new(1), &bytes));
        prop_assert!(protocol("icmp6").matches(PortId::new(1), &bytes));
        prop_assert!(!protocol("udp").matches(PortId::new(1), &bytes));
        prop_assert!(!protocol("icmp").matches(PortId::new(1), &bytes));
    }

    #[test]
    fn any_bytes_are_looked_at_safely(bytes in proptest::collection::vec(any::<u8>(), 0..120), port: u16) {
        prop_assert!(Filter::default().matches(PortId::new(port), &bytes));
        let only = Filter { port: Some(PortId::new(3)), ..Filter::default() };
        prop_assert_eq!(only.matches(PortId::new(port), &bytes), port == 3);
        let short = bytes.len() < 34;
        prop_assert!(!(short && host(Ipv4Addr::LOCALHOST).matches(PortId::new(port), &bytes)));
        prop_assert!(!(short && protocol("tcp").matches(PortId::new(port), &bytes)));
    }
}

#[test]
fn finds_arp_by_either_end() {
    let packet = arp::Packet::new(
        arp::Operation::Request,
        (MacAddr::new([2; 6]), Ipv4Addr::new(10, 0, 0, 1)),
        (MacAddr::ZERO, Ipv4Addr::new(10, 0, 0, 2)),
    );
    let bytes = frame(1, EtherType::ARP, zerocopy::IntoBytes::as_bytes(&packet));
    assert!(protocol("arp").matches(PortId::new(0), &bytes));
    assert!(host(Ipv4Addr::new(10, 0, 0, 1)).matches(PortId::new(0), &bytes));
    assert!(host(Ipv4Addr::new(10, 0, 0, 2)).matches(PortId::new(0), &bytes));
    assert!(!host(Ipv4Addr::new(10, 0, 0, 3)).matches(PortId::new(0), &bytes));
    assert!(!protocol("icmp").matches(PortId::new(0), &bytes));
}

#[test]
fn every_part_must_match() {
    let (a, b) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let bytes = frame(0, EtherType::IPV4, &ip4(a, b, 6));
    let all = Filter { port: Some(PortId::new(1)), ..host(a) };
    let all = Filter { protocol: Some("tcp".parse().unwrap()), ..all };
    assert!(all.matches(PortId::new(1), &bytes));
    assert!(!all.matches(PortId::new(2), &bytes));
    assert!(
        !Filter { protocol: Some("udp".parse().unwrap()), ..all }.matches(PortId::new(1), &bytes)
    );
}

#[test]
fn unknown_protocols_are_refused_with_the_choice() {
    for text in ["", "tpc", "256", "-1"] {
        let error = text.parse::<Match>().unwrap_err();
        assert!(error.to_string().contains("use tcp, udp"), "{error}");
    }
}

#[test]
fn ports_and_ends_are_told_apart() {
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let mut packet = ip4(a, b, 17);
    packet[3] = 28;
    packet.extend([0x13, 0x88, 0, 53, 0, 8, 0, 0]);
    let dns = frame(1, EtherType::IPV4, &packet);
    let wanted = |filter: Filter| filter.matches(PortId::new(1), &dns);
    let any = Filter::default;
    assert!(wanted(Filter { destination_port: Some(53), source_port: Some(5000), ..any() }));
    assert!(!wanted(Filter { source_port: Some(53), ..any() }));
    let either = |port| wanted(Filter { transport_port: Some(port), ..any() });
    assert!(either(53) && either(5000) && !either(54));
    assert!(wanted(Filter { source: Some(a.into()), destination: Some(b.into()), ..any() }));
    assert!(!wanted(Filter { source: Some(b.into()), ..any() }));
    assert!(!wanted(Filter { destination: Some(a.into()), ..any() }));
    assert!(wanted(Filter { ether_type: Some(EtherType::IPV4), ..any() }));
    assert!(!wanted(Filter { ether_type: Some(EtherType::ARP), ..any() }));
    let icmp = frame(0, EtherType::IPV4, &ip4(a, b, 1));
    assert!(!Filter { destination_port: Some(0), ..any() }.matches(PortId::new(1), &icmp));
    assert!(!Filter { transport_port: Some(0), ..any() }.matches(PortId::new(1), &icmp));
    let lldp = frame(0, EtherType(0x88cc), &[0; 40]);
    assert!(Filter { ether_type: Some(EtherType(0x88cc)), ..any() }.matches(PortId::new(1), &lldp));
    assert!(!Filter { host: Some(a.into()), ..any() }.matches(PortId::new(1), &lldp));
}
