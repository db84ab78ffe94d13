//! Probing for bandwidth (5.3.3): down, cruise, refill, up.

use super::model::{BETA, part};
use super::{Bbr, Phase, State, is_too_high};
use crate::congestion::{Ack, HEAVY_LOSS, Start};

/// What is left free for others while cruising (5.2): a share of what may be in flight.
const HEADROOM: f64 = 0.15;
/// Between two probes: 2 s and up to a second more (5.3.3.5): ns.
const WAIT: u64 = 2_000_000_000;
/// Rounds between two probes at most, so that Reno on a short path is not starved (5.3.3.5).
const ROUNDS: u32 = 63;

/// What the acknowledgments that arrive say of the last probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feedback {
    None,
    /// The probe began, its segments are on the way.
    Starting,
    /// They are being acknowledged.
    Arriving,
    /// The probe is over; the last of its segments are.
    Stopping,
}

/// Where the cycle is.
#[derive(Debug)]
pub(super) struct Cycle {
    feedback: Feedback,
    /// What is delivered now was sent to probe: losses say what is too much.
    samples: bool,
    /// The phase began: ns.
    began: u64,
    /// Until the next probe: ns.
    wait: u64,
    /// Bytes acknowledged towards the next segment of growth, and how many it takes.
    acked: u32,
    acked_per_segment: u32,
    /// Rounds of growth.
    rounds: u8,
    random: u32,
}

carried!(Cycle {
    feedback,
    samples,
    began @ time,
    wait,
    acked,
    acked_per_segment in 1..=u32::MAX,
    rounds in 0..=30,
    random in 1..=u32::MAX,
});

carried_as!(Feedback {
    Self::None => 0 => Self::None,
    Self::Starting => 1 => Self::Starting,
    Self::Arriving => 2 => Self::Arriving,
    Self::Stopping => 3 => Self::Stopping,
});

impl Cycle {
    pub(super) fn new(start: &Start) -> Self {
        Self {
            feedback: Feedback::None,
            samples: false,
            began: start.now,
            wait: WAIT,
            acked: 0,
            acked_per_segment: u32::MAX,
            rounds: 0,
            random: start.seed | 1,
        }
    }

    pub(super) fn stop_probing(&mut self) {
        self.feedback = Feedback::Stopping;
        self.samples = false;
    }

    /// xorshift32: flows must not probe at the same time; nothing depends on secrecy.
    fn next_random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
}

impl Bbr {
    /// 5.3.3.6
    pub(super) fn update_cycle(&mut self, ack: &Ack, rate: f64) {
        if let Some(heavy) = ack.sample.heavy {
            // 5.5.10.2: what was in flight when the losses became too many.
            let before = f64::from(heavy.tx_in_flight.saturating_sub(heavy.size));
            let lost = f64::from(heavy.lost.saturating_sub(heavy.size));
            let share = 1.0 / HEAVY_LOSS as f64;
            let more = ((share * before - lost) / (1.0 - share)).max(0.0);
            let at_loss = part(before + more, 1.0);
            self.on_too_high(at_loss, heavy.app_limited, ack.now, Some(ack.total_delivered));
        }
        if !self.full.reached {
            return;
        }
        self.adapt_long_term(ack);
        let State::ProbeBw(phase) = self.state else { return };
        match phase {
            Phase::Down if self.is_time_to_probe(ack) => self.start_refill(ack),
            Phase::Down if self.is_time_to_cruise(ack) => {
                self.state = State::ProbeBw(Phase::Cruise);
            }
            Phase::Cruise if self.is_time_to_probe(ack) => self.start_refill(ack),
            Phase::Refill if self.round.start => {
                self.cycle.samples = true;
                self.start_up(ack, rate);
            }
            Phase::Up if self.is_time_to_go_down(ack, rate) => {
                self.start_down(ack.now, ack.total_delivered);
            }
            _ => {}
        }
    }

    pub(super) fn start_down(&mut self, now: u64, delivered: u64) {
        self.model.forget_congestion();
        self.cycle.acked_per_segment = u32::MAX;
        let random = self.cycle.next_random();
        self.round.since_probe = random & 1;
        self.cycle.wait = WAIT + u64::from(random >> 1) * 1_000_000_000 / u64::from(u32::MAX >> 1);
        self.cycle.began = now;
        self.cycle.feedback = Feedback::Stopping;
        self.round.begin(delivered);
        self.state = State::ProbeBw(Phase::Down);
    }

    fn start_refill(&mut self, ack: &Ack) {
        self.model.forget_short_term();
        self.cycle.rounds = 0;
        self.cycle.acked = 0;
        self.cycle.feedback = Feedback::None;
        self.round.begin(ack.total_delivered);
        self.state = State::ProbeBw(Phase::Refill);
    }

    fn start_up(&mut self, ack: &Ack, rate: f64) {
        self.cycle.feedback = Feedback::Starting;
        self.round.begin(ack.total_delivered);
        self.full.watch(rate);
        self.cycle.began = ack.now;
        self.state = State::ProbeBw(Phase::Up);
        self.raise_slope();
    }

    /// 5.3.3.5: time enough, or as many rounds as Reno would take to grow back.
    fn is_time_to_probe(&self, ack: &Ack) -> bool {
        let rounds = (self.bdp(1.0).min(self.window) / self.mss).clamp(1, ROUNDS);
        let waited = ack.now.saturating_sub(self.cycle.began) > self.cycle.wait;
        waited || self.round.since_probe >= rounds
    }

    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        ack.in_flight <= self.headroom() && ack.in_flight <= self.inflight(1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, rate: f64) -> bool {
        if ack.window_limited && self.window >= self.model.inflight_long {
            // It is our own bound that holds the rate back.
            self.full.watch(rate);
            return false;
        }
        self.full.now
    }

    /// What may be in flight, less what others are left (5.3.3.2): bytes.
    pub(super) fn headroom(&self) -> u32 {
        match self.model.inflight_long {
            u32::MAX => u32::MAX,
            long => {
                (long - part(f64::from(long), HEADROOM).max(self.mss).min(long)).max(self.least())
            }
        }
    }

    /// 5.3.3.6: a bound that held may be raised, one that was passed is lowered.
    fn adapt_long_term(&mut self, ack: &Ack) {
        match self.cycle.feedback {
            Feedback::Starting if self.round.start => self.cycle.feedback = Feedback::Arriving,
            Feedback::Stopping if self.round.start => {
                self.cycle.samples = false;
                self.cycle.feedback = Feedback::None;
                if matches!(self.state, State::ProbeBw(_)) && !ack.sample.app_limited {
                    self.model.next_bandwidth_cycle();
                }
            }
            _ => {}
        }
        if is_too_high(&ack.sample) {
            let sample = &ack.sample;
            let delivered = Some(ack.total_delivered);
            return self.on_too_high(sample.tx_in_flight, sample.app_limited, ack.now, delivered);
        }
        if self.model.inflight_long == u32::MAX {
            return;
        }
        self.model.inflight_long = self.model.inflight_long.max(ack.sample.tx_in_flight);
        if self.state == State::ProbeBw(Phase::Up) {
            self.raise_long_term(ack);
        }
    }

    /// 5.5.10.1: so much in flight was too much. Once for each probe.
    pub(super) fn on_too_high(
        &mut self,
        in_flight: u32,
        app_limited: bool,
        now: u64,
        delivered: Option<u64>,
    ) {
        if !self.cycle.samples {
            return;
        }
        self.cycle.samples = false;
        if !app_limited {
            let target = self.bdp(1.0).min(self.window);
            self.model.inflight_long = in_flight.max(part(f64::from(target), BETA));
        }
        if let (State::ProbeBw(Phase::Up), Some(delivered)) = (self.state, delivered) {
            self.start_down(now, delivered);
        }
    }

    /// 5.3.3.4: by one segment in the first round, then two, four ...
    fn raise_slope(&mut self) {
        let segments = 1u32 << self.cycle.rounds;
        self.cycle.rounds = (self.cycle.rounds + 1).min(30);
        self.cycle.acked_per_segment = (self.window / segments).max(1);
    }

    fn raise_long_term(&mut self, ack: &Ack) {
        if !ack.window_limited || self.window < self.model.inflight_long {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.acked = cycle.acked.saturating_add(ack.delivered);
        let segments = cycle.acked / cycle.acked_per_segment;
        cycle.acked -= segments * cycle.acked_per_segment;
        let more = segments.saturating_mul(self.mss);
        self.model.inflight_long = self.model.inflight_long.saturating_add(more);
        if self.round.start {
            self.raise_slope();
        }
    }
}
