//! Samples of a turn in which others do the work.

use std::thread::sleep;
use std::time::Duration;

use crate::failure::Failure;
use crate::results::Samples;

/// When a turn is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampling {
    /// What passes before the first sample: caches are others' then.
    pub(crate) warm_up: Duration,
    /// Length of a sample: short, so that some have the core to themselves.
    pub(crate) sample: Duration,
    pub(crate) samples: u32,
}

impl Sampling {
    /// Asks at the end of each sample for what came of it: of the time since the question before.
    pub(crate) fn take(
        self,
        mut since: impl FnMut() -> Result<f64, Failure>,
    ) -> Result<Samples, Failure> {
        sleep(self.warm_up);
        // What came of the warm-up does not count.
        since()?;
        let mut samples = Samples::default();
        for _ in 0..self.samples {
            sleep(self.sample);
            samples.0.push(since()?);
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Sampling =
        Sampling { warm_up: Duration::ZERO, sample: Duration::ZERO, samples: 3 };

    #[test]
    fn the_warm_up_does_not_count() {
        let mut asked = 0.0;
        let samples = THREE.take(|| {
            asked += 1.0;
            Ok(asked)
        });
        assert_eq!(samples.unwrap().0, [2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_sample_that_fails_ends_the_turn() {
        let mut left = 2;
        let samples = THREE.take(|| {
            left -= 1;
            if left == 0 { Err(Failure::Thread) } else { Ok(0.0) }
        });
        assert!(matches!(samples, Err(Failure::Thread)));
        assert_eq!(left, 0);
    }
}
