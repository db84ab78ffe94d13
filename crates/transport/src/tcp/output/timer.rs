//! Which timer runs while something is to be sent (RFC 6298 5, RFC 8985 7.2, RFC 9293 3.8.6.1).

use crate::fifo::ByteFifo;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::{Tcb, rtt};

/// Longest delay of an acknowledgment that a peer is believed to have: ns (RFC 8985 7.2).
const WORST_DELAY: u64 = 200_000_000;

impl<F: ByteFifo> Tcb<'_, F> {
    /// Starts the timer anew, for a probe of the tail when that comes first.
    pub(crate) fn restart_timer(&mut self) {
        self.hot.clear(flag::TIMER_KIND);
        if self.cold.flight.is_empty() {
            self.hot.retransmit_at = NEVER;
            return;
        }
        let timeout = rtt::timeout(self.hot);
        let probe = self.probe_timeout();
        if probe != NEVER {
            // RFC 8985 7.2: when the time-out would come first, the probe takes its place.
            self.hot.set(flag::TIMER_IS_PROBE);
        }
        self.hot.retransmit_at = self.now.saturating_add(timeout.min(probe));
    }

    /// When a tail loss probe is due: ns from now.
    fn probe_timeout(&self) -> u64 {
        let flight = &self.cold.flight;
        let barred = flag::RECOVERY | flag::LOSS | flag::PROBING;
        let possible = self.hot.has(flag::SACK)
            && !self.hot.has(barred)
            && self.hot.srtt != 0
            && self.hot.backoff == 0
            && flight.sacked == 0
            && flight.lost == 0;
        if !possible {
            return NEVER;
        }
        let single = self.hot.snd_nxt.since(self.hot.snd_una) <= u32::from(self.hot.mss);
        2 * self.srtt_ns() + if single { WORST_DELAY } else { 2_000_000 }
    }

    /// After output: a timer runs while data is in flight, or waits for a closed window.
    pub(super) fn arm(&mut self) {
        if !self.cold.flight.is_empty() {
            if self.hot.retransmit_at == NEVER || self.hot.has(flag::TIMER_IS_PERSIST) {
                self.restart_timer();
            }
            return;
        }
        let unsent = self.written_end().since(self.hot.snd_nxt);
        let fin = self.hot.has(flag::FIN_QUEUED) && !self.hot.has(flag::FIN_SENT);
        let waits = self.hot.state.transmits() && !self.hot.has(flag::FIN_SENT);
        let waits = waits && (unsent > 0 || fin) && self.hot.snd_wnd < unsent.max(1);
        if !waits {
            self.hot.clear(flag::TIMER_KIND);
            self.hot.retransmit_at = NEVER;
        } else if self.hot.retransmit_at == NEVER {
            self.hot.clear(flag::TIMER_KIND);
            self.hot.set(flag::TIMER_IS_PERSIST);
            self.hot.retransmit_at = self.now.saturating_add(rtt::timeout(self.hot));
        }
    }
}
