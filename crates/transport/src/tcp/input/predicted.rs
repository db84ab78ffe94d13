//! Header prediction: the segment that is expected next, with data in order or an acknowledgment of all that is in
//! flight, or both, and nothing else (V. Jacobson's; RFC 9293 3.10.7.4 asks for the same result only).
//!
//! Each step here is what the general ones come to under these conditions; `tests/shortcuts.rs` compares both.

use super::ack::NOT_PLAIN;
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::segment::{CONGESTION_EXPERIENCED, Segment, bits};
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;
use crate::tcp::{Tcb, rtt};

/// Any of these makes more of a segment.
const NOT_PREDICTED: u64 = NOT_PLAIN | flag::RELEASED | flag::FIN_AHEAD;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Takes the segment in, if it was predicted. Gives whether it was.
    #[inline(always)]
    pub(super) fn on_predicted(&mut self, segment: &Segment<'_>) -> bool {
        let (hot, cold) = (&*self.hot, &*self.cold);
        if segment.flags & !bits::PSH != bits::ACK
            || segment.seq != hot.rcv_nxt
            || segment.data.len() > hot.rcv_wnd() as usize
            || hot.has(NOT_PREDICTED)
            || hot.state != State::Established
            || segment.sack_count != 0
            || segment.ecn == CONGESTION_EXPERIENCED
            || cold.search.is_some()
            || !self.shared.takes_shortcuts()
        {
            return false;
        }
        if hot.has(flag::TIMESTAMPS) {
            let newer = |(value, _): (u32, u32)| value.wrapping_sub(hot.ts_recent) as i32 >= 0;
            if !segment.timestamps.is_some_and(newer) {
                return false;
            }
        }
        let ack = segment.ack;
        if ack != hot.snd_una {
            let Some(sent_at) = self.cold.flight.take_message(ack, self.now) else { return false };
            self.accept_acknowledgment(segment, sent_at);
        } else if self.cold.flight.is_empty() {
            self.accept_header(segment);
        } else {
            return false;
        }
        if !segment.data.is_empty() {
            self.store(segment.seq, segment.data);
        }
        true
    }

    /// What every segment tells.
    #[inline(always)]
    fn accept_header(&mut self, segment: &Segment<'_>) {
        self.note_timestamp(segment);
        self.note_life();
        self.update_window(segment);
    }

    /// All that was in flight was sent once, in a segment at `sent_at`, and is acknowledged.
    #[inline(always)]
    fn accept_acknowledgment(&mut self, segment: &Segment<'_>, sent_at: u64) {
        self.accept_header(segment);
        self.advance(segment.ack);
        let minimum = (self.cold.options.minimum_rto / 1000) as u32;
        let taken = self.now.saturating_sub(sent_at) / 1000;
        rtt::measure(self.hot, taken.min(u64::from(u32::MAX)) as u32, minimum);
        self.note_progress();
        self.hot.clear(flag::TIMER_KIND);
        self.hot.retransmit_at = NEVER;
    }
}
