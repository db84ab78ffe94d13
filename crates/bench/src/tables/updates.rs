//! Changes of a routing table while another thread looks addresses up.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ::tables::{Epoch, Lpm, Prefix};

use super::Effort;
use crate::failure::Failure;
use crate::load::{Inside, Random};
use crate::machine;
use crate::results::Samples;

/// Parts whose rates are the samples, and steps of the bar.
pub(super) const PARTS: usize = 10;

/// Removes routes and adds them again, one by one, while a thread on `core` reads; changes/s.
pub(super) fn rate<A: Inside>(
    table: &mut Lpm<A>,
    epoch: &Epoch,
    prefixes: &[Prefix<A>],
    keys: &[A],
    effort: Effort<'_>,
    core: usize,
) -> Result<Samples, Failure> {
    let reader = table.reader();
    let slot = epoch.register()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let body = move || {
            let pinned = machine::pin(core);
            let mut values = [0; 256];
            for batch in keys.chunks(256).cycle() {
                slot.quiescent();
                reader.lookup_batch(batch, &mut values);
                black_box(&mut values);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            pinned
        };
        let thread = scope.spawn(body);
        let changed = change(table, prefixes, effort);
        stop.store(true, Ordering::Relaxed);
        thread.join().map_err(|_| Failure::Thread)??;
        changed
    })
}

fn change<A: Inside>(
    table: &mut Lpm<A>,
    prefixes: &[Prefix<A>],
    Effort { updates, bar, .. }: Effort<'_>,
) -> Result<Samples, Failure> {
    let mut random = Random::new(9);
    let mut samples = Samples::default();
    for _ in 0..PARTS {
        let start = Instant::now();
        for _ in 0..updates / PARTS / 2 {
            if let Some(prefix) = prefixes.get(random.below(prefixes.len())) {
                let value = table.remove(*prefix).unwrap_or(1);
                table.insert(*prefix, value)?;
            }
        }
        samples.0.push((updates / PARTS) as f64 / start.elapsed().as_secs_f64());
        bar.step();
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use ::tables::LpmCapacity;

    use super::*;
    use crate::terminal::Parts;

    #[test]
    fn the_table_is_the_same_after_the_changes() {
        let epoch = Epoch::new();
        let mut table = Lpm::new(LpmCapacity::routes(10_000), &epoch).unwrap();
        let prefixes: Vec<_> = (0..100u32).map(|n| Prefix::new(n << 16, 16).unwrap()).collect();
        for prefix in &prefixes {
            table.insert(*prefix, prefix.bits() >> 16 | 1).unwrap();
        }
        let core = machine::cores()[0];
        let effort = Effort { rounds: 1, keys: 3, updates: 1000, bar: &Parts::new(0) };
        let samples = rate(&mut table, &epoch, &prefixes, &[1, 2, 3], effort, core).unwrap();
        assert_eq!(samples.0.len(), PARTS);
        for prefix in &prefixes {
            assert_eq!(table.get(*prefix), Some(prefix.bits() >> 16 | 1));
        }
    }
}
