//! What the tests of the algorithms begin with: segments of 1,000 bytes, round trips of 100 ms.

use super::{Ack, RateSample, Start};

pub(super) fn start(window: u32, threshold: u32) -> Start {
    Start { mss: 1000, window, threshold, now: 0, seed: 0 }
}

/// An acknowledgment of `acked` bytes when the window was used up.
pub(super) fn ack(now: u64, acked: u32) -> Ack {
    Ack {
        now,
        acked,
        delivered: acked,
        total_delivered: 0,
        prior_in_flight: 0,
        in_flight: 0,
        window_limited: true,
        in_recovery: false,
        srtt: 100_000_000,
        min_rtt: 100_000_000,
        sample: RateSample::default(),
    }
}
