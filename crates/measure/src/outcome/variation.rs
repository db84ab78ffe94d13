//! How delays differ from one frame to the next.

use serde::Serialize;

use super::Latency;

/// Inter packet delay variation (RFC 8219 7.3.2, RFC 5481 4.1): the delay of a frame less that of the one before it. Pairs of
/// which a frame was lost, or came out of order, are left out.
#[derive(Debug, Clone, Default)]
pub struct Variation {
    /// Differences below 0, without their sign, and the others: ns.
    shorter: Latency,
    longer: Latency,
    before: Option<(u64, u64)>,
}

/// What is said of them: ns. RFC 8219 7.3.2 asks for these three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VariationSummary {
    /// How many pairs there were.
    pub pairs: u64,
    /// The frame that came most early after the one before it.
    pub least: i64,
    /// Half of the differences are no larger.
    pub median: i64,
    /// The frame that came most late after the one before it.
    pub most: i64,
}

impl Variation {
    /// Counts a frame, whose delay was so long: ns.
    #[inline]
    pub fn take(&mut self, sequence: u64, delay: u64) {
        if let Some((_, before)) = self.before.filter(|(last, _)| last + 1 == sequence) {
            if delay >= before {
                self.longer.record(delay - before);
            } else {
                self.shorter.record(before - delay);
            }
        }
        self.before = Some((sequence, delay));
    }

    /// Adds the pairs of another stream.
    pub fn add(&mut self, other: &Self) {
        self.shorter.add(&other.shorter);
        self.longer.add(&other.longer);
    }

    /// What is said of it; `None`: there was no pair.
    #[must_use]
    pub fn summary(&self) -> Option<VariationSummary> {
        let (shorter, longer) = (self.shorter.count(), self.longer.count());
        let pairs = shorter + longer;
        if pairs == 0 {
            return None;
        }
        // The differences in rising order: the longest of the shorter delays comes first.
        let nth = |place: u64| match place.checked_sub(shorter) {
            None | Some(0) => -signed(self.shorter.nth(shorter + 1 - place)),
            Some(place) => signed(self.longer.nth(place)),
        };
        Some(VariationSummary {
            pairs,
            least: nth(1),
            median: nth(pairs.div_ceil(2)),
            most: nth(pairs),
        })
    }
}

fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frames: &[(u64, u64)]) -> Option<VariationSummary> {
        let mut variation = Variation::default();
        frames.iter().for_each(|(sequence, delay)| variation.take(*sequence, *delay));
        variation.summary()
    }

    #[test]
    fn differences_are_those_of_neighbours() {
        assert!(of(&[]).is_none() && of(&[(3, 100)]).is_none());
        let all = of(&[(0, 100), (1, 150), (2, 130), (3, 131), (4, 131)]).unwrap();
        let expected = VariationSummary { pairs: 4, least: -20, median: 0, most: 50 };
        assert_eq!(all, expected);
        // Of a lost frame, and of one that is late, there is no pair.
        assert_eq!(of(&[(0, 100), (2, 500), (1, 900)]), None);
        let falling = of(&[(0, 100), (1, 90), (2, 60)]).unwrap();
        assert_eq!((falling.least, falling.median, falling.most), (-30, -30, -10));
        let rising = of(&[(0, 60), (1, 90), (2, 100)]).unwrap();
        assert_eq!((rising.least, rising.median, rising.most), (10, 10, 30));
    }

    #[test]
    fn streams_add_up() {
        let (mut one, mut other) = (Variation::default(), Variation::default());
        [(0, 10), (1, 20)].iter().for_each(|(sequence, delay)| one.take(*sequence, *delay));
        [(0, 10), (1, 5)].iter().for_each(|(sequence, delay)| other.take(*sequence, *delay));
        one.add(&other);
        let expected = VariationSummary { pairs: 2, least: -5, median: -5, most: 10 };
        assert_eq!(one.summary(), Some(expected));
    }
}
