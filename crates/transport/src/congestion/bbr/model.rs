//! What is known of the path: rate, round-trip time, bounds, aggregation of acknowledgments.

use crate::congestion::{Ack, HEAVY_LOSS, RateSample};

/// What a loss leaves (5.2).
pub(super) const BETA: f64 = 0.7;
/// A round-trip time is believed for so long (5.2): ns.
const MIN_RTT_LIFE: u64 = 10_000_000_000;
/// After so long ProbeRTT looks for it anew (5.2): ns.
const PROBE_RTT_INTERVAL: u64 = 5_000_000_000;

/// What a round delivers at least of what was sent in it when nothing is wrong: the pacing margin and the
/// losses that are tolerated are missing. Without this (the draft has it not) the bounds would sink with
/// each round in which a packet is lost: on a path that loses 1 %, to a third before the next probe.
const TOLERATED: f64 = super::MARGIN * (1.0 - 1.0 / HEAVY_LOSS as f64);

/// The model of a path.
#[derive(Debug)]
pub(super) struct Model {
    /// Highest rates of this cycle and the last: bytes/s.
    rates: [f64; 2],
    /// Bounds after losses, until the next probe: bytes/s and bytes.
    rate_short: f64,
    pub(super) inflight_short: u32,
    /// What a probe found to be the most: bytes.
    pub(super) inflight_long: u32,
    /// Of this round so far.
    rate_latest: f64,
    inflight_latest: u64,
    loss_round_ends_at: u64,
    loss_round_over: bool,
    lossy: bool,
    loss_events: u32,
    /// ns; `u64::MAX`: none yet.
    pub(super) min_rtt: u64,
    min_rtt_at: u64,
    /// The least since ProbeRTT was due last, and when: ns.
    probed_rtt: u64,
    probed_rtt_at: u64,
    aggregation: Aggregation,
}

/// How many more bytes are acknowledged at once than the rate explains (5.5.9).
#[derive(Debug, Default)]
struct Aggregation {
    began: u64,
    delivered: u64,
    /// Highest excess of these rounds and those before: bytes.
    extra: [u32; 2],
    window_began: u64,
}

/// What an imported model is believed: bytes/s.
const RATES: std::ops::RangeInclusive<f64> = 0.0..=1e18;
/// The same: bytes, or events.
const MOST: u64 = 1 << 60;

carried!(Model {
    rates,
    rate_short in 0.0..=f64::INFINITY,
    inflight_short,
    inflight_long,
    rate_latest in RATES,
    inflight_latest in 0..=MOST,
    loss_round_ends_at in 0..=MOST,
    loss_round_over,
    lossy,
    loss_events in 0..=1 << 30,
    min_rtt,
    min_rtt_at @ time,
    probed_rtt,
    probed_rtt_at @ time,
    aggregation,
});

carried!(Aggregation {
    began @ time,
    delivered in 0..=MOST,
    extra,
    window_began in 0..=MOST,
});

/// `share` of `bytes`, as whole bytes.
pub(super) fn part(bytes: f64, share: f64) -> u32 {
    (bytes * share).clamp(0.0, f64::from(u32::MAX)) as u32
}

impl Model {
    pub(super) fn new(now: u64) -> Self {
        Self {
            rates: [0.0; 2],
            rate_short: f64::INFINITY,
            inflight_short: u32::MAX,
            inflight_long: u32::MAX,
            rate_latest: 0.0,
            inflight_latest: 0,
            loss_round_ends_at: 0,
            loss_round_over: false,
            lossy: false,
            loss_events: 0,
            min_rtt: u64::MAX,
            min_rtt_at: now,
            probed_rtt: u64::MAX,
            probed_rtt_at: now,
            aggregation: Aggregation { began: now, ..Aggregation::default() },
        }
    }

    fn highest_rate(&self) -> f64 {
        self.rates[0].max(self.rates[1])
    }

    /// The rate to go by: bytes/s.
    pub(super) fn bandwidth(&self) -> f64 {
        self.highest_rate().min(self.rate_short)
    }

    /// Of a sample; 0: it says nothing. One over less than a round-trip time was taken from
    /// acknowledgments that came in a heap. The round-trip time may be the sample's own, the shortest so far.
    pub(super) fn delivery_rate(&self, sample: &RateSample) -> f64 {
        let least = self.min_rtt.min(sample.rtt.unwrap_or(u64::MAX));
        let least = if least == u64::MAX { 1 } else { least.max(1) };
        if sample.interval < least {
            return 0.0;
        }
        sample.delivered as f64 * 1e9 / sample.interval as f64
    }

    /// 5.5.5 and 5.5.10.3: the latest signals, the highest rate, and whether a round of losses ends.
    pub(super) fn note_delivery(&mut self, ack: &Ack, rate: f64) {
        self.rate_latest = self.rate_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(ack.sample.delivered);
        self.loss_round_over =
            ack.sample.interval > 0 && ack.sample.prior_delivered >= self.loss_round_ends_at;
        if self.loss_round_over {
            self.loss_round_ends_at = ack.total_delivered;
        }
        if rate > 0.0 && (rate >= self.highest_rate() || !ack.sample.app_limited) {
            self.rates[0] = self.rates[0].max(rate);
        }
    }

    pub(super) fn note_loss(&mut self) {
        self.lossy = true;
        self.loss_events += 1;
    }

    pub(super) fn is_loss_round_over(&self) -> bool {
        self.loss_round_over
    }

    pub(super) fn loss_events(&self) -> u32 {
        self.loss_events
    }

    pub(super) fn inflight_latest(&self) -> u32 {
        self.inflight_latest.min(u64::from(u32::MAX)) as u32
    }

    /// 5.5.10.3: a round with losses lowers the bounds to what was delivered all the same.
    pub(super) fn adapt_short_term(&mut self, probing: bool, window: u32) {
        if self.lossy && !probing {
            if self.rate_short.is_infinite() {
                self.rate_short = self.highest_rate();
            }
            if self.inflight_short == u32::MAX {
                self.inflight_short = window;
            }
            self.rate_short = (self.rate_latest / TOLERATED).max(self.rate_short * BETA);
            let least = part(f64::from(self.inflight_short), BETA);
            let latest = part(self.inflight_latest as f64, 1.0 / TOLERATED);
            self.inflight_short = latest.max(least);
        }
        self.lossy = false;
        self.loss_events = 0;
    }

    pub(super) fn forget_short_term(&mut self) {
        self.rate_short = f64::INFINITY;
        self.inflight_short = u32::MAX;
    }

    pub(super) fn forget_congestion(&mut self) {
        self.lossy = false;
        self.loss_events = 0;
        self.rate_latest = 0.0;
        self.inflight_latest = 0;
    }

    /// The highest rate of the cycle before last is forgotten (5.5.6).
    pub(super) fn next_bandwidth_cycle(&mut self) {
        self.rates = [0.0, self.rates[0]];
    }

    /// Last of all: a new round begins with this acknowledgment's own signals.
    pub(super) fn advance(&mut self, ack: &Ack, rate: f64) {
        if self.loss_round_over {
            self.rate_latest = rate;
            self.inflight_latest = ack.sample.delivered;
        }
    }

    /// 5.3.4.3. Gives whether it is time for ProbeRTT.
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) -> bool {
        let expired = ack.now > self.probed_rtt_at.saturating_add(PROBE_RTT_INTERVAL);
        if let Some(rtt) = ack.sample.rtt {
            if rtt < self.probed_rtt || expired {
                self.probed_rtt = rtt.max(1);
                self.probed_rtt_at = ack.now;
            }
        }
        let stale = ack.now > self.min_rtt_at.saturating_add(MIN_RTT_LIFE);
        if self.probed_rtt < self.min_rtt || stale {
            self.min_rtt = self.probed_rtt;
            self.min_rtt_at = self.probed_rtt_at;
        }
        expired
    }

    /// ProbeRTT is over.
    pub(super) fn min_rtt_is_fresh(&mut self, now: u64) {
        self.probed_rtt_at = now;
    }

    /// 5.5.9; `round`: the count of rounds, `rounds`: how many an excess is remembered.
    pub(super) fn note_aggregation(&mut self, ack: &Ack, window: u32, round: u64, rounds: u64) {
        let elapsed = ack.now.saturating_sub(self.aggregation.began);
        let expected = self.bandwidth() * elapsed as f64 / 1e9;
        let aggregation = &mut self.aggregation;
        if aggregation.delivered as f64 <= expected {
            aggregation.delivered = 0;
            aggregation.began = ack.now;
        }
        let expected = if aggregation.delivered == 0 { 0.0 } else { expected };
        aggregation.delivered += u64::from(ack.delivered);
        let extra = part(aggregation.delivered as f64 - expected, 1.0).min(window);
        if round >= aggregation.window_began.saturating_add(rounds.div_ceil(2)) {
            aggregation.window_began = round;
            aggregation.extra = [0, aggregation.extra[0]];
        }
        aggregation.extra[0] = aggregation.extra[0].max(extra);
    }

    pub(super) fn extra_acked(&self) -> u32 {
        self.aggregation.extra[0].max(self.aggregation.extra[1])
    }

    pub(super) fn restart_aggregation(&mut self, now: u64) {
        self.aggregation.began = now;
        self.aggregation.delivered = 0;
    }
}
