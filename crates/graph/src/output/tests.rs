use dpdk::{Port, PortConfig};

use crate::testbed::{Outside, own_pool, packet, pool};
use crate::{PortId, Reason, TransmitPath};

fn give(outside: &mut Outside, numbers: std::ops::Range<u8>, now: u64) {
    for n in numbers {
        outside.exits.transmit(packet(&pool(), &[n]), PortId::new(0), now);
    }
}

#[test]
fn waits_for_the_drain_time() {
    let mut outside = Outside::new(2, 100, 64);
    give(&mut outside, 0..2, 1000);
    give(&mut outside, 2..3, 1050);
    outside.exits.output.flush_due(1099, &outside.counters);
    assert!(outside.sent(0).is_empty());
    outside.exits.output.flush_due(1100, &outside.counters);
    assert_eq!(outside.sent(0), [0, 1, 2], "the oldest packet decides");
    give(&mut outside, 3..4, 2000);
    outside.exits.output.flush_due(2099, &outside.counters);
    assert!(outside.sent(0).is_empty());
    outside.exits.output.flush(&outside.counters);
    assert_eq!(outside.sent(0), [3]);
}

#[test]
fn a_full_buffer_does_not_wait() {
    let mut outside = Outside::new(1, u64::MAX, 256);
    give(&mut outside, 0..200, 0);
    assert_eq!(outside.sent(0), (0..192).collect::<Vec<u8>>());
    outside.exits.output.flush(&outside.counters);
    assert_eq!(outside.sent(0), (192..200).collect::<Vec<u8>>());
}

#[test]
fn packets_in_a_row_go_behind_those_that_wait() {
    for waiting in [0, 1, 40, 63] {
        let mut outside = Outside::new(1, u64::MAX, 256);
        give(&mut outside, 0..waiting, 0);
        let mut row: Vec<_> = (waiting..200).map(|n| Some(packet(&pool(), &[n]))).collect();
        outside.exits.transmit_all(&mut row, PortId::new(0), 0);
        assert!(row.iter().all(Option::is_none));
        assert_eq!(outside.sent(0), (0..192).collect::<Vec<u8>>());
        outside.exits.output.flush(&outside.counters);
        assert_eq!(outside.sent(0), (192..200).collect::<Vec<u8>>());
    }
    // Of whole bursts, too, what does not fit is dropped.
    let own = own_pool("rowfull", 255);
    let mut outside = Outside::new(1, u64::MAX, 100);
    let mut row: Vec<_> = (0..140).map(|n| Some(packet(&own, &[n]))).collect();
    outside.exits.transmit_all(&mut row, PortId::new(0), 0);
    assert!(row.iter().all(Option::is_none));
    assert_eq!((own.available(), outside.drops(Reason::TransmitFull)), (255 - 112, 28));
    assert_eq!(outside.sent(0), (0..100).collect::<Vec<u8>>());
    let mut outside = Outside::new(1, u64::MAX, 64);
    outside.exits.set_path(PortId::new(0), None);
    for port in [0, 42] {
        outside.exits.transmit_all(&mut [Some(packet(&pool(), &[1]))], PortId::new(port), 0);
    }
    assert_eq!(outside.drops(Reason::PortDown), 2);
}

#[test]
fn packets_for_several_ports_keep_the_order_of_each() {
    for waiting in [0, 1, 40, 63] {
        let mut outside = Outside::new(3, 100, 256);
        give(&mut outside, 0..waiting, 0);
        // Every third one by port 2, which comes to less than a burst, the others by port 0.
        let port = |n: u8| PortId::new(if n % 3 == 0 { 2 } else { 0 });
        let ports: Vec<PortId> = (waiting..160).map(port).collect();
        let mut row: Vec<_> = (waiting..160).map(|n| Some(packet(&pool(), &[n]))).collect();
        outside.exits.transmit_each(&mut row, &ports, 50);
        assert!(row.iter().all(Option::is_none));
        let by = |port: u16| -> Vec<u8> {
            let of = |n: &u8| if *n < waiting { port == 0 } else { (n % 3 == 0) == (port == 2) };
            (0..160).filter(of).collect()
        };
        let [zero, two] = [outside.sent(0), outside.sent(2)];
        assert!(zero.len() >= 16 && two.len() >= 16, "so many do not wait");
        outside.exits.output.flush_due(149, &outside.counters);
        assert!(outside.sent(2).is_empty());
        outside.exits.output.flush_due(150, &outside.counters);
        let last = outside.sent(2);
        // Behind 40 packets, the last part of the row has 19 for port 2, else 11.
        assert_eq!(last.len(), if waiting == 40 { 0 } else { 11 }, "less does");
        assert_eq!([two, last].concat(), by(2));
        assert_eq!([zero, outside.sent(0)].concat(), by(0));
        assert!(outside.sent(1).is_empty());
    }
}

#[test]
fn packets_for_many_ports_keep_the_order_of_each() {
    let mut outside = Outside::new(6, u64::MAX, 256);
    let ports: Vec<PortId> = (0..200).map(|n| PortId::new(n * 7 % 11 % 6)).collect();
    let mut row: Vec<_> = (0..200).map(|n| Some(packet(&pool(), &[n]))).collect();
    outside.exits.transmit_each(&mut row, &ports, 0);
    assert!(row.iter().all(Option::is_none));
    outside.exits.output.flush(&outside.counters);
    for port in 0..6 {
        let is_its = |n: &u8| ports[usize::from(*n)].number() == port;
        assert_eq!(outside.sent(port), (0..200).filter(is_its).collect::<Vec<u8>>());
    }
}

#[test]
fn of_packets_for_several_ports_those_without_a_path_are_dropped() {
    let mut outside = Outside::new(3, u64::MAX, 64);
    outside.exits.set_path(PortId::new(1), None);
    let numbers = [0, 1, 2, 42, 0, 1];
    let mut row = numbers.map(|n| Some(packet(&pool(), &[n as u8])));
    outside.exits.transmit_each(&mut row, &numbers.map(PortId::new), 0);
    assert!(row.iter().all(Option::is_none));
    outside.exits.output.flush(&outside.counters);
    assert_eq!([outside.sent(0), outside.sent(1), outside.sent(2)], [vec![0, 0], vec![], vec![2]]);
    assert_eq!(outside.drops(Reason::PortDown), 3);
}

#[test]
fn what_the_queue_does_not_take_is_dropped_and_counted() {
    let pool = own_pool("txfull", 127);
    let mut outside = Outside::new(1, 0, 10);
    for n in 0..64 {
        outside.exits.transmit(packet(&pool, &[n]), PortId::new(0), 0);
    }
    assert_eq!(pool.available(), 127 - 10);
    assert_eq!(outside.drops(Reason::TransmitFull), 54);
    assert_eq!(outside.counters.ports[0].tx_dropped.get(), 54);
    assert_eq!(outside.sent(0), (0..10).collect::<Vec<u8>>());
}

#[test]
fn what_the_driver_takes_is_counted() {
    let mut outside = Outside::new(1, 0, 1);
    let mut opened = Port::open(&"null".parse().unwrap(), &PortConfig::new(pool())).unwrap();
    let path = TransmitPath::Queue(opened.tx.remove(0));
    assert!(outside.exits.set_path(PortId::new(0), Some(path)).is_some());
    for length in [60, 100, 1000] {
        outside.exits.transmit(packet(&pool(), &vec![0; length]), PortId::new(0), 0);
    }
    let mut row = [Some(packet(&pool(), &[0; 70])), Some(packet(&pool(), &[0; 80]))];
    outside.exits.transmit_all(&mut row, PortId::new(0), 0);
    outside.exits.output.flush(&outside.counters);
    let counters = &outside.counters.ports[0];
    assert_eq!((counters.tx_packets.get(), counters.tx_bytes.get()), (5, 1310));
}

#[test]
fn a_port_without_a_path_is_down() {
    let mut outside = Outside::new(1, u64::MAX, 64);
    give(&mut outside, 0..3, 0);
    let before = outside.exits.set_path(PortId::new(0), None);
    assert!(before.is_some());
    assert_eq!(outside.sent(0), [0, 1, 2], "what waited was sent first");
    give(&mut outside, 3..5, 0);
    outside.exits.transmit(packet(&pool(), &[9]), PortId::new(42), 0);
    assert_eq!(outside.drops(Reason::PortDown), 3);
}

#[test]
fn a_path_is_for_one_of_those_that_have_its_number() {
    let mut outside = Outside::new(1, u64::MAX, 64);
    let (gone, here) = (PortId::new(0), PortId::with_generation(0, 1));
    let path = outside.exits.set_path(gone, None);
    assert!(outside.exits.set_path(here, path).is_none());
    outside.exits.transmit(packet(&pool(), &[1]), gone, 0);
    outside.exits.transmit_all(&mut [Some(packet(&pool(), &[2]))], gone, 0);
    for n in 3..5 {
        outside.exits.transmit(packet(&pool(), &[n]), here, 0);
    }
    assert!(outside.exits.room(gone).is_none() && outside.exits.room(here).is_some());
    outside.exits.transmit(packet(&pool(), &[5]), gone, 0);
    outside.exits.transmit_all(&mut [Some(packet(&pool(), &[6]))], here, 0);
    assert!(
        outside.exits.set_path(gone, None).is_none(),
        "what ends the other one changes nothing"
    );
    outside.exits.output.flush(&outside.counters);
    assert_eq!(outside.sent(0), [3, 4, 6]);
    assert_eq!(outside.drops(Reason::PortDown), 3);
}
