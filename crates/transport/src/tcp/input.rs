//! A segment arrives (RFC 9293 3.10.7): the order of the steps is the standard's.

mod accept;
mod ack;
mod data;
mod forward;
mod predicted;
mod recovery;
mod syn_sent;
mod time_wait;

pub(crate) use time_wait::{Late, judge_late, may_be_replaced, recent};

use super::Tcb;
use super::hot::flag;
use super::state::State;
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Takes a segment in. What is due in answer is left to the next flush but for what must not
    /// wait: duplicate and challenge acknowledgments, resets.
    #[inline(always)]
    pub(crate) fn on_segment(&mut self, segment: &Segment<'_>) {
        if self.hot.has(flag::RESET_DUE) {
            return self.drop(Reason::AfterClose);
        }
        if (self.shared.path != 0 || self.hot.has(flag::ASIDE)) && !self.is_from_here() {
            return;
        }
        self.cold.counts.note_received(segment.data.len());
        if self.on_predicted(segment) {
            if self.is_quiet() {
                return;
            }
        } else {
            self.on_any(segment);
        }
        self.touch();
    }

    /// Whether a flush would find nothing to do: nothing is in flight or waits, and no acknowledgment is due.
    #[inline(always)]
    pub(super) fn is_quiet(&self) -> bool {
        let empty = self.cold.fifos.as_ref().is_some_and(|pair| pair.transmit.is_empty());
        empty
            && self.cold.flight.is_at_rest()
            && !self.hot.has(flag::ACK_NOW | flag::FIN_QUEUED)
            && self.shared.takes_shortcuts()
    }

    #[inline(never)]
    fn on_any(&mut self, segment: &Segment<'_>) {
        match self.hot.state {
            State::Closed => self.refuse(segment, Reason::AfterClose),
            State::SynSent => self.on_syn_sent(segment),
            State::TimeWait => self.on_time_wait(segment),
            _ => self.on_synchronized(segment),
        }
    }

    #[inline(always)]
    fn on_synchronized(&mut self, segment: &Segment<'_>) {
        let mut own;
        let mut segment = segment;
        if self.hot.state == State::SynReceived {
            own = *segment;
            if !self.on_syn_received(&mut own) {
                return;
            }
            segment = &own;
        } else if !self.is_to_be_read(segment) {
            return;
        }
        // Fifth to eighth: acknowledgment, urgent pointer, data, FIN.
        if !self.on_ack(segment) || !self.hot.state.is_synchronized() {
            return;
        }
        self.note_timestamp(segment);
        if segment.has(bits::URG) && self.hot.state.receives() {
            self.on_urgent(segment);
        }
        if segment.length() > 0 {
            self.on_data(segment);
        }
    }

    /// The handshake's end. Gives whether to go on with the segment, less what it said of the handshake.
    #[cold]
    fn on_syn_received(&mut self, segment: &mut Segment<'_>) -> bool {
        if !self.settle_syn(segment) || !self.is_to_be_read(segment) || !self.establish(segment) {
            return false;
        }
        if segment.length() == 0 && segment.sack_count == 0 {
            // The ACE field was read as the handshake has it (RFC 9768 3.2.2.1).
            segment.flags |= bits::WITH_SYN;
        }
        true
    }

    /// First to fifth: whether the segment has something to say here.
    #[inline(always)]
    fn is_to_be_read(&mut self, segment: &Segment<'_>) -> bool {
        if !self.is_acceptable(segment) {
            return false;
        }
        if self.hot.has(flag::ACCURATE) {
            self.count_marks(segment);
        }
        // RFC 9293 3.10.7.4, fifth: if the ACK bit is off, drop the segment.
        if !segment.has(bits::ACK) {
            self.drop(Reason::NoAck);
            return false;
        }
        true
    }

    /// TS.Recent, which is what we echo (RFC 7323 4.3): the newest of the segments that hold the last
    /// acknowledgment sent, or lie before it. Segments that are dropped for what they acknowledge change nothing, as in
    /// Linux: they may be an attacker's.
    #[inline(always)]
    pub(super) fn note_timestamp(&mut self, segment: &Segment<'_>) {
        let (Some((value, _)), true) = (segment.timestamps, self.hot.has(flag::TIMESTAMPS)) else {
            return;
        };
        if self.is_newer(value) && !segment.seq.after(self.hot.acked) {
            self.hot.ts_recent = value;
            self.cold.ts_recent_at = self.now;
        }
    }

    /// A segment that is the peer's beyond doubt: it is alive.
    #[inline]
    pub(super) fn note_life(&mut self) {
        self.hot.received_at = self.now;
        self.hot.probes = 0;
    }

    /// Sixth: the urgent pointer is noted. It points behind the urgent byte (RFC 6093 2.1).
    fn on_urgent(&mut self, segment: &Segment<'_>) {
        let urgent = segment.seq.add(u32::from(segment.urgent));
        let (next, known) = (self.hot.rcv_nxt, self.cold.urgent);
        // What was urgent long ago says nothing, however often sequence numbers have gone round since.
        let is_ahead = known.within(next, self.hot.rcv_adv.add(u16::MAX.into()));
        let newest = if is_ahead { known } else { next };
        if urgent.after(newest) {
            self.cold.urgent = urgent;
            self.hot.set(flag::URGENT);
            if let Some(rare) = self.cold.rare.known() {
                rare.urgent_taken = false;
            }
            let id = self.id();
            self.tell(crate::event::Event::Urgent(id));
        }
    }

    /// Answers with a reset (3.10.7.1).
    pub(crate) fn refuse(&mut self, segment: &Segment<'_>, reason: Reason) {
        self.drop(reason);
        if segment.has(bits::RST) {
            return;
        }
        let ends = self.cold.ends();
        if self.shared.may_reset(ends.remote.ip(), self.now) {
            crate::emit::reset_for(self.sink, self.shared, &ends, segment);
        } else {
            self.drop(Reason::RateLimit);
        }
    }
}
