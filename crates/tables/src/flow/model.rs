//! Every interleaving of a look-up with a change, on a table of a few buckets.

use loom::thread;

use super::{FlowTable, NO_FLOW};
use crate::hash::Seed;

const BUCKETS: usize = 3;

fn table() -> FlowTable<16> {
    FlowTable::with_buckets(BUCKETS * 3, BUCKETS, Seed::fixed()).unwrap()
}

/// Keys that may lie in bucket `first`, else in `second`.
fn keys(table: &FlowTable<16>, first: u32, second: u32) -> Vec<[u8; 16]> {
    let all = (0u128..200).map(u128::to_le_bytes);
    all.filter(|key| table.shared.homes(key) == [first, second]).collect()
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn a_slot_used_again_is_never_mistaken() {
    check(|| {
        let mut table = table();
        let [old, new, ..] = keys(&table, 0, 1)[..] else { panic!("too few keys") };
        table.insert(&old, 1).unwrap();
        let reader = table.reader();
        let looking = thread::spawn(move || {
            let value = reader.lookup(&old);
            assert!(value == 1 || value == NO_FLOW);
            let mut values = [0];
            reader.lookup_batch(&[new], &mut values);
            assert!(values[0] == 2 || values[0] == NO_FLOW);
        });
        table.remove(&old);
        table.insert(&new, 2).unwrap();
        looking.join().unwrap();
        assert_eq!(table.get(&new), Some(2));
    });
}

/// A table in which an entry lies in its second bucket, 1, and has to go back to its first, 2, for
/// the returned key to fit.
fn crowded() -> (FlowTable<16>, [u8; 16], [u8; 16]) {
    let mut table = table();
    let fillers = keys(&table, 2, 0);
    for key in &fillers[..3] {
        table.insert(key, 1).unwrap();
    }
    let moved = keys(&table, 2, 1)[0];
    table.insert(&moved, 7).unwrap();
    let others = keys(&table, 0, 1);
    for key in &others[..5] {
        table.insert(key, 2).unwrap();
    }
    table.remove(&fillers[0]);
    (table, moved, others[5])
}

#[test]
fn an_entry_that_moves_is_never_missed() {
    check(|| {
        let (mut table, moved, added) = crowded();
        let reader = table.reader();
        let looking = thread::spawn(move || assert_eq!(reader.lookup(&moved), 7));
        table.insert(&added, 3).unwrap();
        looking.join().unwrap();
        assert_eq!(table.get(&added), Some(3));
    });
}

#[test]
fn a_batch_never_misses_an_entry_that_moves() {
    check(|| {
        let (mut table, moved, added) = crowded();
        let reader = table.reader();
        let looking = thread::spawn(move || {
            let mut values = [0];
            reader.lookup_batch(&[moved], &mut values);
            assert_eq!(values, [7]);
        });
        table.insert(&added, 3).unwrap();
        looking.join().unwrap();
    });
}
