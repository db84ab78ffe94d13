use crate::PortId;
use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::option::weighted;
use proptest::prelude::*;

use super::*;

/// Few values of each, so that filters and frames meet.
fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = (0..4_u8).prop_map(|n| IpAddr::from(Ipv4Addr::new(10, 0, 0, n)));
    let v6 = (0..4_u16).prop_map(|n| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, n, 0, 1)));
    prop_oneof![v4, v6]
}

fn port() -> impl Strategy<Value = u16> {
    0..3_u16
}

fn filter() -> impl Strategy<Value = Filter> {
    let protocol = prop_oneof![
        Just(Match::Arp),
        Just(Match::Ip(Protocol::TCP)),
        Just(Match::Ip(Protocol::UDP)),
        Just(Match::Ip(Protocol(1))),
    ];
    let kind = prop_oneof![
        Just(EtherType::IPV4),
        Just(EtherType::IPV6),
        Just(EtherType::ARP),
        Just(EtherType(0x88cc)),
    ];
    (
        weighted(0.3, address()),
        weighted(0.3, protocol),
        weighted(0.3, kind),
        weighted(0.3, address()),
        weighted(0.3, address()),
        weighted(0.3, port()),
        weighted(0.3, port()),
    )
        .prop_map(|(host, protocol, ether_type, source, destination, sport, dport)| Filter {
            port: None,
            host,
            protocol,
            ether_type,
            source,
            destination,
            source_port: sport,
            destination_port: dport,
            transport_port: None,
        })
}

/// A frame of such values: tags, fragments, extension headers, other protocols, and cut off anywhere.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![Just(6_u8), Just(17), Just(1), Just(58)];
    let parts =
        (0..4_usize, 0..3_usize, 0..4_u8, 0..4_u8, number, port(), port(), 0..4_u16, 20..90_usize);
    parts.prop_map(|(kind, tags, from, to, number, sport, dport, fragment, length)| {
        let mut bytes = vec![2; 12];
        (0..tags).for_each(|n| bytes.extend([0x81, 0, 0, n as u8]));
        let v6 = |n: u8| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, n.into(), 0, 1).octets();
        match kind {
            0 => {
                bytes.extend([8, 0, 0x45, 0, 0, 40, 0, 0]);
                bytes.extend([0_u16, 0x2000, 1, 0x4000][usize::from(fragment)].to_be_bytes());
                bytes.extend([64, number, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
            }
            1 => {
                bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, number, 64]);
                bytes.extend(v6(from).into_iter().chain(v6(to)));
            }
            2 => {
                bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
                bytes.extend([2, 2, 2, 2, 2, 2, 10, 0, 0, from, 0, 0, 0, 0, 0, 0, 10, 0, 0, to]);
            }
            _ => bytes.extend([0x88, 0xcc]),
        }
        bytes.extend([sport, dport].into_iter().flat_map(u16::to_be_bytes));
        bytes.resize(length, 0);
        bytes
    })
}

fn found(classifier: &Classifier, frame: &[u8]) -> Vec<u16> {
    let mut found = Vec::new();
    classifier.find(frame, |owner| found.push(owner));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_match_is_overlooked(
        filters in proptest::collection::vec(weighted(0.9, filter()), 0..40),
        frames in proptest::collection::vec(frame(), 1..20),
    ) {
        let classifier = Classifier::new(filters.iter().map(Option::as_ref));
        for frame in &frames {
            let candidates = found(&classifier, frame);
            prop_assert!(candidates.is_sorted(), "in the order of owners");
            for (owner, filter) in filters.iter().enumerate() {
                let Some(filter) = filter else {
                    prop_assert!(!candidates.contains(&(owner as u16)));
                    continue;
                };
                if filter.matches(PortId::new(0), frame) {
                    prop_assert!(candidates.contains(&(owner as u16)), "{filter:?} {frame:02x?}");
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_looked_at_safely(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let any = Filter::default();
        let classifier = Classifier::new([Some(&any), None, Some(&any)].into_iter());
        prop_assert_eq!(found(&classifier, &bytes), [0, 2]);
    }
}

#[test]
fn what_cannot_match_is_no_candidate() {
    let host: IpAddr = Ipv4Addr::new(10, 0, 0, 1).into();
    let filters = [
        Filter { host: Some(host), ..Filter::default() },
        Filter { destination_port: Some(53), ..Filter::default() },
        Filter { source: Some(host), ..Filter::default() },
        Filter { protocol: Some(Match::Ip(Protocol::TCP)), ..Filter::default() },
    ];
    let classifier = Classifier::new(filters.iter().map(Some));
    let mut udp = vec![2; 12];
    udp.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
    udp.extend([0x13, 0x88, 0, 53, 0, 8, 0, 0]);
    assert_eq!(found(&classifier, &udp), [0, 1]);
    udp[37] = 54;
    assert_eq!(found(&classifier, &udp), [0]);
}
