//! NewReno (RFC 5681, RFC 6582).

use std::any::Any;

use super::{Ack, Congestion, CongestionControl, Start};

/// Additive increase, multiplicative decrease.
#[derive(Debug)]
pub struct NewReno {
    mss: u32,
    window: u32,
    threshold: u32,
    /// Bytes acknowledged towards the next segment of growth (RFC 3465).
    counted: u32,
    /// Window and threshold before the last reduction.
    before: Option<(u32, u32)>,
    initial: u32,
}

carried!(NewReno {
    mss in 1..=65_535,
    window,
    threshold,
    counted,
    before,
    initial,
});

impl NewReno {
    /// Slow start from the initial window.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            mss: start.mss.max(1),
            window: start.window,
            threshold: start.threshold,
            counted: 0,
            before: None,
            initial: start.window,
        }
    }

    fn reduce(&mut self, in_flight: u32) {
        // RFC 5681 equation 4.
        self.before = Some((self.window, self.threshold));
        self.threshold = (in_flight / 2).max(2 * self.mss);
        self.counted = 0;
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let mut acked = ack.acked;
        if self.window < self.threshold {
            // RFC 5681 3.1, with RFC 3465's byte counting: at most to the threshold.
            let growth = acked.min(self.threshold - self.window);
            self.window = self.window.saturating_add(growth);
            acked -= growth;
        }
        self.counted = self.counted.saturating_add(acked);
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window = self.window.saturating_add(self.mss);
        }
    }

    fn on_loss(&mut self, loss: &Congestion) {
        // RFC 5681 3.2 step 2: what limited transmit has sent beyond the window does not count.
        self.reduce(loss.in_flight.min(self.window));
        self.window = self.threshold;
    }

    fn on_rto(&mut self, loss: &Congestion) {
        // RFC 5681 3.1: the threshold is not reduced again while the same data is in trouble.
        if self.window > self.mss {
            self.reduce(loss.in_flight);
        }
        self.window = self.mss;
    }

    fn on_ecn(&mut self, congestion: &Congestion, _: u32) {
        self.reduce(congestion.in_flight);
        self.window = self.threshold;
        self.before = None;
    }

    fn undo(&mut self, _: u64) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
        }
    }

    fn on_restart(&mut self, _: u64, idle: u64, rto: u64) {
        // RFC 5681 4.1 restarts from the initial window; RFC 2861 halves per RTO, which is kinder.
        let halvings = idle.checked_div(rto).unwrap_or(0).min(31) as u32;
        // RFC 2861: slow start leads back to three quarters of what the path took, as in Linux.
        self.threshold = self.threshold.max(self.window / 4 * 3);
        self.window = (self.window >> halvings).max(self.initial.min(self.window));
    }

    fn set_mss(&mut self, mss: u32) {
        self.mss = mss.max(1);
        self.window = self.window.max(self.mss);
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn threshold(&self) -> u32 {
        self.threshold
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::fixture::{ack, start};

    #[test]
    fn doubles_then_adds_a_segment_a_window() {
        let mut reno = NewReno::new(&start(10_000, u32::MAX));
        reno.on_ack(&ack(0, 10_000));
        assert_eq!(reno.window(), 20_000);
        reno.on_loss(&Congestion { now: 0, in_flight: 20_000, lost: 1000 });
        assert_eq!((reno.window(), reno.threshold()), (10_000, 10_000));
        for _ in 0..10 {
            reno.on_ack(&ack(0, 1000));
        }
        assert_eq!(reno.window(), 11_000);
        reno.on_ack(&Ack { window_limited: false, ..ack(0, 11_000) });
        assert_eq!(reno.window(), 11_000);
    }

    #[test]
    fn a_spurious_timeout_is_undone() {
        let mut reno = NewReno::new(&start(10_000, u32::MAX));
        let loss = Congestion { now: 0, in_flight: 10_000, lost: 10_000 };
        reno.on_rto(&loss);
        reno.on_rto(&loss);
        assert_eq!((reno.window(), reno.threshold()), (1000, 5000));
        reno.undo(0);
        assert_eq!((reno.window(), reno.threshold()), (10_000, u32::MAX));
    }

    #[test]
    fn slow_start_after_a_pause_leads_back_to_three_quarters() {
        let mut reno = NewReno::new(&start(10_000, 8_000));
        (0..400).for_each(|_| reno.on_ack(&ack(0, 1000)));
        let window = reno.window();
        assert!(window > 20_000, "{window}");
        // The second pause finds a window that is no measure of the path.
        for _ in 0..2 {
            reno.on_restart(0, 10, 1);
            assert_eq!((reno.window(), reno.threshold()), (10_000, window / 4 * 3));
        }
    }
}
