//! Tail loss probes (RFC 8985 7): what shows that the end of a flight was lost before the time-out does.

use super::Tcb;
use super::flight::Delivered;
use super::hot::{NEVER, flag};
use super::state::State;
use crate::congestion::Congestion;
use crate::fifo::ByteFifo;
use crate::packet::Sink;

/// Longest delay of an acknowledgment that a peer is believed to have: ns (7.2).
const WORST_DELAY: u64 = 200_000_000;
/// What several segments in flight are given beyond two round trips, for the grain of the peer's timers: ns.
const GRAIN: u64 = 2_000_000;
/// When the first probe is due while no round trip was measured: ns (7.2).
const UNMEASURED: u64 = 1_000_000_000;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// When a probe is due: ns from now; `NEVER`: there is to be none.
    #[inline]
    pub(super) fn probe_timeout(&self) -> u64 {
        let barred = flag::RECOVERY | flag::LOSS | flag::PROBING;
        let handshake = matches!(self.hot.state, State::SynSent | State::SynReceived);
        let possible = self.hot.has(flag::SACK)
            && !self.hot.has(barred)
            && !handshake
            && !self.cold.flight.has_holes();
        if !possible {
            return NEVER;
        }
        if self.hot.srtt == 0 {
            return UNMEASURED;
        }
        let single = self.cold.flight.is_single(self.hot.mss);
        2 * self.srtt_ns() + if single { WORST_DELAY } else { GRAIN }
    }

    /// 7.3: something new if there is and the peer has room for it, whatever Nagle's algorithm and the
    /// congestion window say; else the last segment again.
    pub(super) fn send_tail_probe(&mut self) {
        if self.hot.has(flag::PROBING) {
            return self.resume_timer();
        }
        let renewed = self.has_room_for_next() && self.send_one();
        let gone = renewed || self.repeat_last();
        if !gone {
            return self.resume_timer();
        }
        self.hot.set(flag::PROBING);
        let next = self.hot.snd_nxt;
        self.cold.flight.probed(next, !renewed);
        // 7.3: the time-out counts from the probe.
        self.restart_timer();
    }

    fn repeat_last(&mut self) -> bool {
        let mss = u32::from(self.hot.mss);
        let Some(last) = self.cold.flight.sent.back().copied() else { return false };
        if last.data() > mss {
            // Of several that were sent in one, the last.
            let tail = match last.data() % mss {
                0 => mss,
                rest => rest,
            };
            self.cold.flight.split_at(last.end.sub(tail + last.length() - last.data()));
        }
        let last = self.cold.flight.sent.back().copied();
        last.is_some_and(|last| self.resend(&last))
    }

    /// 7.4.2: a probe is acknowledged. One that was sent again, and beyond which the peer acknowledges
    /// without telling of a duplicate, has repaired a loss. `plain`: nothing but the acknowledgment is in
    /// the segment, and it is one as before.
    pub(super) fn settle_probe(&mut self, news: &Delivered, plain: bool) {
        let (una, end) = (self.hot.snd_una, self.cold.flight.probe.end);
        if una.before(end) {
            return;
        }
        let again = self.cold.flight.probe.again;
        if !again || news.probe_duplicate {
            return self.hot.clear(flag::PROBING);
        }
        if una == end {
            if plain && news.bytes == 0 {
                self.hot.clear(flag::PROBING);
            }
            return;
        }
        self.hot.clear(flag::PROBING);
        let in_flight = self.pipe().saturating_add(news.bytes);
        self.begin_congestion();
        // What a recovery before it did is settled by this reduction.
        self.cold.flight.may_undo = false;
        self.hot.set(flag::REDUCED);
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.on_loss(&Congestion { now: self.now, in_flight, lost: news.acked });
            congestion.on_recovered(self.now);
            self.follow_congestion();
        }
    }
}
