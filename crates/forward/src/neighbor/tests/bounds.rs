//! What somebody else can make us keep is bounded.

use proptest::prelude::*;

use super::*;

fn known(bench: &mut Bench, last: u8) {
    bench.forward(&format!("10.0.0.{last}"));
    bench.receive(Cause::Arp, &reply(last));
}

#[test]
fn a_scan_neither_grows_nor_evicts() {
    let mut bench = Bench::new();
    known(&mut bench, 2);
    let (mut full, mut waiting) = (0, 0);
    for n in 0..=u16::MAX {
        let [c, d] = n.to_be_bytes();
        bench.forward(&format!("10.0.{c}.{d}"));
        bench.forward(&format!("2001:db8::{n:x}:1"));
        let dropped = drops(&bench.take());
        full += dropped.iter().filter(|reason| **reason == Reason::NeighborTableFull).count();
        if n % 1000 == 0 {
            let all = bench.path.neighbors(bench.now);
            waiting = waiting.max(all.iter().map(|known| known.waiting).sum());
            assert!(all.len() <= 1 + BOUNDS.unresolved);
            bench.wait(1);
        }
    }
    assert!(full > 100_000, "{full}");
    assert!((1..=BOUNDS.waiting).contains(&waiting), "{waiting}");
    assert_eq!(bench.look_up("10.0.0.2").1.destination, PEER);
    // When it is over, new neighbours are found again.
    bench.wait(10);
    known(&mut bench, 3);
    assert_eq!(bench.kind("10.0.0.3"), Kind::Forward);
}

#[test]
fn one_that_failed_makes_room_for_a_new_one() {
    let mut bench = Bench::new();
    for last in 10..30 {
        bench.forward(&format!("10.0.0.{last}"));
    }
    bench.take();
    bench.forward("10.0.0.2");
    assert_eq!(drops(&bench.take()), [Reason::NeighborTableFull]);
    bench.wait(4);
    assert_eq!(bench.kind("10.0.0.10"), Kind::HostUnreachable);
    bench.forward("10.0.0.2");
    assert_eq!(frames(&bench.take()).len(), 1);
    assert_eq!(bench.kind("10.0.0.10"), Kind::Glean);
    assert_eq!(bench.kind("10.0.0.11"), Kind::HostUnreachable);
}

#[test]
fn packets_waiting_in_all_are_bounded() {
    let mut bench = Bench::new();
    for last in 10..20 {
        for _ in 0..4 {
            bench.forward(&format!("10.0.0.{last}"));
        }
    }
    assert_eq!(drops(&bench.take()), [Reason::NeighborQueueFull; 10]);
    assert_eq!(bench.path.flush(None, &mut bench.actions), 10);
    assert_eq!(drops(&bench.take()), [Reason::NeighborUnresolved; 30]);
    bench.forward("10.0.0.10");
    assert!(drops(&bench.take()).is_empty());
}

#[test]
fn bounds_that_shrink_lose_no_packet_unnamed() {
    for bounds in [Bounds { queue: 0, ..BOUNDS }, Bounds { queue: 2, waiting: 1, ..BOUNDS }] {
        let mut bench = Bench::new();
        let waits = [bench.forward("10.0.0.2"), bench.forward("10.0.0.2")];
        let settings = **bench.state.settings.load();
        bench.path.set_switches(Miss::Drop, settings, TIMING, bounds);
        bench.take();
        bench.forward("10.0.0.2");
        assert_eq!(drops(&bench.take()), [Reason::NeighborQueueFull]);
        bench.receive(Cause::Arp, &reply(2));
        let actions = bench.take();
        assert_eq!(released(&actions), [&waits[0], &waits[1]]);
    }
}

#[test]
fn beyond_the_bound_the_stale_one_unused_for_longest_goes() {
    let mut bench = Bench::with(Bounds { neighbors: 3, ..BOUNDS });
    known(&mut bench, 2);
    bench.wait(50);
    known(&mut bench, 3);
    bench.wait(50);
    known(&mut bench, 4);
    known(&mut bench, 5);
    assert_eq!(bench.state_of("10.0.0.2"), None);
    assert_eq!(bench.state_of("10.0.0.3"), Some(Known::Stale));
    known(&mut bench, 6);
    assert_eq!(bench.state_of("10.0.0.3"), None);
    bench.take();
    // All others are fresh: the newcomer has to wait.
    known(&mut bench, 7);
    assert_eq!(drops(&bench.take()), [Reason::NeighborTableFull]);
    assert_eq!((bench.state_of("10.0.0.7"), bench.kind("10.0.0.7")), (None, Kind::Glean));
    assert_eq!(bench.kind("10.0.0.4"), Kind::Forward);
}

proptest! {
    #[test]
    fn arbitrary_packets_do_no_harm(
        packets in proptest::collection::vec(
            (1..5_u16, proptest::collection::vec(any::<u8>(), 0..100), 0..4_u16, 0..40_u32, 0..3_u64),
            0..40,
        ),
    ) {
        let mut bench = Bench::new();
        for (cause, bytes, interface, next_hop, seconds) in packets {
            let sent = Sent { bytes, interface: InterfaceId::new(interface), next_hop };
            let cause = Cause::try_from(cause).unwrap();
            bench.path.input(cause, sent, bench.now, &mut bench.actions);
            bench.wait(seconds);
        }
        prop_assert!(bench.path.neighbor_count() <= BOUNDS.unresolved + BOUNDS.neighbors);
    }
}
