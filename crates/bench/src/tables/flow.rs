//! Exact match of 16-byte keys beside rte_hash.

use std::hint::black_box;

use ::tables::FlowTable;
use dpdk::yardstick::HashTable;
use serde_json::Value;

use super::contest::{LookUp, take_turns};
use super::{Effort, SLICES, each};
use crate::failure::Failure;
use crate::load::Random;
use crate::results::{Better, Outcome, Samples};

/// Keys of one look-up call; rte_hash takes 64 at most.
const BATCHES: [usize; 3] = [32, 64, 256];
/// Entries added with one call.
const WINDOW: usize = 4096;

/// Goals: TSC cycles of a look-up, bytes of an entry.
const GOAL_CYCLES: f64 = 60.0;
const GOAL_BYTES: f64 = 40.0;

type Key = [u8; 16];

/// The key of that number: no two are equal.
fn key(number: usize) -> Key {
    let mut key = [0; 16];
    let [low, high] = [number as u64, Random::new(number as u64).next()];
    key[..8].copy_from_slice(&low.to_le_bytes());
    key[8..].copy_from_slice(&high.to_le_bytes());
    key
}

fn of(name: &str, unit: &'static str, samples: Samples, entries: usize) -> Outcome {
    let entries: Value = entries.into();
    Outcome::new(name, unit, samples).with(&[("entries", entries)])
}

/// Steps of the bar.
pub(super) fn steps(rounds: u32) -> usize {
    2 * SLICES + 2 * rounds as usize * BATCHES.len()
}

/// Both tables with `entries` entries.
pub(super) fn measure(entries: usize, effort: Effort<'_>) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    let mut table = FlowTable::<16>::new(entries)?;
    let mut window = Vec::with_capacity(WINDOW);
    let seconds = each((0..entries).step_by(WINDOW), effort.bar, |from| {
        window.clear();
        window.extend((from..entries.min(from + WINDOW)).map(|n| (key(n), n as u32)));
        Ok(table.insert_batch(&window)?)
    })?;
    let rate = entries as f64 / seconds;
    // It refuses entries before it is full: at 7/8 it does not.
    let capacity = u32::try_from(entries + entries / 7 + 8).unwrap_or(u32::MAX);
    let mut hash = HashTable::<16>::new("bench", capacity)?;
    let seconds = each(0..entries, effort.bar, |number| Ok(hash.add(&key(number), number)?))?;
    let theirs = entries as f64 / seconds;
    let inserts = of("flow inserts", "1/s", Samples(vec![rate]), entries);
    outcomes.push(inserts.against("rte_hash", theirs, Better::More));
    let bytes = table.memory_bytes() as f64 / entries as f64;
    let mut memory = of("flow memory", "bytes/entry", Samples(vec![bytes]), entries);
    memory.goal = Some((GOAL_BYTES, Better::Less));
    outcomes.push(memory);
    let mut random = Random::new(10);
    let keys: Vec<Key> = (0..effort.keys).map(|_| key(random.below(entries))).collect();
    let pointers: Vec<&Key> = keys.iter().collect();
    let reader = table.reader();
    for batch in BATCHES {
        let (mut values, mut found) = ([0u32; 256], [0usize; 256]);
        let ours: LookUp<'_> = Box::new(|from, to| {
            reader.lookup_batch(&keys[from..to], &mut values);
            black_box(&mut values);
        });
        let theirs: LookUp<'_> = Box::new(|from, to| {
            for part in pointers[from..to].chunks(HashTable::<16>::BULK) {
                black_box(hash.lookup_bulk(part, &mut found));
            }
            black_box(&mut found);
        });
        let samples = take_turns(keys.len(), batch, effort, &mut [ours, theirs])?;
        let [ours, theirs] = [0, 1].map(|at| samples.get(at).cloned().unwrap_or_default());
        let mut outcome = of("flow look-up", "TSC cycles", ours, entries)
            .with(&[("batch", batch.into())])
            .against("rte_hash", theirs.median(), Better::Less);
        outcome.goal = Some((GOAL_CYCLES, Better::Less));
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ() {
        let keys: std::collections::HashSet<_> = (0..10_000).map(key).collect();
        assert_eq!(keys.len(), 10_000);
    }
}
