//! How far apart two cores are at the moment: on a virtual machine that changes while it runs.

use std::sync::atomic::{AtomicU32, Ordering};

use super::cores::pin;
use crate::failure::Failure;

/// Two probes that differ by less see the machine in the same phase.
const ALIKE: f64 = 1.5;
/// Round trips of a sample, and samples of a probe: an odd number, so that one is in the middle.
const TRIPS: u32 = 100;
const SAMPLES: u32 = 51;

/// A word that has its cache line, and those beside it, to itself.
#[derive(Debug, Default)]
#[repr(align(256))]
struct Ball(AtomicU32);

/// Waits for a turn; where somebody else has the other core, it lets them go on.
fn wait_for(ball: &Ball, turn: u32) {
    let mut looks = 0_u32;
    while ball.0.load(Ordering::Acquire) != turn {
        std::hint::spin_loop();
        looks = looks.wrapping_add(1);
        if looks % 10_000 == 0 {
            std::thread::yield_now();
        }
    }
}

/// TSC cycles in which a cache line goes from one core to the other and back: the median.
pub(crate) fn round_trip([here, there]: [usize; 2]) -> Result<f64, Failure> {
    let ball = Ball::default();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let pinned = pin(there);
            for turn in 0..TRIPS * SAMPLES {
                wait_for(&ball, 2 * turn + 1);
                ball.0.store(2 * turn + 2, Ordering::Release);
            }
            pinned
        });
        let this = scope.spawn(|| {
            let pinned = pin(here);
            let samples = (0..SAMPLES).map(|sample| {
                let begin = dpdk::tsc();
                for turn in sample * TRIPS..(sample + 1) * TRIPS {
                    ball.0.store(2 * turn + 1, Ordering::Release);
                    wait_for(&ball, 2 * turn + 2);
                }
                dpdk::tsc().wrapping_sub(begin) as f64 / f64::from(TRIPS)
            });
            let mut samples: Vec<f64> = samples.collect();
            samples.sort_unstable_by(f64::total_cmp);
            pinned.map(|()| samples[SAMPLES as usize / 2])
        });
        other.join().map_err(|_| Failure::Thread)??;
        Ok(this.join().map_err(|_| Failure::Thread)??)
    })
}

/// Whether all probes saw the machine in one phase: the way between two cores of a virtual machine changes while it runs.
pub(crate) fn same_phase(probes: &[f64]) -> bool {
    let most = probes.iter().copied().fold(f64::NAN, f64::max);
    most <= ALIKE * probes.iter().copied().fold(f64::NAN, f64::min)
}

#[cfg(test)]
mod tests {
    use super::super::cores::outermost;
    use super::*;

    #[test]
    fn phases_are_told_apart() {
        assert!(same_phase(&[330.0, 400.0, 350.0]));
        assert!(!same_phase(&[330.0, 1000.0]) && !same_phase(&[900.0, 330.0, 340.0]));
        assert!(!same_phase(&[]));
    }

    #[test]
    fn the_line_comes_back() {
        assert!(round_trip(outermost()).unwrap() > 0.0);
    }
}
