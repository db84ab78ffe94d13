//! CUBIC (RFC 9438).
//!
//! Windows are in bytes; the cubic function is in segments and seconds, as the standard writes it.

use std::any::Any;

use super::{Ack, Congestion, CongestionControl, Start};

/// Multiplicative decrease (4.6).
const BETA: f64 = 0.7;
/// Steepness (5.1): segments per second cubed.
const C: f64 = 0.4;
/// What keeps up with Reno (4.3): segments a window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// HyStart (4.10 refers to it): a round-trip time so much above the least ends slow start: us.
const DELAY: (u32, u32) = (4000, 16_000);
/// No time.
const NEVER: u64 = u64::MAX;

/// What a reduction changes.
#[derive(Debug, Clone, Copy)]
struct Shape {
    window: f64,
    /// Segments.
    reno: f64,
    /// When this growth began: ns; `NEVER`: it has not.
    epoch: u64,
    /// What does not grow by small steps needs no more digits.
    threshold: f32,
    /// Window before the last reduction: segments.
    highest: f32,
    /// Seconds from the epoch to `highest`.
    k: f32,
    /// The initial window: segments.
    initial: f32,
}

/// Grows by a cubic function of the time since the last reduction. Every connection has one, so it
/// is kept small.
#[derive(Debug)]
pub struct Cubic {
    now: Shape,
    /// Before the last reduction.
    before: Option<Box<Shape>>,
    /// Nothing was acknowledged in new data since then: growth stands still: ns; `NEVER`: it does not.
    paused_at: u64,
    /// The round in which the delay is measured ends when so much is delivered, modulo 2^32.
    round_end: u32,
    /// Least round-trip time of this round and the last: us.
    rounds: [u32; 2],
    mss: u16,
    samples: u8,
}

/// Segments of a window, as far as an imported one is believed.
const SEGMENTS: std::ops::RangeInclusive<f64> = 0.1..=4.3e9;

carried!(Shape {
    window in SEGMENTS,
    reno in SEGMENTS,
    epoch @ time,
    threshold in 0.0..=f32::INFINITY,
    highest in 0.0..=f32::MAX,
    k in 0.0..=1e6,
    initial in 0.0..=4.3e9,
});

carried!(Cubic {
    now,
    before,
    paused_at @ time,
    round_end,
    rounds,
    mss in 1..=u16::MAX,
    samples,
});

const _: () = assert!(size_of::<Cubic>() <= 72, "a block of 80 bytes with the allocator's word");

impl Shape {
    /// The segment size changed: `factor` times as many segments make up the same bytes. Growth begins anew from there.
    fn scale(&mut self, factor: f64) {
        self.window = (self.window * factor).max(1.0);
        for segments in [&mut self.threshold, &mut self.highest, &mut self.initial] {
            *segments = (f64::from(*segments) * factor) as f32;
        }
        self.epoch = NEVER;
    }
}

impl Cubic {
    /// Slow start from the initial window.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let mss = start.mss.clamp(1, 65_535) as u16;
        let window = f64::from(start.window) / f64::from(mss);
        let known = start.threshold != u32::MAX;
        let threshold = if known { start.threshold as f32 / f32::from(mss) } else { f32::INFINITY };
        let now = Shape {
            window,
            reno: window,
            epoch: NEVER,
            threshold,
            highest: 0.0,
            k: 0.0,
            initial: window as f32,
        };
        Self {
            now,
            before: None,
            paused_at: NEVER,
            round_end: 0,
            rounds: [u32::MAX; 2],
            mss,
            samples: 0,
        }
    }

    fn mss(&self) -> f64 {
        f64::from(self.mss)
    }

    fn is_in_slow_start(&self) -> bool {
        self.now.window < f64::from(self.now.threshold)
    }

    fn reduce(&mut self) {
        self.before = Some(Box::new(self.now));
        let shape = &mut self.now;
        // 4.7: fast convergence, so that a new flow finds room.
        let fast = shape.window < f64::from(shape.highest);
        let share = if fast { f64::midpoint(1.0, BETA) } else { 1.0 };
        shape.highest = (shape.window * share) as f32;
        // 4.6
        shape.threshold = (shape.window * BETA).max(2.0) as f32;
        shape.epoch = NEVER;
    }

    fn begin_epoch(&mut self, now: u64) {
        let shape = &mut self.now;
        shape.epoch = now;
        shape.reno = shape.window;
        shape.highest = shape.highest.max(shape.window as f32);
        // 4.2, equation 2.
        let below = (f64::from(shape.highest) - shape.window).max(0.0);
        shape.k = (below / C).cbrt() as f32;
    }

    /// 4.2 to 4.5: `acked` segments, a round-trip time of `rtt` seconds.
    fn grow(&mut self, now: u64, acked: f64, rtt: f64) {
        if self.now.epoch == NEVER {
            self.begin_epoch(now);
        }
        let shape = &mut self.now;
        let t = now.saturating_sub(shape.epoch) as f64 / 1e9;
        let (k, highest) = (f64::from(shape.k), f64::from(shape.highest));
        let at = |t: f64| C * (t - k).powi(3) + highest;
        // 4.4 and 4.5 aim at one round-trip time ahead, at most half as much again.
        let target = at(t + rtt).clamp(shape.window, shape.window * 1.5);
        // 4.3 asks for the window before the reduction. By W_max, a new flow gets its share sooner: netsim's two flows are
        // even to more than 0.95, by that window to 0.86.
        let alpha = if shape.reno >= highest { 1.0 } else { ALPHA };
        shape.reno += alpha * acked / shape.window;
        let cubic = shape.window + (target - shape.window) / shape.window * acked;
        shape.window = if at(t) < shape.reno { shape.reno.max(shape.window) } else { cubic };
    }

    /// Slow start ends when the round-trip time climbs: a queue is building up.
    fn watch_delay(&mut self, ack: &Ack) {
        let Some(rtt) = ack.sample.rtt else { return };
        let rtt = (rtt / 1000).min(u64::from(u32::MAX - 1)) as u32;
        if (ack.sample.prior_delivered as u32).wrapping_sub(self.round_end) as i32 >= 0 {
            self.round_end = ack.total_delivered as u32;
            self.rounds = [u32::MAX, self.rounds[0]];
            self.samples = 0;
        }
        self.rounds[0] = self.rounds[0].min(rtt);
        self.samples = self.samples.saturating_add(1);
        let [current, last] = self.rounds;
        if self.samples >= 8 && last != u32::MAX && self.now.window >= 16.0 {
            let margin = (last / 8).clamp(DELAY.0, DELAY.1);
            if current >= last.saturating_add(margin) {
                self.now.threshold = self.now.window as f32;
            }
        }
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        if self.is_in_slow_start() {
            self.watch_delay(ack);
        }
        if ack.in_recovery {
            return;
        }
        if !ack.window_limited {
            return self.on_unused(ack.now);
        }
        let paused = std::mem::replace(&mut self.paused_at, NEVER);
        if paused != NEVER && self.now.epoch != NEVER {
            let idle = ack.now.saturating_sub(paused);
            self.now.epoch = self.now.epoch.saturating_add(idle).min(ack.now);
        }
        let mut acked = f64::from(ack.acked) / self.mss();
        if self.is_in_slow_start() {
            let growth = acked.min(f64::from(self.now.threshold) - self.now.window);
            self.now.window += growth;
            acked -= growth;
        }
        if acked > 0.0 {
            self.grow(ack.now, acked, ack.srtt as f64 / 1e9);
        }
    }

    fn on_loss(&mut self, _: &Congestion) {
        self.reduce();
        self.now.window = f64::from(self.now.threshold);
    }

    fn on_rto(&mut self, _: &Congestion) {
        // 4.8; what is remembered is from before the first time-out in a row.
        if self.now.window > 1.0 {
            self.reduce();
        }
        self.now.window = 1.0;
        // K is 0, and W_max the window with which congestion avoidance begins again.
        self.now.highest = 0.0;
    }

    fn on_ecn(&mut self, _: &Congestion, _: u32) {
        self.reduce();
        self.now.window = f64::from(self.now.threshold);
        self.before = None;
    }

    fn undo(&mut self, _: u64) {
        // 4.9
        if let Some(before) = self.before.take() {
            let window = self.now.window.max(before.window);
            self.now = Shape { window, ..*before };
        }
    }

    fn on_restart(&mut self, _: u64, idle: u64, rto: u64) {
        let halvings = idle.checked_div(rto).unwrap_or(0).min(31) as i32;
        let floor = f64::from(self.now.initial).min(self.now.window);
        // RFC 2861: slow start leads back to three quarters of what the path took, as in Linux.
        self.now.threshold = self.now.threshold.max((self.now.window * 0.75) as f32);
        self.now.window = (self.now.window / 2f64.powi(halvings)).max(floor);
        self.now.epoch = NEVER;
    }

    fn on_unused(&mut self, now: u64) {
        // 5.8: growth stands still while the window is not used.
        self.paused_at = self.paused_at.min(now);
    }

    fn set_mss(&mut self, mss: u32) {
        let mss = mss.clamp(1, 65_535) as u16;
        if mss == self.mss {
            return;
        }
        let factor = self.mss() / f64::from(mss);
        self.mss = mss;
        self.now.scale(factor);
        if let Some(before) = &mut self.before {
            before.scale(factor);
        }
    }

    fn window(&self) -> u32 {
        (self.now.window * self.mss()) as u32
    }

    fn threshold(&self) -> u32 {
        // A cast of what is too large gives the largest.
        (f64::from(self.now.threshold) * self.mss()) as u32
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests;
