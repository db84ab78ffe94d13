//! Round trips, counted by what is delivered (5.5.1), and whether the path is full (5.3.1.2).

use crate::congestion::Ack;

/// The present round trip.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// It ends when a segment is delivered that was sent after so much was delivered: bytes.
    ends_at: u64,
    /// A new one began with this acknowledgment.
    pub(super) start: bool,
    /// Those before.
    pub(super) count: u64,
    /// Those since the last probe for bandwidth began.
    pub(super) since_probe: u32,
}

/// So many no connection counts.
const MOST: u64 = 1 << 60;

carried!(Round { ends_at, start, count in 0..=MOST, since_probe });
carried!(Full { rate in 0.0..=1e18, count in 0..=3, now, reached });

impl Round {
    pub(super) fn update(&mut self, ack: &Ack) {
        self.start = ack.sample.interval > 0 && ack.sample.prior_delivered >= self.ends_at;
        if self.start {
            self.begin(ack.total_delivered);
            self.count += 1;
            self.since_probe = self.since_probe.saturating_add(1);
        }
    }

    /// One begins now, when `delivered` bytes are delivered in all.
    pub(super) fn begin(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }
}

/// Whether more rate is to be had.
#[derive(Debug, Default)]
pub(super) struct Full {
    /// The rate that must be exceeded by a quarter: bytes/s.
    pub(super) rate: f64,
    /// Rounds in a row that did not.
    count: u8,
    /// It was full at the last check.
    pub(super) now: bool,
    /// It was full at some time.
    pub(super) reached: bool,
}

impl Full {
    /// Once in a round.
    pub(super) fn check(&mut self, rate: f64) {
        if rate >= self.rate * 1.25 {
            self.watch(rate);
            return;
        }
        self.count += 1;
        self.now = self.count >= 3;
        self.reached |= self.now;
    }

    /// Watches from `rate` on.
    pub(super) fn watch(&mut self, rate: f64) {
        (self.rate, self.count, self.now) = (rate, 0, false);
    }

    /// What made it look full was no loss.
    pub(super) fn forget(&mut self) {
        self.watch(0.0);
    }
}
