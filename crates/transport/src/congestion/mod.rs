//! Congestion control: how much may be in flight, behind one trait; one file per algorithm.
//!
//! The caller does loss detection (RACK-TLP), proportional rate reduction and undo of the flight; an
//! algorithm is told what happened and answers with a window in bytes. It must not look at a clock:
//! every time is given.

use std::any::Any;
use std::fmt;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use newreno::NewReno;

mod bbr;
mod cubic;
#[cfg(test)]
mod fixture;
mod newreno;

/// Which algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Version 3 (draft-ietf-ccwg-bbr-05).
    Bbr,
    /// RFC 9438.
    Cubic,
    /// RFC 5681 and 6582.
    NewReno,
}

impl Algorithm {
    /// Its name, as in `ss -i`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bbr => "bbr",
            Self::Cubic => "cubic",
            Self::NewReno => "newreno",
        }
    }

    /// Whether it must hear of every acknowledgment. If not, those that come while the window is not
    /// used up are kept from it, and a connection that never uses it up does without.
    pub(crate) fn hears_all(self) -> bool {
        self == Self::Bbr
    }

    /// A fresh one.
    #[must_use]
    pub fn start(self, start: &Start) -> Box<dyn CongestionControl> {
        match self {
            Self::Bbr => Box::new(Bbr::new(start)),
            Self::Cubic => Box::new(Cubic::new(start)),
            Self::NewReno => Box::new(NewReno::new(start)),
        }
    }
}

/// What a connection starts with.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// Bytes of data of a full segment.
    pub mss: u32,
    /// Initial window: bytes.
    pub window: u32,
    /// Slow-start threshold: bytes; `u32::MAX`: none yet.
    pub threshold: u32,
    /// ns.
    pub now: u64,
    /// For choices that flows must not all make alike.
    pub seed: u32,
}

/// A segment at whose loss more than a [`HEAVY_LOSS`]th of what was in flight with it was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeavyLoss {
    /// Its bytes.
    pub size: u32,
    /// In flight when it was sent, itself included: bytes.
    pub tx_in_flight: u32,
    /// Found lost since it was sent, itself included: bytes.
    pub lost: u32,
    /// The application had no more to send then.
    pub app_limited: bool,
}

/// Losing more than one part in so many says that too much is in flight: 2 % (BBR's draft, 5.2).
pub const HEAVY_LOSS: u64 = 50;

/// What a delivery says about the path (draft-ietf-ccwg-bbr 4.1): from the send of the newest
/// segment that was just delivered, to now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// ns, the longer of the send and the acknowledgment side; 0: no sample.
    pub interval: u64,
    /// Bytes delivered in all when that segment was sent: a round ends when this passes its mark.
    pub prior_delivered: u64,
    /// Round-trip time of that segment: ns; `None`: ambiguous or unknown.
    pub rtt: Option<u64>,
    /// The application had no more to send then: the rate is no upper bound.
    pub app_limited: bool,
    /// Bytes in flight when that segment was sent, itself included.
    pub tx_in_flight: u32,
    /// Bytes found lost since that segment was sent.
    pub lost: u32,
    /// Bytes found lost since the last sample.
    pub newly_lost: u32,
    /// The first heavy loss since the last sample.
    pub heavy: Option<HeavyLoss>,
}

/// An acknowledgment that delivered something.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// ns.
    pub now: u64,
    /// Bytes newly delivered by an acknowledgment that moved SND.UNA; else 0. What a window grows by.
    pub acked: u32,
    /// Bytes newly delivered, cumulatively or selectively.
    pub delivered: u32,
    /// Bytes delivered in all.
    pub total_delivered: u64,
    /// Bytes in flight before this acknowledgment.
    pub prior_in_flight: u32,
    /// Bytes in flight now.
    pub in_flight: u32,
    /// The window was used up, so it may grow (RFC 7661 in spirit).
    pub window_limited: bool,
    /// A recovery goes on.
    pub in_recovery: bool,
    /// Smoothed round-trip time: ns; 0: none yet.
    pub srtt: u64,
    /// Least round-trip time: ns; 0: none yet.
    pub min_rtt: u64,
    /// What the delivery says about the path.
    pub sample: RateSample,
}

/// Loss, a congestion mark or a time-out.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    /// ns.
    pub now: u64,
    /// Bytes in flight when it was noticed, lost ones included.
    pub in_flight: u32,
    /// Bytes found lost.
    pub lost: u32,
}

/// How much may be in flight, and how fast.
pub trait CongestionControl: fmt::Debug + Send {
    /// Something was delivered.
    fn on_ack(&mut self, ack: &Ack);

    /// A recovery begins: the first loss of a window. Remembers what [`undo`](Self::undo) needs.
    fn on_loss(&mut self, loss: &Congestion);

    /// Everything in flight was acknowledged: the recovery is over. [`undo`](Self::undo) may still follow, unless the algorithm
    /// [sets the window itself](Self::rules_recovery).
    fn on_recovered(&mut self, _now: u64) {}

    /// The retransmission timer ran out. Remembers what [`undo`](Self::undo) needs, the first time.
    fn on_rto(&mut self, loss: &Congestion);

    /// The path marked a packet; called at most once per window (RFC 3168 6.1.2). `marked`: share of
    /// the window that was marked, in 1/65536, for those who use it.
    fn on_ecn(&mut self, congestion: &Congestion, marked: u32);

    /// The loss or time-out was spurious (F-RTO, Eifel, D-SACK): back to what was before.
    fn undo(&mut self, now: u64);

    /// Sending begins again after `idle` ns without anything in flight (RFC 5681 4.1).
    fn on_restart(&mut self, now: u64, idle: u64, rto: u64);

    /// The window is not used up any more. What is delivered from now on is told again when it is.
    fn on_unused(&mut self, _now: u64) {}

    /// The segment size changed: bytes.
    fn set_mss(&mut self, mss: u32);

    /// Congestion window: bytes.
    fn window(&self) -> u32;

    /// Slow-start threshold: bytes; `u32::MAX`: none yet. For PRR and `info`.
    fn threshold(&self) -> u32;

    /// The rate to send at: bytes/s; `None`: as fast as the window lets.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Whether it sets the window itself during recovery; if not, PRR does (RFC 9937).
    fn rules_recovery(&self) -> bool {
        false
    }

    /// Itself, so that its state can be told when the connection moves.
    fn as_any(&self) -> &dyn Any;
}
