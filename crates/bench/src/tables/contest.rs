//! Contestants look the same keys up in turns.

use super::Effort;
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
    effort: Effort<'_>,
    contestants: &mut [LookUp<'_>],
) -> Result<Vec<Samples>, Failure> {
    let turns = alternate(contestants, effort.rounds, |look_up| {
        let pass = |_| {
            let start = dpdk::tsc();
            for from in (0..keys).step_by(batch) {
                look_up(from, (from + batch).min(keys));
            }
            dpdk::tsc().wrapping_sub(start) as f64 / keys as f64
        };
        let passes: Vec<f64> = (0..PASSES).map(pass).collect();
        effort.bar.step();
        Ok(passes)
    })?;
    Ok(turns.into_iter().map(|turns| Samples(turns.concat())).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::terminal::Parts;

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
        let effort = Effort { rounds: 3, keys: 100, updates: 0, bar: &Parts::new(0) };
        let samples = take_turns(100, 32, effort, &mut contestants).unwrap();
        drop(contestants);
        // A machine that others use makes it take more rounds.
        let rounds = seen[0].get() / (100 * PASSES);
        assert!(rounds >= 3 && seen.iter().all(|seen| seen.get() == 100 * rounds * PASSES));
        let turns = |samples: &Samples| samples.0.len() / PASSES;
        assert!(samples.iter().all(|samples| (3..=rounds).contains(&turns(samples))));
    }
}
