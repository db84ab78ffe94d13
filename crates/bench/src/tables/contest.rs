//! Contestants look the same keys up in turns.

use crate::failure::Failure;
use crate::results::Samples;
use crate::turns::alternate;

/// Passes over the keys in one turn.
const PASSES: usize = 4;

/// One contestant: looks up a part of the keys.
pub(super) type LookUp<'a> = Box<dyn FnMut(usize, usize) + 'a>;

/// TSC cycles per key of each contestant, who are given the keys in batches by their range.
pub(super) fn take_turns(
    keys: usize,
    batch: usize,
    rounds: u32,
    contestants: &mut [LookUp<'_>],
) -> Result<Vec<Samples>, Failure> {
    let turns = alternate(contestants, rounds, |look_up| {
        let pass = |_| {
            let start = dpdk::tsc();
            for from in (0..keys).step_by(batch) {
                look_up(from, (from + batch).min(keys));
            }
            dpdk::tsc().wrapping_sub(start) as f64 / keys as f64
        };
        Ok((0..PASSES).map(pass).collect::<Vec<_>>())
    })?;
    Ok(turns.into_iter().map(|turns| Samples(turns.concat())).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn everybody_gets_every_key() {
        let seen = [Cell::new(0), Cell::new(0)];
        let look_up = |at: usize| -> LookUp<'_> {
            let seen = &seen[at];
            Box::new(move |from, to| {
                assert!(to - from <= 32 && to <= 100);
                seen.set(seen.get() + to - from);
            })
        };
        let mut contestants = [look_up(0), look_up(1)];
        let samples = take_turns(100, 32, 3, &mut contestants).unwrap();
        drop(contestants);
        // A machine that others use makes it take more rounds.
        let rounds = seen[0].get() / (100 * PASSES);
        assert!(rounds >= 3 && seen.iter().all(|seen| seen.get() == 100 * rounds * PASSES));
        let turns = |samples: &Samples| samples.0.len() / PASSES;
        assert!(samples.iter().all(|samples| (3..=rounds).contains(&turns(samples))));
    }
}
