//! Contestants look the same keys up in turns.

use crate::results::Samples;

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
) -> Vec<Samples> {
    let mut samples = vec![Samples::default(); contestants.len()];
    for _ in 0..rounds {
        for (look_up, samples) in contestants.iter_mut().zip(&mut samples) {
            for _ in 0..PASSES {
                let start = dpdk::tsc();
                for from in (0..keys).step_by(batch) {
                    look_up(from, (from + batch).min(keys));
                }
                samples.0.push(dpdk::tsc().wrapping_sub(start) as f64 / keys as f64);
            }
        }
    }
    samples
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
        let samples = take_turns(100, 32, 3, &mut contestants);
        drop(contestants);
        assert!(seen.iter().all(|seen| seen.get() == 100 * 3 * PASSES));
        assert!(samples.iter().all(|samples| samples.0.len() == 3 * PASSES));
    }
}
