//! When frames are due.

use super::wire_bits;

/// Fractions of a nanosecond: 1 in so many. A trial can last three days.
const FINE: f64 = (1_u64 << FINE_BITS) as f64;
const FINE_BITS: u32 = 16;

/// When frames are due, at an even rate.
///
/// A sender that falls behind catches up by as much as `slack`; what is due longer ago is not sent, so that a sender that was
/// held up does not follow with a burst that nobody asked for. What was not sent is counted: [`withheld`](Self::withheld).
#[derive(Debug, Clone)]
pub struct Schedule {
    /// When the next frame is due: fractions of ns since the trial began.
    next: u64,
    /// Times between frames, in the order of the cycle's sizes.
    gaps: Vec<u64>,
    at: usize,
    slack: u64,
    left: u64,
    withheld: u64,
}

/// A frame to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Which of the cycle's sizes it has.
    pub size: usize,
    /// When it is due: ns since the trial began.
    pub due: u64,
}

impl Schedule {
    /// `frames` frames whose sizes come from `cycle`, at `rate` bit/s on the wire. `slack`: ns.
    #[must_use]
    pub fn new(cycle: &[u16], rate: f64, frames: u64, slack: u64) -> Self {
        let gap = |size: &u16| (wire_bits(*size) as f64 * 1e9 * FINE / rate).round() as u64;
        let gaps = cycle.iter().map(gap).collect();
        Self { next: 0, gaps, at: 0, slack: slack << FINE_BITS, left: frames, withheld: 0 }
    }

    /// The next frame, if it is due at `now`: ns since the trial began.
    #[inline]
    pub fn due(&mut self, now: u64) -> Option<Departure> {
        let now = now << FINE_BITS;
        if self.left == 0 || self.next > now {
            return None;
        }
        if now - self.next > self.slack {
            self.catch_up(now - self.slack);
            if self.left == 0 || self.next > now {
                return None;
            }
        }
        let departure = Departure { size: self.at, due: self.next >> FINE_BITS };
        self.step();
        Some(departure)
    }

    /// Withholds what was due before `from`: whole cycles at once, or a sender that cannot keep up would fall ever further
    /// behind.
    #[cold]
    fn catch_up(&mut self, from: u64) {
        let (before, frames) = (self.left, self.gaps.len() as u64);
        let cycle: u64 = self.gaps.iter().sum();
        let laps = (from - self.next) / cycle.max(1);
        let laps = laps.min(self.left / frames.max(1));
        self.next += laps * cycle;
        self.left -= laps * frames;
        while self.left > 0 && self.next < from {
            self.step();
        }
        self.withheld += before - self.left;
    }

    fn step(&mut self) {
        self.next += self.gaps.get(self.at).copied().unwrap_or(u64::MAX >> 1);
        self.at = if self.at + 1 < self.gaps.len() { self.at + 1 } else { 0 };
        self.left -= 1;
    }

    /// Whether all frames were given out, or withheld.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Frames that were due too long ago to be sent.
    #[must_use]
    pub fn withheld(&self) -> u64 {
        self.withheld
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_are_due_at_an_even_rate() {
        // 10 Gbit/s: a frame of 64 bytes takes 67.2 ns.
        let mut schedule = Schedule::new(&[64], 10e9, 5, 1000);
        let due: Vec<u64> = (0..5).map(|_| schedule.due(1000).unwrap().due).collect();
        assert_eq!(due, [0, 67, 134, 201, 268]);
        assert!(schedule.is_over() && schedule.due(1000).is_none());
        let mut schedule = Schedule::new(&[64], 10e9, 5, 1000);
        assert!(schedule.due(0).is_some());
        assert!(schedule.due(66).is_none() && schedule.due(68).is_some());
    }

    #[test]
    fn long_frames_take_longer() {
        let mut schedule = Schedule::new(&[64, 1518], 1e9, 4, 100_000);
        let due: Vec<_> = std::iter::from_fn(|| schedule.due(50_000)).collect();
        let times = [0, 672, 12_976, 13_648];
        let expected =
            times.iter().zip([0, 1, 0, 1]).map(|(due, size)| Departure { size, due: *due });
        assert!(due.iter().copied().eq(expected), "{due:?}");
    }

    #[test]
    fn what_is_too_late_is_withheld_and_never_a_burst() {
        let mut schedule = Schedule::new(&[64], 10e9, 1_000_000, 672);
        assert!(schedule.due(0).is_some());
        // Held up for a millisecond: only what was due in the last 672 ns goes out.
        let burst = std::iter::from_fn(|| schedule.due(1_000_000)).count();
        assert!((10..=11).contains(&burst), "{burst}");
        assert_eq!(schedule.withheld() + burst as u64 + 1, 1_000_000 * 10 / 672 + 1);
    }

    proptest! {
        #[test]
        fn all_frames_are_given_out_or_withheld(
            frames in 0..3000_u64, rate in 1e6..1e11, slack in 0..100_000_u64, jumps in prop::collection::vec(0..50_000_u64, 1..200),
        ) {
            let mut schedule = Schedule::new(&[64, 512, 64], rate, frames, slack);
            let (mut now, mut sent, mut last) = (0, 0, 0);
            for jump in jumps.into_iter().chain([100_000_000_000]) {
                now += jump;
                while let Some(departure) = schedule.due(now) {
                    prop_assert!(departure.due <= now && now - departure.due <= slack);
                    prop_assert!(departure.due >= last);
                    (last, sent) = (departure.due, sent + 1);
                }
            }
            prop_assert_eq!(sent + schedule.withheld(), frames);
            prop_assert!(schedule.is_over());
        }
    }
}
