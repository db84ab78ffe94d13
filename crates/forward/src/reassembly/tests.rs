use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

const HZ: u64 = 1000;
/// Bytes before the payload in these packets: 4 stay, 2 are the fragment's own.
const HEADER: usize = 4;
const OWN: usize = 6;

fn key(source: u32, identification: u32) -> Key {
    let source = IpAddr::V4(Ipv4Addr::from_bits(source));
    let destination = Ipv4Addr::LOCALHOST.into();
    Key { vrf: 0, source, destination, identification, protocol: 17 }
}

fn packet(payload: &[u8]) -> Vec<u8> {
    [b"headxx", payload].concat()
}

fn piece(key: Key, offset: usize, more: bool, packet: &[u8]) -> Piece<'_> {
    let (link, patch) = (&b"link"[..], Some((3, b'D')));
    Piece {
        key,
        offset,
        more,
        interface: InterfaceId::new(7),
        link,
        packet,
        header: HEADER,
        payload: OWN,
        patch,
    }
}

fn whole(payload: &[u8]) -> Added {
    Added::Whole([b"heaD", payload].concat())
}

#[test]
fn a_gap_waits_and_a_repetition_changes_nothing() {
    let mut table = Reassembly::default();
    let (first, last) = (packet(b"01234567"), packet(b"89"));
    assert_eq!(table.add(&piece(key(1, 1), 8, false, &last), 0), Added::Waits);
    assert_eq!(table.add(&piece(key(1, 1), 8, false, &last), 0), Added::Waits);
    assert_eq!(table.add(&piece(key(1, 2), 0, true, &first), 0), Added::Waits, "another datagram");
    let elsewhere = Key { vrf: 1, ..key(1, 1) };
    assert_eq!(table.add(&piece(elsewhere, 0, true, &first), 0), Added::Waits, "another VRF");
    assert_eq!(table.add(&piece(key(1, 1), 0, true, &first), 0), whole(b"0123456789"));
    assert_eq!(table.add(&piece(key(1, 2), 8, false, &last), 0), whole(b"0123456789"));
    assert_eq!(table.add(&piece(elsewhere, 8, false, &last), 0), whole(b"0123456789"));
    assert_eq!(table.expire(u64::MAX, HZ), None, "nothing is left");
}

#[test]
fn what_fits_nowhere_is_refused() {
    let mut table = Reassembly::default();
    let eight = packet(b"01234567");
    assert_eq!(table.add(&piece(key(1, 1), 0, true, &packet(b"")), 0), Added::Refused(1));
    assert_eq!(table.add(&piece(key(1, 1), 0, true, &packet(b"123")), 0), Added::Uneven);
    assert_eq!(table.add(&piece(key(1, 1), 65_528, false, &eight), 0), Added::Refused(1));
    // An overlap, a second end, and something beyond the end: each takes the datagram with it.
    for (offset, more) in [(8, true), (0, false), (24, true)] {
        assert_eq!(table.add(&piece(key(1, 1), 16, false, &packet(b"abc")), 0), Added::Waits);
        let long = packet(b"0123456789abcdef");
        let misfit = piece(key(1, 1), offset, more, &long);
        let added = table.add(&misfit, 0);
        let expected = if more { Added::Refused(2) } else { whole(b"0123456789abcdef") };
        assert_eq!(added, expected, "at {offset}");
        table = Reassembly::default();
    }
}

#[test]
fn whole_by_itself_waits_for_nobody() {
    let mut table = Reassembly::default();
    let part = packet(b"01234567");
    assert_eq!(table.add(&piece(key(1, 1), 0, true, &part), 0), Added::Waits);
    assert_eq!(table.add(&piece(key(1, 1), 0, false, &packet(b"atom")), 0), whole(b"atom"));
    let expired = table.expire(60 * HZ, HZ).unwrap();
    let first =
        First { interface: InterfaceId::new(7), network: 4, frame: [b"link", &part[..]].concat() };
    assert_eq!(expired, Expired { fragments: 1, first: Some(first) });
}

#[test]
fn time_and_room_are_bounded() {
    let mut table = Reassembly::default();
    let part = packet(b"01234567");
    for n in 0..PER_SOURCE as u32 {
        table.add(&piece(key(1, n), 8, true, &part), u64::from(n));
        assert_eq!(table.make_room(), None);
    }
    table.add(&piece(key(1, 99), 8, true, &part), 50);
    assert_eq!(table.make_room().map(|expired| expired.fragments), Some(1));
    assert_eq!(table.make_room(), None);
    for source in 2..=DATAGRAMS as u32 - PER_SOURCE as u32 + 1 {
        table.add(&piece(key(source, 0), 8, true, &part), 100);
        assert_eq!(table.make_room(), None);
    }
    table.add(&piece(key(999, 0), 8, true, &part), 100);
    assert!(table.make_room().is_some(), "the table is full");
    assert_eq!(table.datagrams.len(), DATAGRAMS);
    assert!(table.datagrams.iter().any(|datagram| datagram.key == key(999, 0)));
    assert_eq!(table.expire(60 * HZ, HZ), None);
    let mut gone = 0;
    while table.expire(60 * HZ + 50, HZ).is_some() {
        gone += 1;
    }
    assert_eq!(gone, PER_SOURCE - 1, "those from before the 51st tick");
}

#[test]
fn fragments_of_one_datagram_are_counted() {
    let mut table = Reassembly::default();
    let part = packet(b"01234567");
    for n in 1..=FRAGMENTS {
        assert_eq!(table.add(&piece(key(1, 1), 8 * n, true, &part), 0), Added::Waits);
    }
    let one_more = piece(key(1, 1), 0, true, &part);
    assert_eq!(table.add(&one_more, 0), Added::Refused(FRAGMENTS + 1));
}

proptest! {
    /// However a datagram is cut, whatever the order and the repetitions, it comes out once.
    #[test]
    fn any_order_gives_the_datagram(
        payload in prop::collection::vec(any::<u8>(), 9..3000),
        cuts in prop::collection::btree_set(1usize..370, 1..20),
        order in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let mut edges: Vec<usize> = cuts.into_iter().map(|cut| cut * 8).collect();
        edges.retain(|edge| *edge < payload.len());
        prop_assume!(!edges.is_empty());
        edges.insert(0, 0);
        edges.push(payload.len());
        let mut parts: Vec<(usize, usize)> = edges.windows(2).map(|w| (w[0], w[1])).collect();
        parts.push(parts[order.index(parts.len())]);
        let count = parts.len();
        let mut state = seed | 1;
        for at in (1..count).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            parts.swap(at, (state >> 33) as usize % (at + 1));
        }
        let mut table = Reassembly::default();
        let mut seen = Vec::new();
        for (from, to) in parts {
            let bytes = packet(&payload[from..to]);
            match table.add(&piece(key(1, 1), from, to < payload.len(), &bytes), 0) {
                Added::Waits => {}
                added => seen.push(added),
            }
        }
        prop_assert_eq!(seen, vec![whole(&payload)]);
    }

    /// Arbitrary fragments never give bytes that no fragment had there.
    #[test]
    fn nothing_is_made_up(
        parts in prop::collection::vec((0usize..6, 1usize..40, any::<bool>()), 1..40),
    ) {
        let mut table = Reassembly::default();
        for (offset, length, more) in parts {
            // The byte at each place is always the same: what comes out must be that.
            let bytes: Vec<u8> = (offset * 8..offset * 8 + length).map(|at| at as u8).collect();
            let bytes = packet(&bytes);
            if let Added::Whole(bytes) = table.add(&piece(key(1, 1), offset * 8, more, &bytes), 0) {
                let right = (0..bytes.len() - HEADER).map(|at| at as u8).collect::<Vec<_>>();
                prop_assert_eq!(&bytes[HEADER..], &right[..]);
            }
        }
    }
}
