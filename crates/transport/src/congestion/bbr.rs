//! BBR, version 3 (draft-ietf-ccwg-bbr-05): a model of the path instead of a reaction to loss.
//!
//! The model (`bbr/model.rs`) holds the rate at which the path delivers, its round-trip time without
//! queues, and what may be in flight before too much is lost. The states below probe them in turn.
//! Section numbers are the draft's. Not obeyed: a mark counts as a loss (the draft leaves ECN open), and
//! after idling shorter than a time-out the pacing rate is not set anew.

use std::any::Any;

use super::{Ack, Congestion, CongestionControl, Start};

mod cycle;
mod model;
mod moving;
mod rounds;

use cycle::Cycle;
use model::{Model, part};
use rounds::{Full, Round};

/// Gains of Startup (5.3.1): the least that doubles the rate in each round; and of the window.
const STARTUP: (f64, f64) = (2.77, 2.0);
/// Gains of Drain (5.3.2).
const DRAIN: (f64, f64) = (0.5, 2.0);
/// Gains of the window for ProbeRTT (5.3.4).
const PROBE_RTT: (f64, f64) = (1.0, 0.5);
/// Paced so much below the estimate, so that queues do not build up (5.6.2).
const MARGIN: f64 = 0.99;
/// How long little is in flight in ProbeRTT (5.3.4.3): ns.
const PROBE_RTT_DURATION: u64 = 200_000_000;
/// Rounds with losses that end Startup (5.3.1.3).
const STARTUP_LOSSES: u32 = 6;
/// Before the first measurement the round-trip time is taken for this: ns (5.6.2).
const NOMINAL_RTT: u64 = 1_000_000;

/// What a connection is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Doubles the rate until it grows no more.
    Startup,
    /// Lets the queue that Startup made run off.
    Drain,
    /// Probes for bandwidth, most of its life.
    ProbeBw(Phase),
    /// Has little in flight for a moment, to see the round-trip time without queues.
    ProbeRtt,
}

/// Phases of probing for bandwidth (5.3.3), in the order of their cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Down,
    Cruise,
    Refill,
    Up,
}

impl Phase {
    fn gains(self) -> (f64, f64) {
        match self {
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
        }
    }
}

/// Paces by a model of the path.
#[derive(Debug)]
pub struct Bbr {
    mss: u32,
    initial: u32,
    state: State,
    /// Bytes that may be in flight.
    window: u32,
    /// The window before recovery or ProbeRTT.
    saved: u32,
    /// Bytes per second.
    rate: f64,
    rate_is_nominal: bool,
    model: Model,
    round: Round,
    full: Full,
    cycle: Cycle,
    /// Recovery goes on.
    recovering: bool,
    /// What may be in flight in the long term, before the last loss.
    undo_long: u32,
    /// Sending began after a pause: the next sample does not ask for ProbeRTT.
    restarted: bool,
    /// ProbeRTT may end then: ns.
    probe_rtt_until: Option<u64>,
    probe_rtt_round_over: bool,
}

impl Bbr {
    /// Startup from the initial window.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let initial = start.window.max(start.mss);
        Self {
            mss: start.mss.max(1),
            initial,
            state: State::Startup,
            window: initial,
            saved: 0,
            rate: STARTUP.0 * rate_of(initial, NOMINAL_RTT),
            rate_is_nominal: true,
            model: Model::new(start.now),
            round: Round::default(),
            full: Full::default(),
            cycle: Cycle::new(start),
            recovering: false,
            undo_long: u32::MAX,
            restarted: false,
            probe_rtt_until: None,
            probe_rtt_round_over: false,
        }
    }

    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => STARTUP,
            State::Drain => DRAIN,
            State::ProbeBw(phase) => phase.gains(),
            State::ProbeRtt => PROBE_RTT,
        }
    }

    /// Whether this state sends faster than the path is known to deliver.
    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBw(Phase::Refill | Phase::Up))
    }

    /// The least that keeps acknowledgments coming (5.2): bytes.
    fn least(&self) -> u32 {
        4 * self.mss
    }

    /// 5.2.3: the model and the state.
    fn update(&mut self, ack: &Ack) {
        let rate = self.model.delivery_rate(&ack.sample);
        self.round.update(ack);
        self.model.note_delivery(ack, rate);
        if ack.sample.newly_lost > 0 {
            self.model.note_loss();
        }
        if self.model.is_loss_round_over() {
            self.check_startup_loss(ack);
            let probing = self.is_probing();
            self.model.adapt_short_term(probing, self.window);
        }
        let aggregation_rounds = if self.full.reached { 10 } else { 1 };
        self.model.note_aggregation(ack, self.window, self.round.count, aggregation_rounds);
        // A round without a measurement says nothing about growth.
        if !self.full.now && self.round.start && !ack.sample.app_limited && rate > 0.0 {
            self.full.check(rate);
        }
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain;
        }
        if self.state == State::Drain && ack.in_flight <= self.inflight(1.0) {
            self.start_down(ack.now, ack.total_delivered);
        }
        self.update_cycle(ack, rate);
        let expired = self.model.update_min_rtt(ack);
        self.check_probe_rtt(ack, expired);
        self.model.advance(ack, rate);
    }

    /// 5.3.1.3: too much is lost, so the path is full.
    fn check_startup_loss(&mut self, ack: &Ack) {
        let heavy = self.model.loss_events() >= STARTUP_LOSSES && is_too_high(&ack.sample);
        if self.state == State::Startup && heavy && self.recovering {
            self.full.reached = true;
            self.model.inflight_long = self.bdp(1.0).max(self.model.inflight_latest());
        }
    }

    /// 5.3.4
    fn check_probe_rtt(&mut self, ack: &Ack, expired: bool) {
        if self.state != State::ProbeRtt && expired && !self.restarted {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt_until = None;
            self.cycle.stop_probing();
            self.round.begin(ack.total_delivered);
        }
        if ack.sample.delivered > 0 {
            self.restarted = false;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        match self.probe_rtt_until {
            None if ack.in_flight <= self.probe_rtt_window() => {
                self.probe_rtt_until = Some(ack.now.saturating_add(PROBE_RTT_DURATION));
                self.probe_rtt_round_over = false;
                self.round.begin(ack.total_delivered);
            }
            Some(until) => {
                self.probe_rtt_round_over |= self.round.start;
                if self.probe_rtt_round_over && ack.now > until {
                    self.leave_probe_rtt(ack.now, ack.total_delivered);
                }
            }
            None => {}
        }
    }

    fn leave_probe_rtt(&mut self, now: u64, delivered: u64) {
        self.model.min_rtt_is_fresh(now);
        self.restore_window();
        self.model.forget_short_term();
        if self.full.reached {
            self.start_down(now, delivered);
            self.state = State::ProbeBw(Phase::Cruise);
        } else {
            self.state = State::Startup;
        }
    }

    /// Bandwidth times delay (5.6.4.2): bytes.
    fn bdp(&self, gain: f64) -> u32 {
        match self.model.min_rtt {
            u64::MAX => self.initial,
            rtt => part(self.model.bandwidth() * rtt as f64 / 1e9, gain),
        }
    }

    /// What is to be in flight: room for batches on top, and never too little.
    fn inflight(&self, gain: f64) -> u32 {
        self.quantized(self.bdp(gain))
    }

    fn quantized(&self, inflight: u32) -> u32 {
        // 5.6.3: a batch of the port is a millisecond's worth.
        let batch = part(self.rate / 1000.0, 1.0).min(65_536).max(2 * self.mss);
        let probing = if self.state == State::ProbeBw(Phase::Up) { 2 * self.mss } else { 0 };
        inflight.max(batch.saturating_mul(3)).max(self.least()).saturating_add(probing)
    }

    fn probe_rtt_window(&self) -> u32 {
        self.bdp(PROBE_RTT.1).max(self.least())
    }

    /// 5.6.2
    fn set_rate(&mut self, ack: &Ack) {
        if self.rate_is_nominal && ack.srtt > 0 {
            self.rate_is_nominal = false;
            self.rate = STARTUP.0 * rate_of(self.window, ack.srtt);
        }
        let rate = self.gains().0 * self.model.bandwidth() * MARGIN;
        if rate > 0.0 && (self.full.reached || rate > self.rate) {
            self.rate = rate;
        }
    }

    /// 5.6.4
    fn set_window(&mut self, ack: &Ack) {
        // A heap of acknowledgments is no larger than the window that it answers: to learn that there is room for larger ones, a
        // probe must send more than the last.
        let heaps = if self.state == State::ProbeBw(Phase::Up) { 2 } else { 1 };
        let extra = self.model.extra_acked().saturating_mul(heaps);
        let most = self.bdp(self.gains().1).saturating_add(extra);
        let most = self.quantized(most);
        if self.full.reached {
            self.window = self.window.saturating_add(ack.delivered).min(most);
        } else if self.window < most || ack.total_delivered < u64::from(self.initial) {
            self.window = self.window.saturating_add(ack.delivered);
        }
        // Before anything is known again after a time-out, the window starts from one segment.
        let least = if self.recovering { self.mss } else { self.least() };
        self.window = self.window.max(least);
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            State::ProbeBw(Phase::Cruise) | State::ProbeRtt => self.headroom(),
            State::ProbeBw(_) => self.model.inflight_long,
            _ => u32::MAX,
        };
        let cap = cap.min(self.model.inflight_short).max(self.least());
        self.window = self.window.min(cap);
    }

    fn save_window(&mut self) {
        let larger = self.recovering || self.state == State::ProbeRtt;
        self.saved = if larger { self.saved.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(std::mem::take(&mut self.saved));
    }
}

/// Bytes per second of so many bytes in a round-trip time of `rtt` ns.
fn rate_of(bytes: u32, rtt: u64) -> f64 {
    f64::from(bytes) * 1e9 / rtt.max(1) as f64
}

/// More than 2 % of a window was lost (5.5.10.1): the queue is full.
fn is_too_high(sample: &super::RateSample) -> bool {
    u64::from(sample.lost) * super::HEAVY_LOSS > u64::from(sample.tx_in_flight)
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, ack: &Ack) {
        self.update(ack);
        self.set_rate(ack);
        self.set_window(ack);
    }

    fn on_loss(&mut self, _: &Congestion) {
        self.save_window();
        self.undo_long = self.model.inflight_long;
        self.recovering = true;
    }

    fn on_recovered(&mut self, _: u64) {
        self.recovering = false;
        if self.state != State::ProbeRtt {
            self.restore_window();
        }
    }

    fn on_rto(&mut self, _: &Congestion) {
        self.save_window();
        self.undo_long = self.model.inflight_long;
        self.recovering = true;
        self.window = self.mss;
    }

    fn on_ecn(&mut self, congestion: &Congestion, _: u32) {
        self.model.note_loss();
        self.on_too_high(congestion.in_flight, false, congestion.now, None);
    }

    fn undo(&mut self, _: u64) {
        self.restore_window();
        self.full.forget();
        self.model.forget_short_term();
        self.model.inflight_long = self.model.inflight_long.max(self.undo_long);
    }

    fn on_restart(&mut self, now: u64, _: u64, _: u64) {
        self.restarted = true;
        self.model.restart_aggregation(now);
        if matches!(self.state, State::ProbeBw(_)) {
            self.rate = self.model.bandwidth() * MARGIN;
        }
    }

    fn set_mss(&mut self, mss: u32) {
        self.mss = mss.max(1);
        self.window = self.window.max(self.mss);
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn threshold(&self) -> u32 {
        if self.state == State::Startup { u32::MAX } else { self.window }
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.rate.max(1.0) as u64)
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests;
