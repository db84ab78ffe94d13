//! Longest-prefix match beside rte_fib and rte_lpm.

use std::hint::black_box;

use ::tables::{Epoch, Lpm, LpmCapacity, Prefix};
use dpdk::yardstick;
use serde_json::Value;

use super::contest::{LookUp, take_turns};
use super::{Effort, SLICES, each, updates};
use crate::failure::Failure;
use crate::load::{Inside, Random, host};
use crate::results::{Better, Outcome, Samples};

/// Keys of one look-up call.
const BATCHES: [usize; 3] = [32, 64, 256];
/// Different values: as many as a router has neighbours.
const VALUES: u64 = 250;
/// Groups for prefixes longer than 24 bits that rte_fib and rte_lpm get.
const GROUPS: u32 = 4096;

/// Goals of the look-up in a full table: TSC cycles, bytes.
const GOAL_CYCLES: f64 = 12.0;
const GOAL_BYTES: f64 = 64e6;

struct Filled<A> {
    table: Lpm<A>,
    epoch: Epoch,
    outcomes: Vec<Outcome>,
}

/// Steps of the bar in [`full4`], [`few4`] and [`full6`].
pub(super) fn steps(rounds: u32) -> [usize; 3] {
    let table = SLICES + rounds as usize * BATCHES.len();
    [2 * table + updates::PARTS, 2 * table, table + updates::PARTS]
}

/// Fills a table, and tells how fast and how large.
fn fill<A: Inside>(
    family: &str,
    prefixes: &[Prefix<A>],
    effort: Effort<'_>,
) -> Result<Filled<A>, Failure> {
    let epoch = Epoch::new();
    let mut table = Lpm::new(LpmCapacity::routes(2_000_000), &epoch)?;
    let mut random = Random::new(6);
    let seconds = each(prefixes.iter(), effort.bar, |prefix| {
        table.insert(*prefix, value(&mut random))?;
        Ok(())
    })?;
    let rate = prefixes.len() as f64 / seconds;
    let of = |name: &str, unit, value| {
        let outcome = Outcome::new(name, unit, Samples(vec![value]));
        outcome.with(&parameters(family, prefixes.len()))
    };
    let outcomes = vec![
        of("LPM inserts", "1/s", rate),
        of("LPM memory of readers", "bytes", table.trie_bytes() as f64),
        of("LPM memory in all", "bytes", table.memory_bytes() as f64),
    ];
    Ok(Filled { table, epoch, outcomes })
}

fn value(random: &mut Random) -> u32 {
    1 + (random.next() % VALUES) as u32
}

fn parameters(family: &str, routes: usize) -> [(&'static str, Value); 2] {
    [("family", family.into()), ("routes", routes.into())]
}

fn keys<A: Inside>(prefixes: &[Prefix<A>], count: usize) -> Vec<A> {
    let mut random = Random::new(8);
    let one = |_| Some(host(*prefixes.get(random.below(prefixes.len()))?, &mut random));
    (0..count).filter_map(one).collect()
}

/// A full IPv4 table beside rte_fib.
pub(super) fn full4(
    prefixes: &[Prefix<u32>],
    effort: Effort<'_>,
    core: usize,
) -> Result<Vec<Outcome>, Failure> {
    let Filled { mut table, epoch, mut outcomes } = fill("IPv4", prefixes, effort)?;
    if let Some(memory) = outcomes.get_mut(1) {
        memory.goal = Some((GOAL_BYTES, Better::Less));
    }
    let mut fib = yardstick::Fib::new("bench", prefixes.len() as u32, GROUPS)?;
    let mut random = Random::new(6);
    let seconds = each(prefixes.iter(), effort.bar, |prefix| {
        Ok(fib.add(prefix.bits(), prefix.len(), value(&mut random))?)
    })?;
    let rate = prefixes.len() as f64 / seconds;
    if let Some(first) = outcomes.first_mut() {
        first.compare("rte_fib", rate, Better::More);
    }
    let keys = keys(prefixes, effort.keys);
    let reader = table.reader();
    for batch in BATCHES {
        let (mut values, mut next) = ([0u32; 256], [0u64; 256]);
        let ours: LookUp<'_> = Box::new(|from, to| {
            reader.lookup_batch(&keys[from..to], &mut values);
            black_box(&mut values);
        });
        let theirs: LookUp<'_> = Box::new(|from, to| {
            fib.lookup_bulk(&keys[from..to], &mut next);
            black_box(&mut next);
        });
        let samples = take_turns(keys.len(), batch, effort, &mut [ours, theirs])?;
        let mut outcome = compared("IPv4", prefixes.len(), batch, &samples, "rte_fib");
        outcome.goal = Some((GOAL_CYCLES, Better::Less));
        outcomes.push(outcome);
    }
    let rate = updates::rate(&mut table, &epoch, prefixes, &keys, effort, core)?;
    let mut outcome = Outcome::new("LPM updates while a thread reads", "1/s", rate);
    outcome.goal = Some((1e6, Better::More));
    outcomes.push(outcome.with(&parameters("IPv4", prefixes.len())));
    Ok(outcomes)
}

/// A small IPv4 table beside rte_lpm.
pub(super) fn few4(prefixes: &[Prefix<u32>], effort: Effort<'_>) -> Result<Vec<Outcome>, Failure> {
    let Filled { table, mut outcomes, .. } = fill("IPv4", prefixes, effort)?;
    let mut lpm = yardstick::Lpm::new("bench", prefixes.len() as u32, GROUPS)?;
    let mut random = Random::new(6);
    let seconds = each(prefixes.iter(), effort.bar, |prefix| {
        Ok(lpm.add(prefix.bits(), prefix.len(), value(&mut random))?)
    })?;
    let rate = prefixes.len() as f64 / seconds;
    if let Some(first) = outcomes.first_mut() {
        first.compare("rte_lpm", rate, Better::More);
    }
    let keys = keys(prefixes, effort.keys);
    let reader = table.reader();
    for batch in BATCHES {
        let (mut values, mut next) = ([0u32; 256], [0u32; 256]);
        let ours: LookUp<'_> = Box::new(|from, to| {
            reader.lookup_batch(&keys[from..to], &mut values);
            black_box(&mut values);
        });
        let theirs: LookUp<'_> = Box::new(|from, to| {
            lpm.lookup_bulk(&keys[from..to], &mut next);
            black_box(&mut next);
        });
        let samples = take_turns(keys.len(), batch, effort, &mut [ours, theirs])?;
        outcomes.push(compared("IPv4", prefixes.len(), batch, &samples, "rte_lpm"));
    }
    Ok(outcomes)
}

/// A full IPv6 table.
pub(super) fn full6(
    prefixes: &[Prefix<u128>],
    effort: Effort<'_>,
    core: usize,
) -> Result<Vec<Outcome>, Failure> {
    let Filled { mut table, epoch, mut outcomes } = fill("IPv6", prefixes, effort)?;
    let keys = keys(prefixes, effort.keys);
    let reader = table.reader();
    for batch in BATCHES {
        let mut values = [0u32; 256];
        let ours: LookUp<'_> = Box::new(|from, to| {
            reader.lookup_batch(&keys[from..to], &mut values);
            black_box(&mut values);
        });
        let samples = take_turns(keys.len(), batch, effort, &mut [ours])?;
        outcomes.push(compared("IPv6", prefixes.len(), batch, &samples, ""));
    }
    let rate = updates::rate(&mut table, &epoch, prefixes, &keys, effort, core)?;
    let outcome = Outcome::new("LPM updates while a thread reads", "1/s", rate);
    outcomes.push(outcome.with(&parameters("IPv6", prefixes.len())));
    Ok(outcomes)
}

fn compared(
    family: &str,
    routes: usize,
    batch: usize,
    samples: &[Samples],
    yardstick: &str,
) -> Outcome {
    let ours = samples.first().cloned().unwrap_or_default();
    let outcome = Outcome::new("LPM look-up", "TSC cycles", ours)
        .with(&parameters(family, routes))
        .with(&[("batch", batch.into())]);
    match samples.get(1) {
        Some(theirs) => outcome.against(yardstick, theirs.median(), Better::Less),
        None => outcome,
    }
}
