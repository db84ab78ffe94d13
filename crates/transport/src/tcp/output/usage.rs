//! Whether the congestion window is used up, without which it does not grow (RFC 9438 5.8, RFC 7661).

use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::tcp::Tcb;
use crate::tcp::hot::flag;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Something was sent, or waits for the window. What is noted holds for a round trip: until all that is
    /// in flight now is acknowledged.
    pub(super) fn note_use(&mut self) {
        let (una, next) = (self.hot.snd_una, self.hot.snd_nxt);
        let full = self.hot.cwnd.saturating_sub(self.pipe()) < u32::from(self.hot.mss);
        let was_full = self.hot.has(flag::WINDOW_FULL);
        if self.cold.flight.note_use(una, next, full, was_full) {
            self.hot.set(flag::WINDOW_FULL);
        } else {
            self.hot.clear(flag::WINDOW_FULL);
        }
        if self.is_window_limited() {
            self.hot.set(flag::WINDOW_LIMITED);
        } else if self.hot.has(flag::WINDOW_LIMITED) {
            self.rest_window();
        }
    }

    /// The same for a single segment of so many bytes, which is all that is in flight.
    #[inline(always)]
    pub(super) fn note_message(&mut self, data: usize) {
        let hot = &*self.hot;
        let mss = u32::from(hot.mss);
        let full = hot.cwnd.saturating_sub(data as u32) < mss;
        let limited = full || hot.has(flag::SLOW_START) && hot.cwnd < mss.saturating_mul(2);
        if limited || hot.has(flag::WINDOW_LIMITED | flag::WINDOW_FULL) {
            self.note_use();
        }
    }

    /// Whether the window may grow: it was full, or, in slow start, more than half of it was used, so that
    /// it can double in a round trip.
    pub(crate) fn is_window_limited(&self) -> bool {
        let mss = u32::from(self.hot.mss.max(1));
        // Divisions are slow: mostly it is one segment.
        let used = match self.cold.flight.usage() {
            usage if usage <= mss => mss.min(usage.saturating_mul(mss)),
            usage => usage.div_ceil(mss).saturating_mul(mss),
        };
        self.hot.has(flag::WINDOW_FULL)
            || self.hot.has(flag::SLOW_START) && self.hot.cwnd < used.saturating_mul(2)
    }

    /// The window is not used up any more: acknowledgments are plain again.
    pub(super) fn rest_window(&mut self) {
        self.hot.clear(flag::WINDOW_LIMITED | flag::WINDOW_FULL);
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.on_unused(self.now);
        }
    }
}
