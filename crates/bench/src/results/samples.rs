//! What is made of samples.

use serde::Serialize;

/// The samples of one quantity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl Samples {
    /// The middle one, or the mean of the two in the middle; `NaN` without samples.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (Some(low), Some(high)) =
            (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.get(sorted.len() / 2))
        else {
            return f64::NAN;
        };
        f64::midpoint(*low, *high)
    }

    /// The one below which so many of a hundred lie; `NaN` without samples.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
        sorted.get(at.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// The smallest one; `NaN` without samples.
    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The largest one; `NaN` without samples.
    pub(crate) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// The median of each so many in a row: of each turn.
    pub(crate) fn medians(&self, length: usize) -> Self {
        let turns = self.0.chunks(length.max(1));
        Self(turns.map(|turn| Self(turn.to_vec()).median()).collect())
    }

    /// What each is above the other of the same round.
    pub(crate) fn above(&self, others: &Self) -> Self {
        Self(self.0.iter().zip(&others.0).map(|(one, other)| one - other).collect())
    }

    /// Each to the other of the same round.
    pub(crate) fn ratios(&self, others: &Self) -> Self {
        Self(self.0.iter().zip(&others.0).map(|(one, other)| one / other).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_each_round() {
        let (ours, its) = (Samples(vec![2.0, 30.0]), Samples(vec![1.0, 10.0]));
        assert_eq!(ours.ratios(&its).0, [2.0, 3.0]);
    }

    #[test]
    fn turns_are_paired() {
        let ours = Samples(vec![5.0, 6.0, 70.0, 1.0, 2.0]);
        assert_eq!(ours.medians(3).0, [6.0, 1.5]);
        assert_eq!(ours.medians(3).above(&Samples(vec![2.0, 1.0])).0, [4.0, 0.5]);
        assert!(Samples::default().medians(0).0.is_empty());
    }

    #[test]
    fn median_percentile_and_range() {
        assert_eq!(Samples(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Samples(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        let some = Samples(vec![4.0, 1.0, 9.0, 3.0]);
        assert_eq!((some.min(), some.max()), (1.0, 9.0));
        let hundred = Samples((1..=100).rev().map(f64::from).collect());
        assert_eq!((hundred.percentile(99.0), hundred.percentile(50.0)), (99.0, 50.0));
        assert_eq!(Samples(vec![7.0]).percentile(99.0), 7.0);
        assert!(Samples::default().percentile(99.0).is_nan());
        assert!(Samples::default().median().is_nan());
        assert!(Samples::default().min().is_nan() && Samples::default().max().is_nan());
    }
}
