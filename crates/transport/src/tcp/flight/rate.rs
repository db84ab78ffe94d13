//! Delivery rate samples (draft-ietf-ccwg-bbr 4.1): how fast data reaches the peer.

use super::Sent;
use super::mark;
use crate::congestion::{HEAVY_LOSS, HeavyLoss, RateSample};

/// State of the estimation.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Bytes delivered in all.
    pub(crate) delivered: u64,
    /// When that last grew: ns.
    pub(crate) delivered_at: u64,
    /// When the segment was sent that was delivered last: ns.
    pub(crate) first_sent_at: u64,
    /// Until so much is delivered, samples are limited by the application; 0: they are not.
    limited_until: u64,
    /// Bytes found lost in all, modulo 2^32.
    pub(crate) lost: u32,
    /// The same, at the last sample.
    sampled_lost: u32,
    /// Boxed, since it is rare.
    heavy: Option<Box<HeavyLoss>>,
}

/// So many bytes no connection delivers.
const MOST: u64 = 1 << 62;

carried!(Rate {
    delivered in 0..=MOST,
    delivered_at @ time,
    first_sent_at @ time,
    limited_until in 0..=MOST,
    lost,
    sampled_lost,
    heavy,
});

impl Rate {
    /// Whether a record may have been sent before what was delivered until now.
    pub(super) fn is_after(&self, sent: &Sent) -> bool {
        u64::from((self.delivered as u32).wrapping_sub(sent.delivered)) <= self.delivered
    }

    pub(super) const NEW: Self = Self {
        delivered: 0,
        delivered_at: 0,
        first_sent_at: 0,
        limited_until: 0,
        lost: 0,
        sampled_lost: 0,
        heavy: None,
    };

    /// Goes on where it was when nothing was in flight any more.
    pub(super) fn resume(&mut self, delivered: u64, lost: u32, limited: bool) {
        (self.delivered, self.lost, self.sampled_lost) = (delivered, lost, lost);
        self.limited_until = if limited { delivered.max(1) } else { 0 };
    }

    /// Sending begins with nothing in flight.
    pub(crate) fn restart(&mut self, now: u64) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.limited_until != 0
    }

    /// The application has nothing more to send, with `pipe` bytes on the way.
    pub(crate) fn limit(&mut self, pipe: u32) {
        self.limited_until = (self.delivered + u64::from(pipe)).max(1);
    }

    /// A record was found lost.
    pub(super) fn on_lost(&mut self, sent: &Sent) {
        self.lost = self.lost.wrapping_add(sent.length());
        let lost = self.lost.wrapping_sub(sent.lost);
        if self.heavy.is_none() && u64::from(lost) * HEAVY_LOSS > u64::from(sent.tx_in_flight) {
            self.heavy = Some(Box::new(HeavyLoss {
                size: sent.length(),
                tx_in_flight: sent.tx_in_flight,
                lost,
                app_limited: sent.is(mark::APP_LIMITED),
            }));
        }
    }

    /// Takes in a delivery of `bytes`, the newest of them in `newest`.
    pub(crate) fn sample(&mut self, bytes: u32, newest: Option<&Sent>, now: u64) -> RateSample {
        self.delivered += u64::from(bytes);
        if bytes > 0 {
            self.delivered_at = now;
        }
        if self.limited_until != 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let newly_lost = self.lost.wrapping_sub(self.sampled_lost);
        self.sampled_lost = self.lost;
        let heavy = self.heavy.take().map(|heavy| *heavy);
        let Some(sent) = newest else {
            return RateSample { newly_lost, heavy, ..RateSample::default() };
        };
        self.first_sent_at = sent.sent_at;
        let delivered = u64::from((self.delivered as u32).wrapping_sub(sent.delivered));
        let send = sent.sent_at.saturating_sub(sent.first_sent_at);
        let receive = now.saturating_sub(sent.delivered_at);
        RateSample {
            delivered,
            interval: send.max(receive),
            prior_delivered: self.delivered - delivered,
            rtt: (!sent.is(mark::RETRANSMITTED)).then(|| now.saturating_sub(sent.sent_at)),
            app_limited: sent.is(mark::APP_LIMITED),
            tx_in_flight: sent.tx_in_flight,
            lost: self.lost.wrapping_sub(sent.lost),
            newly_lost,
            heavy,
        }
    }
}
