//! The ratio of two medians, and how far it may be trusted: the bootstrap (Efron, Annals of Statistics 7, 1979).

use crate::load::Random;

/// Resamples. Efron and Tibshirani (An Introduction to the Bootstrap, 1993, 14.3) want 1000 or more for bounds.
const RESAMPLES: usize = 2000;
/// Samples that are drawn for them at most, some seconds' worth: no run of ours has so many that this means fewer resamples. The
/// least that has bounds at all.
const DRAWS: usize = 1 << 28;
const LEAST: usize = 40;
/// So that the same files give the same words.
const SEED: u64 = 14;
/// What lies below and above the 95 %.
const TAIL: f64 = 0.025;

/// A ratio with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The middle one, or the mean of the two in the middle; `NaN` without samples. Reorders them.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    let (length, middle) = (samples.len(), samples.len() / 2);
    if length == 0 {
        return f64::NAN;
    }
    let (below, upper, _) = samples.select_nth_unstable_by(middle, f64::total_cmp);
    if length % 2 == 1 {
        return *upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower, *upper)
}

/// The median of `b` to that of `a`. Each is a list of runs, each run a list of samples: runs are drawn first and their samples
/// then, as the samples of a run have its luck in common. `None` where not all are positive.
pub(crate) fn ratio_of_medians(a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<Interval> {
    let positive = |runs: &[Vec<f64>]| {
        let is_good = |sample: &f64| *sample > 0.0 && sample.is_finite();
        runs.iter().any(|run| !run.is_empty()) && runs.iter().flatten().all(is_good)
    };
    if !positive(a) || !positive(b) {
        return None;
    }
    let ratio = median(&mut b.concat()) / median(&mut a.concat());
    let mut random = Random::new(SEED);
    let mut drawn = Vec::new();
    let samples = a.iter().chain(b).map(Vec::len).sum();
    let mut ratios: Vec<f64> = (0..resamples(samples))
        .map(|_| {
            let below = draw(a, &mut random, &mut drawn);
            draw(b, &mut random, &mut drawn) / below
        })
        .filter(|ratio| ratio.is_finite())
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let last = ratios.len().checked_sub(1)?;
    let low = (last as f64 * TAIL).floor() as usize;
    Some(Interval { ratio, low: *ratios.get(low)?, high: *ratios.get(last - low)? })
}

/// How many resamples there are of so many samples.
fn resamples(samples: usize) -> usize {
    (DRAWS / samples.max(1)).clamp(LEAST, RESAMPLES)
}

/// The median of a resample.
fn draw(runs: &[Vec<f64>], random: &mut Random, drawn: &mut Vec<f64>) -> f64 {
    drawn.clear();
    for _ in runs {
        let run = &runs[random.below(runs.len())];
        drawn.extend(run.iter().map(|_| run[random.below(run.len())]));
    }
    median(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn a_file_of_millions_of_samples_keeps_nobody_waiting() {
        let all = [0, 40, 100_000, 1_000_000, 30_000_000].map(resamples);
        assert_eq!(all, [RESAMPLES, RESAMPLES, RESAMPLES, 268, LEAST]);
    }

    #[test]
    fn a_ratio_needs_positive_samples() {
        let good = [vec![2.0, 2.0]];
        assert_eq!(
            ratio_of_medians(&good, &[vec![3.0]]),
            Some(Interval { ratio: 1.5, low: 1.5, high: 1.5 })
        );
        for bad in [vec![], vec![0.0, 1.0], vec![-1.0], vec![f64::INFINITY], vec![f64::NAN]] {
            let bad = [bad];
            assert_eq!(ratio_of_medians(&good, &bad), None, "{bad:?}");
            assert_eq!(ratio_of_medians(&bad, &good), None, "{bad:?}");
        }
        assert_eq!(ratio_of_medians(&good, &[]), None);
    }

    /// About normal, with this mean and a standard deviation of a tenth of it: the sum of twelve uniform numbers.
    fn noisy(random: &mut Random, mean: f64) -> f64 {
        let uniform = |random: &mut Random| random.below(1 << 20) as f64 / f64::from(1 << 20);
        let sum: f64 = (0..12).map(|_| uniform(random)).sum();
        mean * (1.0 + (sum - 6.0) / 10.0)
    }

    #[test]
    fn the_interval_holds_the_true_ratio_as_often_as_it_says() {
        let mut random = Random::new(3);
        let trials = 300;
        let held = (0..trials).filter(|_| {
            let mut group = |mean| [(0..30).map(|_| noisy(&mut random, mean)).collect::<Vec<_>>()];
            let (a, b) = (group(100.0), group(120.0));
            let found = ratio_of_medians(&a, &b).unwrap();
            (found.low..=found.high).contains(&1.2)
        });
        let share = held.count() as f64 / f64::from(trials);
        assert!((0.91..0.99).contains(&share), "{share}");
    }

    #[test]
    fn what_differs_between_runs_widens_the_interval() {
        let mut random = Random::new(4);
        // Two runs, each with its own luck.
        let mut run = |mean| (0..50).map(|_| noisy(&mut random, mean)).collect::<Vec<_>>();
        let (a, b) = ([run(100.0), run(110.0)], [run(101.0), run(111.0)]);
        let apart = ratio_of_medians(&a, &b).unwrap();
        let pooled = ratio_of_medians(&[a.concat()], &[b.concat()]).unwrap();
        let width = |interval: Interval| interval.high - interval.low;
        assert!(width(apart) > 1.5 * width(pooled), "{apart:?} {pooled:?}");
    }
}
