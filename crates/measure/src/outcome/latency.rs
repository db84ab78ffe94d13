//! How long frames took.

use hdrhistogram::Histogram;
use serde::Serialize;

/// What can be told apart: up to 100 s in ns, with three significant digits.
const LONGEST: u64 = 100_000_000_000;
const DIGITS: u8 = 3;

/// Times from when a frame was to be sent until it was received: ns.
///
/// Measured from the time in the schedule, not from when the sender got round to it, so that a device that holds the sender up
/// cannot hide it (no 'coordinated omission').
#[derive(Debug, Clone)]
pub struct Latency(Option<Histogram<u64>>);

/// What is said of a histogram: ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencySummary {
    /// How many frames were measured.
    pub frames: u64,
    /// The shortest.
    pub least: u64,
    /// Mean.
    pub mean: f64,
    /// The longest.
    pub most: u64,
    /// Half of the frames took no longer; RFC 8219 7.2 calls it the typical latency.
    pub p50: u64,
    /// 90 % of the frames took no longer.
    pub p90: u64,
    /// 99 % of the frames took no longer.
    pub p99: u64,
    /// 99.9 % of the frames took no longer; RFC 8219 7.2 calls it the worst-case latency.
    pub p999: u64,
    /// 99.99 % of the frames took no longer.
    pub p9999: u64,
    /// Packet delay variation (RFC 8219 7.3.1, RFC 5481): the 99.9th percentile less the shortest.
    pub variation: u64,
}

impl Default for Latency {
    fn default() -> Self {
        // The bounds are good, so there is always a histogram.
        Self(Histogram::new_with_bounds(1, LONGEST, DIGITS).ok())
    }
}

impl Latency {
    /// Counts one frame: ns.
    #[inline]
    pub fn record(&mut self, time: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(time);
        }
    }

    /// Adds the frames of another stream.
    pub fn add(&mut self, other: &Self) {
        if let (Some(ours), Some(theirs)) = (&mut self.0, &other.0) {
            // Both have the same bounds.
            let _ = ours.add(theirs);
        }
    }

    /// How many were counted.
    pub(super) fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    /// The time that stands at a place, from 1, when all are in rising order.
    pub(super) fn nth(&self, place: u64) -> u64 {
        let Some(histogram) = &self.0 else { return 0 };
        match place {
            1 => histogram.min(),
            // The middle of the place: a quotient of two large numbers may be a little too large.
            _ => histogram.value_at_quantile((place as f64 - 0.5) / histogram.len() as f64),
        }
    }

    /// What is said of it; `None`: no frame was measured.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at = |quantile| histogram.value_at_quantile(quantile);
        let (least, p999) = (histogram.min(), at(0.999));
        Some(LatencySummary {
            frames: histogram.len(),
            least,
            mean: histogram.mean(),
            most: histogram.max(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999,
            p9999: at(0.9999),
            variation: p999.saturating_sub(least),
        })
    }

    /// The distribution: times, and the share of frames that took no longer, 0 to 1; rising.
    #[must_use]
    pub fn distribution(&self) -> Vec<(u64, f64)> {
        let Some(histogram) = &self.0 else { return Vec::new() };
        let (mut before, all) = (0, histogram.len() as f64);
        let step = |value: hdrhistogram::iterators::IterationValue<u64>| {
            before += value.count_at_value();
            (value.value_iterated_to(), before as f64 / all)
        };
        histogram.iter_recorded().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_frames() {
        let mut latency = Latency::default();
        assert!(latency.summary().is_none() && latency.distribution().is_empty());
        (1..=10_000_u64).for_each(|time| latency.record(time));
        let summary = latency.summary().unwrap();
        let near =
            |value: u64, expected: f64| (value as f64 - expected).abs() <= expected / 1000.0 + 1.0;
        assert_eq!((summary.frames, summary.least), (10_000, 1));
        for (value, expected) in [
            (summary.most, 10_000.0),
            (summary.p50, 5_000.0),
            (summary.p90, 9_000.0),
            (summary.p99, 9_900.0),
            (summary.p999, 9_990.0),
            (summary.p9999, 9_999.0),
            (summary.variation, 9_989.0),
        ] {
            assert!(near(value, expected), "{value} {expected}");
        }
        assert!((summary.mean - 5000.5).abs() < 5.0, "{}", summary.mean);
        let distribution = latency.distribution();
        assert!(distribution.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert_eq!(distribution.last().map(|(_, share)| *share), Some(1.0));
    }

    #[test]
    fn what_is_out_of_bounds_is_kept_at_the_bound() {
        let mut latency = Latency::default();
        latency.record(0);
        latency.record(u64::MAX);
        let summary = latency.summary().unwrap();
        assert_eq!((summary.frames, summary.least), (2, 0));
        assert!(summary.most >= LONGEST);
        let mut other = Latency::default();
        other.record(7);
        other.add(&latency);
        assert_eq!(other.summary().unwrap().frames, 3);
    }
}
