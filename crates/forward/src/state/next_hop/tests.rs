use super::*;

#[test]
fn what_is_set_is_read() {
    let hops = NextHops::new(32, 1);
    let hop = NextHop {
        kind: Kind::ForwardStale,
        next: NextNode::Bridge,
        features: true,
        port: PortId::new(3),
        interface: InterfaceId::with_generation(0x1234, 0x5678),
        mtu: 9000,
        vlan: Some(100),
        destination: MacAddr::new([1, 2, 3, 4, 5, 6]),
        source: MacAddr::new([7, 8, 9, 10, 11, 12]),
    };
    hops.set(20, &hop);
    assert_eq!(hops.get(20), hop);
    assert_eq!(hops.kind(20), Kind::ForwardStale);
    hops.set(20, &NextHop { vlan: None, ..hop });
    assert_eq!(hops.get(20).vlan, None);
    let moved = InterfaceId::with_generation(0x1234, 0x5679);
    hops.set(20, &NextHop { kind: Kind::Glean, interface: moved, ..hop });
    assert_eq!((hops.get(20).kind, hops.get(20).interface), (Kind::Glean, moved));
    assert_eq!(hops.get(21).kind, Kind::Invalid);
    assert_eq!(hops.get(9999).kind, Kind::Invalid);
}

#[test]
fn one_word_says_how_a_frame_leaves() {
    let hops = NextHops::new(32, 0);
    let destination = MacAddr::new([1, 2, 3, 4, 5, 6]);
    for kind in Kind::ALL {
        for (next, features) in [(0, false), (0, true), (1, false), (1, true)] {
            let next = NextNode::from_byte(next);
            for vlan in [None, Some(0xe123)] {
                let hop = NextHop::of_kind(kind);
                let hop = NextHop { destination, vlan, next, features, ..hop };
                hops.set(20, &hop);
                let words = hops.reader().words(20);
                let leaves = matches!(kind, Kind::Forward | Kind::ForwardStale)
                    && next == NextNode::Port
                    && !features;
                assert_eq!(words.leaves(), leaves, "{hop:?}");
                assert_eq!(words.is_plain(), leaves && vlan.is_none(), "{hop:?}");
                assert_eq!(words.is_stale(), kind == Kind::ForwardStale, "{hop:?}");
                assert_eq!(words.tag(), vlan.filter(|_| leaves), "{hop:?}");
            }
        }
    }
}

#[test]
fn who_has_read_that_it_forwards_finds_an_address() {
    let hops = NextHops::new(32, 0);
    let none = NextHop::of_kind(Kind::Unresolved);
    let source = MacAddr::new([7, 8, 9, 10, 11, 12]);
    let hop = NextHop { source, vlan: Some(5), ..none };
    let at = |last| MacAddr::new([2, 0, 0, 0, 0, last]);
    hops.set(20, &hop);
    assert_eq!(hops.get(20), hop);
    hops.set(20, &NextHop { kind: Kind::Forward, destination: at(1), ..hop });
    let sent = (hops.reader().words(20).macs, hops.reader().words(20).tail);
    for kind in [Kind::HostUnreachable, Kind::Unresolved, Kind::Blackhole, Kind::Invalid] {
        hops.set(20, &NextHop { kind, ..hop });
        assert_eq!((hops.get(20).kind, hops.get(20).destination), (kind, MacAddr::ZERO));
        let words = hops.reader().words(20);
        assert_eq!((words.macs, words.tail), sent, "{kind:?}");
    }
    assert_eq!(hops.get(20), NextHop::of_kind(Kind::Invalid));
    // The index is used again.
    hops.set(20, &NextHop { source: at(9), vlan: None, ..hop });
    hops.set(20, &NextHop { kind: Kind::Forward, destination: at(2), source: at(9), ..none });
    let next = NextHop { kind: Kind::Forward, destination: at(2), source: at(9), ..none };
    assert_eq!(hops.get(20), next);
}

#[test]
fn every_kind_survives_its_byte() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_byte(kind as u8), kind);
    }
    assert_eq!(Kind::from_byte(255), Kind::Invalid);
}

#[test]
fn a_group_spreads_by_hash_and_a_hop_is_itself() {
    let hops = NextHops::new(32, 1);
    for slot in 0..GROUP_SLOTS {
        hops.set_slot(0, slot, 16 + (slot as u32 & 1));
    }
    assert_eq!(hops.choose(17, 5), 17);
    assert_eq!(hops.choose(GROUP_BIT, 4), 16);
    assert_eq!(hops.choose(GROUP_BIT, 5), 17);
    assert_eq!(hops.choose(GROUP_BIT | 7, 5), reserved::BLACKHOLE);
}

#[test]
fn use_is_reported_once() {
    let hops = NextHops::new(32, 0);
    hops.mark_used(16);
    assert!(hops.take_used(16));
    assert!(!hops.take_used(16));
}
