//! Which timer runs while something is to be sent (RFC 6298 5, RFC 8985 7.2, RFC 9293 3.8.6.1).

use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::{Tcb, rtt};

/// The least that another timer's place is left to a time-out that is overdue: ns.
const GRACE: u64 = 1_000_000;

/// So long may a corked connection hold data back (`tcp(7)`): ns.
const CORK_CEILING: u64 = 200_000_000;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Starts the timer anew, since something was acknowledged or sent again (RFC 6298 5.3): for a probe of
    /// the tail when that comes first.
    pub(crate) fn restart_timer(&mut self) {
        let timeout = self.now.saturating_add(rtt::timeout(self.hot));
        self.start_timer(timeout);
    }

    /// Goes on with the time-out that the oldest segment in flight has had all along, after another timer
    /// took its place.
    pub(crate) fn resume_timer(&mut self) {
        self.hot.clear(flag::TIMER_KIND);
        self.hot.retransmit_at = if self.cold.flight.is_empty() {
            NEVER
        } else {
            self.oldest_timeout().max(self.now.saturating_add(GRACE))
        };
    }

    /// Data was sent for the first time. RFC 6298 5.1: a time-out that runs is left alone. RFC 8985 7.2: a
    /// probe counts from what was sent last, but never waits longer than the oldest segment's time-out.
    #[inline]
    pub(crate) fn extend_timer(&mut self) {
        if self.hot.retransmit_at == NEVER {
            self.restart_timer();
        } else if self.hot.has(flag::TIMER_IS_PROBE) {
            let latest = self.oldest_timeout().max(self.hot.retransmit_at);
            self.start_timer(latest);
        }
    }

    /// When the oldest segment in flight has waited for a whole time-out: ns.
    fn oldest_timeout(&self) -> u64 {
        let sent_at = self.cold.flight.oldest().unwrap_or(self.now);
        sent_at.saturating_add(rtt::timeout(self.hot))
    }

    /// Runs until `timeout` (ns), or for a probe that is due before.
    #[inline]
    fn start_timer(&mut self, timeout: u64) {
        self.hot.clear(flag::TIMER_KIND);
        if self.cold.flight.is_empty() {
            self.hot.retransmit_at = NEVER;
            return;
        }
        let probe = self.probe_timeout();
        if probe != NEVER {
            // RFC 8985 7.2: when the time-out would come first, the probe takes its place.
            self.hot.set(flag::TIMER_IS_PROBE);
        }
        self.hot.retransmit_at = timeout.min(self.now.saturating_add(probe));
    }

    /// After output: a timer runs while data is in flight, or waits for a closed window.
    #[inline(always)]
    pub(super) fn arm(&mut self) {
        if self.cold.flight.is_empty() {
            self.arm_for_window();
        } else if self.hot.retransmit_at == NEVER || self.hot.has(flag::TIMER_IS_PERSIST) {
            self.restart_timer();
        }
    }

    fn arm_for_window(&mut self) {
        let unsent = self.written_end().since(self.hot.snd_nxt);
        let fin = self.hot.has(flag::FIN_QUEUED) && !self.hot.has(flag::FIN_SENT);
        let waits = self.hot.state.transmits() && !self.hot.has(flag::FIN_SENT);
        let closed = (unsent > 0 || fin) && self.hot.snd_wnd < unsent.max(1);
        // Nagle's algorithm never waits with nothing in flight.
        let corked = unsent > 0 && !closed && self.hot.has(flag::CORK | flag::MORE);
        let waits = waits && (closed || corked);
        if !waits || !corked {
            self.hot.clear(flag::CORKED);
        }
        if !waits {
            self.hot.clear(flag::TIMER_KIND);
            self.hot.retransmit_at = NEVER;
        } else if self.hot.retransmit_at == NEVER {
            self.hot.clear(flag::TIMER_KIND);
            self.hot.set(flag::TIMER_IS_PERSIST);
            if corked {
                self.hot.set(flag::CORKED);
                self.hot.retransmit_at = self.now.saturating_add(CORK_CEILING);
                return;
            }
            // Now it begins to wait.
            self.cold.progress_at = self.now;
            self.hot.retransmit_at = self.within_user_timeout(rtt::timeout(self.hot));
        }
    }
}
