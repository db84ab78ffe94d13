//! What leaves: turns of the connections that have something to send, and timers that are due.

use super::Stack;
use crate::fifo::Buffers;
use crate::packet::Sink;
use crate::tcp::hot::{NEVER, flag};

/// Segments that a connection sends in one turn when turns are counted.
const QUOTA: usize = 32;

impl<B: Buffers> Stack<B> {
    /// Sends what packets, timers and calls have left to send. When the sink is full, the rest waits for
    /// the next flush: [`is_flush_due`](Self::is_flush_due).
    pub fn flush<S: Sink + ?Sized>(&mut self, now: u64, sink: &mut S) {
        self.now = self.now.max(now);
        if !self.is_flush_due() {
            return;
        }
        self.shared.offloads = sink.offloads();
        self.shared.allowance = usize::MAX;
        self.shared.sink_is_full = false;
        if self.held.has_syns(self.now) {
            self.take_waiting(sink);
        }
        // Who is interrupted goes to the list's end, and has its next turn there.
        for _ in 0..self.shared.dirty.len() {
            self.take_turn(sink);
            if self.shared.sink_is_full {
                break;
            }
        }
    }

    /// The first of those that wait for a flush sends what it may.
    #[inline(always)]
    fn take_turn<S: Sink + ?Sized>(&mut self, sink: &mut S) {
        let Some(index) = self.shared.dirty.pop_front() else { return };
        let Some(mut tcb) = self.tcb(index, sink) else { return };
        tcb.hot.clear(flag::DIRTY);
        tcb.output();
        let next = tcb.next_deadline();
        self.conclude(index, next);
    }

    /// The same, `budget` segments at most. What is left goes on with the next flush, with the connections that
    /// had no turn; one that has much to send gives way to others after a few dozen segments. Gives what is left
    /// of the budget: 0 when there is more to send.
    pub fn flush_within<S: Sink + ?Sized>(
        &mut self,
        now: u64,
        budget: usize,
        sink: &mut S,
    ) -> usize {
        self.now = self.now.max(now);
        self.shared.offloads = sink.offloads();
        self.shared.sink_is_full = false;
        if self.held.has_syns(self.now) {
            self.take_waiting(sink);
        }
        let mut left = budget;
        while left > 0 && !self.shared.dirty.is_empty() {
            let quota = left.min(QUOTA);
            self.shared.allowance = quota;
            self.take_turn(sink);
            left -= quota - self.shared.allowance;
            let interrupted = std::mem::take(&mut self.shared.sink_is_full);
            if interrupted && self.shared.allowance > 0 {
                break;
            }
        }
        self.shared.allowance = usize::MAX;
        left
    }

    /// Whether a connection waits for the next flush: something happened to it since the last, or the sink
    /// was full.
    #[must_use]
    pub fn is_flush_due(&self) -> bool {
        !self.shared.dirty.is_empty() || self.held.has_syns(self.now)
    }

    /// Acts on timers whose time has come.
    pub fn expire<S: Sink + ?Sized>(&mut self, now: u64, sink: &mut S) {
        self.expire_within(now, usize::MAX, sink);
    }

    /// The same, for `budget` timers at most, the earliest first; the work of sorting those that are still far away
    /// is charged, too. Gives what is left of the budget: 0 when more may be due.
    #[inline]
    pub fn expire_within<S: Sink + ?Sized>(
        &mut self,
        now: u64,
        budget: usize,
        sink: &mut S,
    ) -> usize {
        self.now = self.now.max(now);
        if self.timers.is_quiet(self.now) && self.time_waits.len() == 0 {
            return budget;
        }
        self.act_on_timers(budget, sink)
    }

    #[inline(never)]
    fn act_on_timers<S: Sink + ?Sized>(&mut self, budget: usize, sink: &mut S) -> usize {
        let mut left = budget;
        while let Some(index) = self.timers.expired(self.now, &mut left) {
            self.shared.offloads = sink.offloads();
            self.shared.allowance = if budget == usize::MAX { budget } else { QUOTA };
            self.step(index, sink, |tcb| {
                tcb.hot.armed_at = NEVER;
                tcb.on_timer();
            });
        }
        self.shared.allowance = usize::MAX;
        self.expire_time_waits(left)
    }
}
