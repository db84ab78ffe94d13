use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Region, Segment};

fn region(layout: Layout) -> Region {
    let segment = Arc::new(Segment::create("queue-test", layout.bytes()).unwrap());
    segment.region(0, layout.bytes()).unwrap()
}

fn ends(slots: u32, capacity: u32) -> (Producer, Trusting) {
    let layout = Layout::new(slots, capacity).unwrap();
    let region = region(layout);
    let consumer = Consumer::new(region.clone(), layout).unwrap();
    // SAFETY: the producer is the one below.
    (Producer::new(region, layout).unwrap(), unsafe { consumer.trust() })
}

fn read(consumer: &mut Trusting) -> Option<(Vec<u8>, Meta)> {
    let taken = consumer.next()?;
    let mut bytes = vec![0; taken.length()];
    assert_eq!(consumer.copy(&taken, &mut bytes), bytes.len());
    let meta = taken.meta();
    consumer.release(taken);
    Some((bytes, meta))
}

#[test]
fn a_packet_goes_through_and_its_slot_comes_back() {
    let (mut producer, mut consumer) = ends(2, 2048);
    let meta = Meta { port: 3, flags: 0x55 };
    for n in 0..10 {
        assert!(producer.is_drained());
        producer.push(&[n; 60], meta).unwrap();
        assert!(!producer.is_drained() && consumer.has_next());
        assert_eq!(read(&mut consumer), Some((vec![n; 60], meta)));
        assert!(consumer.next().is_none());
    }
}

#[test]
fn refusals_say_why_and_change_nothing() {
    let (mut producer, mut consumer) = ends(4, 100);
    assert_eq!(producer.push(&[], Meta::default()), Err(PushError::Empty));
    let too_long = PushError::TooLong { length: 201, longest: 200 };
    assert_eq!(producer.push(&[0; 201], Meta::default()), Err(too_long));
    for n in 1..=3 {
        producer.push(&[n; 100], Meta::default()).unwrap();
    }
    assert_eq!(producer.push(&[0; 101], Meta::default()), Err(PushError::Full), "all or nothing");
    assert!(producer.has_room() && producer.has_room_for(100));
    assert!(!producer.has_room_for(101) && !producer.has_room_for(1000));
    producer.push(&[7, 8], Meta::default()).unwrap();
    assert!(!producer.has_room());
    for n in 1..=3 {
        assert_eq!(read(&mut consumer).unwrap().0, [n; 100]);
    }
    assert_eq!(read(&mut consumer).unwrap().0, [7, 8]);
}

#[test]
fn a_burst_goes_as_far_as_there_is_room() {
    let (mut producer, mut consumer) = ends(4, 100);
    let packets: [&[u8]; 5] = [&[1; 60], &[2; 100], &[3; 150], &[4; 60], &[]];
    let burst = |from: usize| {
        move |number: usize| (packets[from + number], Meta { port: number as u8, flags: 0 })
    };
    assert_eq!(producer.push_burst(0, burst(0)), 0);
    assert_eq!(
        producer.push_burst(5, burst(0)),
        3,
        "the long one takes two slots, then it is full"
    );
    for (number, expected) in packets[..3].iter().enumerate() {
        let (bytes, meta) = read(&mut consumer).unwrap();
        assert_eq!((bytes.as_slice(), meta.port), (*expected, number as u8));
    }
    assert_eq!(producer.push_burst(2, burst(3)), 1, "one without bytes never goes");
    assert_eq!(read(&mut consumer).unwrap().0, [4; 60]);
    assert_eq!(producer.push_burst(100, |_| (&[9; 60], Meta::default())), 4, "once around at most");
    assert!((0..4).all(|_| read(&mut consumer).is_some()) && consumer.next().is_none());
}

/// Under Miri, and under a thread sanitizer, this shows that what one side does with a packet's bytes never races with what
/// the other does.
#[test]
fn packets_go_from_thread_to_thread() {
    const PACKETS: u8 = 40;
    let (mut producer, mut consumer) = ends(4, 100);
    let sender = std::thread::spawn(move || {
        for n in 0..PACKETS {
            let packet = vec![n; 60 + usize::from(n) * 3];
            while producer.push(&packet, Meta::default()).is_err() {
                std::thread::yield_now();
            }
        }
    });
    for n in 0..PACKETS {
        let mut taken = loop {
            match consumer.next() {
                Some(taken) => break taken,
                None => std::thread::yield_now(),
            }
        };
        for place in 0..taken.slots() {
            let bytes = consumer.bytes_mut(&mut taken, place).unwrap();
            assert!(bytes.iter().all(|byte| *byte == n));
            bytes.fill(0xff);
        }
        assert_eq!(taken.length(), 60 + usize::from(n) * 3);
        consumer.release(taken);
    }
    sender.join().unwrap();
}

#[test]
fn a_packet_is_changed_in_place() {
    let (mut producer, mut consumer) = ends(4, 100);
    producer.push(&(0..150).collect::<Vec<u8>>(), Meta::default()).unwrap();
    let mut taken = consumer.next().unwrap();
    let lengths = [0, 1].map(|place| consumer.bytes(&taken, place).unwrap().len());
    assert_eq!((lengths, taken.slots()), ([100, 50], 2));
    assert!(consumer.bytes(&taken, 2).is_none());
    consumer.bytes_mut(&mut taken, 1).unwrap()[0] = 200;
    let mut bytes = [0; 101];
    assert_eq!(consumer.copy(&taken, &mut bytes), 101);
    assert_eq!(bytes[99..], [99, 200]);
    consumer.release(taken);
    assert!(producer.is_drained());
}

#[test]
fn a_packet_is_made_in_its_slot() {
    let (producer, mut consumer) = ends(2, 60);
    // SAFETY: the consumer is the one beside it.
    let mut filling = unsafe { producer.trust() };
    let meta = Meta { port: 3, flags: 1 };
    for byte in 0..9 {
        let slot = filling.slot(40).unwrap();
        slot.fill(byte);
        assert!(!consumer.has_next(), "not shown yet");
        // One that was begun and given up leaves nothing.
        filling.slot(60).unwrap().fill(0xff);
        filling.slot(50).unwrap()[..40].fill(byte);
        filling.publish(40, meta);
        assert_eq!(read(&mut consumer), Some((vec![byte; 40], meta)));
    }
    assert!(filling.slot(61).is_none(), "more than a slot");
    filling.publish(0, meta);
    filling.publish(61, meta);
    assert!(!consumer.has_next());
    for _ in 0..2 {
        filling.slot(1).unwrap().fill(7);
        filling.publish(1, meta);
    }
    assert!(filling.slot(1).is_none(), "no room");
    filling.publish(1, meta);
    assert_eq!(std::iter::from_fn(|| read(&mut consumer)).count(), 2);
}

#[test]
fn a_packet_of_another_queue_is_nobodys() {
    let ((mut producer, mut consumer), (_, mut other)) = (ends(2, 100), ends(2, 100));
    producer.push(&[1; 60], Meta::default()).unwrap();
    let taken = consumer.next().unwrap();
    assert_eq!(other.copy(&taken, &mut [0; 10]), 0);
    assert!(other.bytes(&taken, 0).is_none());
    other.release(taken);
    assert!(!producer.is_drained(), "it was not the other's to return");
}

proptest! {
    /// Against a plain list: order, content, room; slots returned out of order.
    #[test]
    fn agrees_with_a_plain_list(
        shift in 1..6u32,
        capacity in 60..200u32,
        steps in proptest::collection::vec((0..5u8, 1..600usize, any::<u8>()), 1..200),
    ) {
        let (mut producer, mut consumer) = ends(1 << shift, capacity);
        let (mut sent, mut held, mut used) = (VecDeque::new(), Vec::new(), 0);
        for (kind, length, value) in steps {
            match kind {
                0 | 1 => {
                    let packet = vec![value; length];
                    let meta = Meta { port: value, flags: value >> 1 };
                    let slots = length.div_ceil(capacity as usize);
                    match producer.push(&packet, meta) {
                        Ok(()) => {
                            prop_assert!(used + slots <= 1 << shift);
                            sent.push_back((packet, meta));
                            used += slots;
                        }
                        Err(PushError::TooLong { longest, .. }) => prop_assert!(length > longest),
                        // Slots that came back out of order wait for those before them.
                        Err(PushError::Full) => prop_assert!(used + slots > 1 << shift || !held.is_empty()),
                        Err(PushError::Empty) => prop_assert!(false),
                    }
                }
                // A burst of packets of different lengths, of which as many go as find room.
                4 => {
                    let packets: Vec<_> = (0..value % 40).map(|n| vec![n; 1 + (length * usize::from(n)) % 180]).collect();
                    let meta = Meta { port: value, flags: 0 };
                    let went = producer.push_burst(packets.len(), |n| (&packets[n], meta));
                    let slots = |packet: &Vec<u8>| packet.len().div_ceil(capacity as usize);
                    used += packets[..went].iter().map(slots).sum::<usize>();
                    prop_assert!(used <= 1 << shift);
                    if let Some(next) = packets.get(went) {
                        let longest = (capacity as usize) << (shift - 1);
                        prop_assert!(next.len() > longest || used + slots(next) > 1 << shift || !held.is_empty());
                    }
                    sent.extend(packets.into_iter().take(went).map(|packet| (packet, meta)));
                }
                2 => match (consumer.next(), sent.pop_front()) {
                    (Some(taken), Some((packet, meta))) => {
                        let mut bytes = vec![0; taken.length()];
                        consumer.copy(&taken, &mut bytes);
                        prop_assert_eq!((bytes, taken.meta()), (packet, meta));
                        held.push(taken);
                    }
                    (None, None) => {}
                    (taken, expected) => prop_assert!(false, "{:?} {:?}", taken, expected),
                },
                _ => if !held.is_empty() {
                    let taken = held.swap_remove(length % held.len());
                    used -= taken.slots() as usize;
                    consumer.release(taken);
                },
            }
        }
        prop_assert_eq!(consumer.malformed(), 0);
    }

    /// A producer that writes anything anywhere gets nothing but packets of sound length taken.
    #[test]
    fn garbage_leads_nowhere(words in proptest::collection::vec((0..4096usize, any::<u32>()), 1..300)) {
        let layout = Layout::new(8, 100).unwrap();
        let region = region(layout);
        let mut consumer = Consumer::new(region.clone(), layout).unwrap();
        let mut held = Vec::new();
        for (at, word) in words {
            if let Some(place) = region.word(at % layout.bytes() / 4 * 4) {
                place.store(word, std::sync::atomic::Ordering::Relaxed);
            }
            if let Some(taken) = consumer.next() {
                prop_assert!(taken.length() > 0 && taken.length() <= layout.longest() as usize);
                let mut bytes = vec![0; 65_536];
                prop_assert_eq!(consumer.copy(&taken, &mut bytes), taken.length());
                held.push(taken);
            }
            if held.len() > 3 {
                consumer.release(held.swap_remove(0));
            }
        }
    }
}
