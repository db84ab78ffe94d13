//! The protocol under every order of its steps.

use loom::thread;

use super::{Consumer, Layout, Meta, Producer, PushError, Slots};

fn ends(slots: u32) -> (Producer, Consumer) {
    let layout = Layout::new(slots, 60).unwrap();
    let slots = Slots::new(layout);
    (Producer::with(slots.clone(), layout), Consumer::with(slots, layout, 1))
}

fn packet(n: u8) -> Vec<u8> {
    vec![n; 1 + n as usize]
}

/// More packets than slots: each arrives whole, once, in order, and slots are used again.
#[test]
fn packets_arrive_whole_over_two_laps() {
    loom::model(|| {
        let (mut producer, mut consumer) = ends(2);
        let sender = thread::spawn(move || {
            let mut sent = 0;
            for _ in 0..4 {
                match producer.push(&packet(sent), Meta { port: sent, flags: 0 }) {
                    Ok(()) => sent += 1,
                    Err(PushError::Full) => thread::yield_now(),
                    Err(other) => panic!("{other}"),
                }
            }
            sent
        });
        let mut received = 0;
        for _ in 0..3 {
            let Some(taken) = consumer.next() else {
                thread::yield_now();
                continue;
            };
            let mut bytes = vec![0; taken.length()];
            consumer.copy(&taken, &mut bytes);
            assert_eq!((bytes, taken.meta().port), (packet(received), received));
            consumer.release(taken);
            received += 1;
        }
        let sent = sender.join().unwrap();
        assert!(received <= sent);
        while let Some(taken) = consumer.next() {
            assert_eq!(taken.meta().port, received);
            received += 1;
            consumer.release(taken);
        }
        assert_eq!(received, sent);
    });
}

/// A packet in two slots is seen whole or not at all.
#[test]
fn a_long_packet_is_seen_whole() {
    loom::model(|| {
        let (mut producer, mut consumer) = ends(4);
        let long: Vec<u8> = (0..100).collect();
        let expected = long.clone();
        let sender = thread::spawn(move || producer.push(&long, Meta::default()).unwrap());
        for _ in 0..2 {
            if let Some(taken) = consumer.next() {
                let mut bytes = vec![0; 100];
                assert_eq!((taken.slots(), consumer.copy(&taken, &mut bytes)), (2, 100));
                assert_eq!(bytes, expected);
            }
            assert_eq!(consumer.malformed(), 0);
            thread::yield_now();
        }
        sender.join().unwrap();
    });
}

/// Who sees the first packet of a burst sees all of it.
#[test]
fn a_burst_is_seen_together_and_whole() {
    loom::model(|| {
        let (mut producer, mut consumer) = ends(2);
        let sender = thread::spawn(move || {
            let packets = [packet(0), packet(1), packet(2)];
            let meta = |number| Meta { port: number as u8, flags: 0 };
            producer.push_burst(3, |number| (&packets[number], meta(number)))
        });
        let mut received = 0;
        for _ in 0..2 {
            while let Some(taken) = consumer.next() {
                let mut bytes = vec![0; taken.length()];
                consumer.copy(&taken, &mut bytes);
                assert_eq!((bytes, taken.meta().port), (packet(received), received));
                consumer.release(taken);
                received += 1;
                assert!(received != 1 || consumer.has_next(), "half of a burst");
            }
            thread::yield_now();
        }
        let sent = sender.join().unwrap();
        assert!((2..=3).contains(&sent));
        while let Some(taken) = consumer.next() {
            assert_eq!(taken.meta().port, received);
            received += 1;
            consumer.release(taken);
        }
        assert_eq!(usize::from(received), sent);
    });
}

/// Slots may come back out of order; the producer goes on only when the next one is back.
#[test]
fn slots_come_back_in_any_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = ends(2);
        producer.push(&packet(0), Meta::default()).unwrap();
        producer.push(&packet(1), Meta::default()).unwrap();
        let returning = thread::spawn(move || {
            let (first, second) = (consumer.next().unwrap(), consumer.next().unwrap());
            consumer.release(second);
            let mut bytes = [9; 1];
            consumer.copy(&first, &mut bytes);
            assert_eq!(bytes, [0]);
            consumer.release(first);
            consumer
        });
        let early = producer.push(&packet(2), Meta::default()).is_ok();
        let mut consumer = returning.join().unwrap();
        if !early {
            producer.push(&packet(2), Meta::default()).unwrap();
        }
        assert_eq!(consumer.next().unwrap().length(), 3);
        assert!(consumer.next().is_none() && !producer.is_drained());
    });
}
