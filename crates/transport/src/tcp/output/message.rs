//! The one-segment path: a message that fits a segment, while nothing is in flight and nothing else is to be told.
//!
//! Requests and responses are that. Each step here is what [`send_data`](Tcb::send_data) comes to under
//! these conditions, but for the timer, which `output` starts at its end; `tests/shortcuts.rs` compares both.

use crate::emit::{OptionBytes, Out, emit_here};
use crate::fifo::ByteFifo;
use crate::isn::timestamp;
use crate::packet::Sink;
use crate::segment::bits;
use crate::tcp::Tcb;
use crate::tcp::flight::mark;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;

/// Any of these makes more of a segment than data and an acknowledgment.
const NOT_PLAIN: u64 = flag::FIN_QUEUED
    | flag::RECOVERY
    | flag::LOSS
    | flag::PROBING
    | flag::FORWARDING
    | flag::HEARS_ALL
    | flag::ACCURATE
    | flag::ECN
    | flag::PACED
    | flag::CORK
    | flag::MORE
    | flag::RELEASED
    | flag::FAST_PENDING;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Sends what is unsent, if it is a message. Gives whether it was: then nothing is left to send.
    #[inline(always)]
    pub(super) fn send_message(&mut self) -> bool {
        let (hot, cold) = (&*self.hot, &*self.cold);
        if hot.has(NOT_PLAIN)
            || hot.state != State::Established
            || !cold.flight.is_at_rest()
            || cold.search.is_some()
            || cold.gaps.has_news()
            || cold.rare.concerns_sending()
            || !self.shared.takes_shortcuts()
        {
            return false;
        }
        let Some(pair) = &cold.fifos else { return false };
        let data = pair.transmit.len();
        let most = u32::from(hot.mss).min(hot.snd_wnd);
        // With nothing in flight, the FIFO holds what is unsent and nothing else.
        let rests = hot.snd_una == hot.snd_nxt && cold.data_start == hot.snd_nxt;
        if data == 0 || data > most as usize || !rests {
            return false;
        }
        self.send_short(data)
    }

    #[inline(always)]
    fn send_short(&mut self, data: usize) -> bool {
        self.restart_idle();
        let answers = self.answers();
        let (edge, start) = (self.hot.rcv_adv, self.hot.snd_nxt);
        let window = self.advertise();
        let hot = &mut *self.hot;
        let mut options = OptionBytes::default();
        if hot.has(flag::TIMESTAMPS) {
            options.timestamps(timestamp(self.now, hot.ts_offset), hot.ts_recent);
        }
        let out = Out {
            key: &self.cold.key,
            path: self.cold.path,
            seq: start,
            ack: hot.rcv_nxt,
            flags: bits::ACK | bits::PSH,
            window,
            urgent: 0,
            options: &options,
            ttl: hot.ttl,
            service: hot.service,
            dont_fragment: !hot.has(flag::FRAGMENTS),
            data,
            segment_size: 0,
        };
        let source = self.cold.fifos.as_ref().map(|pair| (&pair.transmit, 0));
        if !emit_here(self.sink, self.shared, &out, source) {
            hot.rcv_adv = edge;
            self.wait_for_sink();
            self.note_use();
            return true;
        }
        let end = start.add(data as u32);
        self.cold.counts.note_sent(1, data, self.now);
        hot.acked = hot.rcv_nxt;
        hot.ack_at = NEVER;
        hot.clear(flag::ACK_NOW);
        hot.snd_nxt = end;
        if answers {
            hot.converse();
        }
        if data != usize::from(hot.mss) {
            self.cold.small_end = end;
        }
        self.cold.flight.push_lone((start, end), mark::PUSH, hot.mss, self.now);
        self.note_message(data);
        true
    }
}
