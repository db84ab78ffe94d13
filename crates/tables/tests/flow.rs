//! The flow table against a map, and under readers.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a failure to set up is a failed test")]

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use millrace_tables::{FlowError, FlowTable, GrowingFlowTable, NO_FLOW};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Operation {
    Insert(u16, u32),
    Remove(u16),
}

fn key<const K: usize>(number: u64) -> [u8; K] {
    let mut key = [0; K];
    for (place, byte) in key.iter_mut().zip(number.to_le_bytes().into_iter().cycle()) {
        *place = byte;
    }
    key
}

fn check<const K: usize>(operations: &[Operation]) {
    let mut table = FlowTable::<K>::new(200).unwrap();
    let reader = table.reader();
    let mut model = HashMap::new();
    for operation in operations {
        match *operation {
            Operation::Insert(number, value) => {
                let number = number % 300;
                let expected = if model.len() < 200 || model.contains_key(&number) {
                    Ok(model.insert(number, value))
                } else {
                    Err(FlowError::Full { held: 200, capacity: 200 })
                };
                assert_eq!(table.insert(&key(number.into()), value), expected);
            }
            Operation::Remove(number) => {
                let number = number % 300;
                assert_eq!(table.remove(&key(number.into())), model.remove(&number));
            }
        }
        assert_eq!(table.len(), model.len());
    }
    let keys: Vec<[u8; K]> = (0..310).map(key).collect();
    let mut values = vec![0; keys.len()];
    reader.lookup_batch(&keys, &mut values);
    for (number, (key, batched)) in (0u16..).zip(keys.iter().zip(values)) {
        let expected = model.get(&number).copied();
        assert_eq!(table.get(key), expected);
        assert_eq!(reader.lookup(key), expected.unwrap_or(NO_FLOW));
        assert_eq!(batched, expected.unwrap_or(NO_FLOW));
    }
    let held: HashMap<[u8; K], u32> = table.iter().collect();
    let middle = table.places() / 2;
    let after = table.iter_from(middle).map(|(place, key, value)| (place > middle, key, value));
    let before = table.iter_from(0).take_while(|(place, ..)| *place <= middle);
    let halves = before.map(|(_, key, value)| (true, key, value)).chain(after);
    assert_eq!(
        halves
            .map(|(right, key, value)| right.then_some((key, value)).unwrap())
            .collect::<HashMap<_, _>>(),
        held
    );
    let expected = model.iter().map(|(number, value)| (key(u64::from(*number)), *value)).collect();
    assert_eq!(held, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn agrees_with_a_map(operations in prop::collection::vec(prop_oneof![
        2 => (any::<u16>(), 0..NO_FLOW).prop_map(|(number, value)| Operation::Insert(number, value)),
        1 => any::<u16>().prop_map(Operation::Remove),
    ], 1..1500)) {
        check::<16>(&operations);
        check::<40>(&operations);
    }
}

#[test]
fn a_full_table_keeps_what_it_holds() {
    let mut table = FlowTable::<16>::new(20_000).unwrap();
    let entries: Vec<_> = (0..20_000).map(|n| (key(n), n as u32)).collect();
    table.insert_batch(&entries).unwrap();
    assert_eq!(table.len(), table.capacity());
    let full = FlowError::Full { held: 20_000, capacity: 20_000 };
    assert_eq!(table.insert(&key(20_000), 1), Err(full));
    let refused = table.insert_batch(&[(key(3), 3), (key(20_001), 1)]).unwrap_err();
    assert_eq!((refused.index, refused.error), (1, full));
    assert_eq!(table.insert(&key(1), NO_FLOW), Err(FlowError::Value));
    assert!(entries.iter().all(|(key, value)| table.get(key) == Some(*value)));
    assert_eq!(table.remove(&key(7)), Some(7));
    assert_eq!(table.insert(&key(20_000), 1), Ok(None));
}

#[test]
fn an_entry_costs_at_most_40_bytes() {
    let table = FlowTable::<16>::new(1 << 20).unwrap();
    assert!(table.memory_bytes() <= 40 << 20);
}

#[test]
fn a_growing_table_agrees_with_a_map() {
    const MOST: usize = 5000;
    let mut table = GrowingFlowTable::<16>::new(MOST).unwrap();
    let mut model = HashMap::new();
    let mut random = 1_u64;
    let mut grew = 0;
    // Waves: more is added than removed up to the limit and beyond, then the other way round.
    for step in 0..60_000_u32 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(9);
        let number = (random >> 33) % 12_000;
        let bytes = table.memory_bytes();
        if (random >> 20) % 4 < if step / 15_000 % 2 == 0 { 3 } else { 1 } {
            let expected = if model.len() < MOST || model.contains_key(&number) {
                Ok(model.insert(number, step))
            } else {
                Err(FlowError::Full { held: MOST, capacity: MOST })
            };
            assert_eq!(table.insert(&key(number), step), expected);
        } else {
            assert_eq!(table.remove(&key(number)), model.remove(&number));
        }
        grew += u32::from(table.memory_bytes() > bytes);
        assert_eq!((table.len(), table.is_empty()), (model.len(), model.is_empty()));
        // While entries move, and at times when they do not.
        if step % 97 == 0 || table.memory_bytes() > bytes {
            let keys: Vec<[u8; 16]> = (0..12_000).map(key).collect();
            let mut values = vec![0; keys.len()];
            table.lookup_batch(&keys, &mut values);
            for (number, (key, value)) in (0..).zip(keys.iter().zip(values)) {
                assert_eq!(value, model.get(&number).copied().unwrap_or(NO_FLOW));
                assert_eq!(table.lookup(key), value);
            }
        }
    }
    assert_eq!(grew, 3, "1,024, 2,048, 4,096, 5,000");
    assert_eq!(table.insert(&key(1), NO_FLOW), Err(FlowError::Value));
}

/// As many processes have a stack, most of them with few connections.
#[test]
fn a_growing_table_is_as_large_as_what_it_holds() {
    let mut table = GrowingFlowTable::<16>::new(1 << 20).unwrap();
    assert!(table.memory_bytes() < 32 << 10);
    for number in 0..100_000 {
        table.insert(&key(number), number as u32).unwrap();
        let held = table.len().max(1024);
        assert!(
            table.memory_bytes() <= 4 * 32 * held,
            "{} bytes, {held} entries",
            table.memory_bytes()
        );
    }
}

/// Permanent entries are found at every moment, with their own values, however much they are
/// displaced by entries that come and go; those are found with a value of theirs or not at all.
#[test]
fn readers_miss_no_entry_that_moves() {
    const KEPT: u64 = 1000;
    const PASSING: u64 = 3000;
    let mut table = FlowTable::<16>::new((KEPT + PASSING) as usize).unwrap();
    for number in 0..KEPT {
        table.insert(&key(number), number as u32).unwrap();
    }
    let done = AtomicBool::new(false);
    // Entries that each reader has found between their coming and their going.
    let passed = [const { AtomicU64::new(0) }; 2];
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for (thread, passed) in (0_u64..).zip(&passed) {
            let reader = table.reader();
            let done = &done;
            readers.push(scope.spawn(move || {
                let mut random = thread + 1;
                let (mut numbers, mut keys, mut values) = ([0; 128], [[0; 16]; 128], [0; 128]);
                while !done.load(Ordering::Relaxed) {
                    for (key_at, number) in keys.iter_mut().zip(&mut numbers) {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(9);
                        *number = (random >> 33) % (KEPT + PASSING);
                        *key_at = key(*number);
                    }
                    reader.lookup_batch(&keys, &mut values);
                    for (number, value) in numbers.into_iter().zip(values) {
                        let found = u64::from(value) % (KEPT + PASSING) == number;
                        assert!(found || (value == NO_FLOW && number >= KEPT), "{number}: {value}");
                        passed.fetch_add(u64::from(found && number >= KEPT), Ordering::Relaxed);
                    }
                }
            }));
        }
        // One that gets its core late has found none yet; one that has failed finds none any more.
        let is_late = || {
            let mut all = readers.iter().zip(&passed);
            all.any(|(reader, passed)| passed.load(Ordering::Relaxed) == 0 && !reader.is_finished())
        };
        let mut round = 0;
        while round < 60 || is_late() {
            round += 1;
            for number in KEPT..KEPT + PASSING {
                let value = (round * (KEPT + PASSING) + number) as u32;
                assert_eq!(table.insert(&key(number), value), Ok(None));
            }
            for number in KEPT..KEPT + PASSING {
                assert!(table.remove(&key(number)).is_some());
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
