//! New data and lost data: how much, and in what pieces.

use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::sequence::Seq;
use crate::tcp::Tcb;
use crate::tcp::flight::{Sent, mark};
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;

/// What a paced connection may send at once: ns of its rate.
const QUANTUM: u64 = 1_000_000;
/// What it makes up for at once at least, when its wait has ended late because others had the core: bytes. As much as goes out in
/// one piece where a port cuts segments; of a large window, half. If that time were lost, congestion control that paces at the rate
/// it has seen (BBR) would see a lower one each time, until there were one segment for each wake-up.
const CATCH_UP: u32 = 65_536;
/// Segments that are noted as one where no port cuts them: each record and each decision is then for
/// many.
const BATCH: u32 = 16;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Sends lost segments again, as far as the window lets.
    pub(super) fn send_lost(&mut self) {
        while let Some(lost) = self.cold.flight.next_lost() {
            let mss = u32::from(self.hot.mss);
            let room = self.hot.cwnd.saturating_sub(self.pipe());
            if room < lost.length().min(mss) || self.is_held_back() {
                return;
            }
            if lost.length() > mss {
                self.cold.flight.split_at(lost.start.add(mss));
                continue;
            }
            if !self.resend(&lost) {
                return;
            }
        }
    }

    /// Sends a record again. Gives whether it left.
    pub(crate) fn resend(&mut self, sent: &Sent) -> bool {
        if self.transmit((sent.start, sent.end), sent.marks, true) != sent.end {
            return false;
        }
        self.shared.counters.retransmissions += 1;
        self.cold.retransmitted = self.cold.retransmitted.saturating_add(1);
        self.note_again();
        self.cold.undo_left = self.cold.undo_left.saturating_add(sent.length());
        self.cold.flight.resent(sent.start, self.now);
        if sent.start == self.hot.snd_una
            && self.hot.has(flag::RECOVERY)
            && !self.hot.has(flag::TIMER_IS_REORDER)
        {
            // The time-out is for the oldest: it counts from when that was sent last.
            self.restart_timer();
        }
        self.cold.flight.reduction.on_sent(sent.length());
        self.spend(sent.length());
        true
    }

    /// Something is sent again: an echo from before the first time is not of it (RFC 3522 3.2).
    pub(crate) fn note_again(&mut self) {
        if !self.hot.has(flag::SENT_AGAIN) {
            self.hot.set(flag::SENT_AGAIN);
            self.cold.eifel = crate::isn::timestamp(self.now, self.hot.ts_offset);
        }
    }

    /// Whether pacing says to wait; then it is woken when the wait is over.
    fn is_held_back(&mut self) -> bool {
        let waits = self.hot.has(flag::PACED) && self.hot.pace_at > self.now;
        if waits {
            self.hot.set(flag::HELD_BACK);
        }
        waits
    }

    /// A wait for the pacing rate that is over by now: what it was longer than it should have been is made up for.
    #[inline]
    pub(super) fn end_wait(&mut self) {
        if self.hot.has(flag::HELD_BACK) && self.hot.pace_at <= self.now {
            self.hot.clear(flag::HELD_BACK);
            self.hot.set(flag::LATE);
        }
    }

    /// Sends new data, and the FIN behind it.
    pub(super) fn send_data(&mut self) {
        let (end, first) = (self.written_end(), self.hot.snd_nxt);
        loop {
            let sent_fin = self.hot.has(flag::FIN_SENT);
            let unsent = if sent_fin { 0 } else { end.since(self.hot.snd_nxt) };
            // Before the handshake is over (Fast Open) there is no FIN to send.
            let settled = self.hot.state != State::SynReceived;
            let fin = self.hot.has(flag::FIN_QUEUED) && !sent_fin && settled;
            if unsent == 0 && !fin {
                let pipe = self.pipe();
                self.cold.flight.limit(pipe);
                break;
            }
            if self.is_held_back() {
                break;
            }
            if self.cold.search.is_some() {
                let before = self.hot.snd_nxt;
                self.probe_path(unsent);
                if self.hot.snd_nxt != before {
                    continue;
                }
            }
            if self.cold.flight.is_empty() && self.hot.snd_wnd > 0 {
                // The window is another then: before a batch is cut to it.
                self.restart_idle();
            }
            // A record that ends before the rest has its own segments.
            let part = self.record_left(unsent);
            let fin = fin && part == unsent;
            let Some(length) = self.next_length(part, fin) else { break };
            if !self.send_new(length, part, fin) {
                break;
            }
        }
        if self.hot.snd_nxt != first || end.after(first) {
            self.note_use();
        }
    }

    /// Bytes of the `unsent` ones up to the end of a record (`MSG_EOR`).
    fn record_left(&mut self, unsent: u32) -> u32 {
        let next = self.hot.snd_nxt;
        let Some(rare) = self.cold.rare.known() else { return unsent };
        let records = &mut rare.records;
        while records.front().is_some_and(|end| !end.after(next)) {
            records.pop_front();
        }
        records.front().map_or(unsent, |end| end.since(next).min(unsent))
    }

    /// Bytes of the next segment; `None`: nothing may go now.
    fn next_length(&mut self, unsent: u32, fin: bool) -> Option<u32> {
        let mss = self.full_size();
        let edge = self.hot.snd_una.add(self.hot.snd_wnd);
        let peer = if edge.after(self.hot.snd_nxt) { edge.since(self.hot.snd_nxt) } else { 0 };
        let pipe = self.pipe();
        let own = self.hot.cwnd.saturating_sub(pipe);
        if own < unsent.min(mss).max(1) && pipe > 0 {
            return None;
        }
        if peer == 0 {
            return None;
        }
        let most = unsent.min(peer).min(own.max(mss));
        // Divisions are slow: most messages are one segment.
        let length = if most > mss { self.batch(mss).min(most) / mss * mss } else { most };
        // Sender's silly-window avoidance and Nagle (RFC 9293 3.8.6.2.1, 3.7.4).
        // As Minshall and Linux have it, only a segment that was not full keeps another such waiting.
        let small = self.cold.small_end;
        let idle = !small.after(self.hot.snd_una) || small.after(self.hot.snd_nxt);
        let last = length == unsent;
        // Urgent data does not wait either, as Linux has it.
        let urgent = self.urgent_end().is_some();
        let allowed = length >= mss
            || last && (fin || urgent)
            || last
                && !self.hot.has(flag::CORK | flag::MORE)
                && (self.hot.has(flag::NO_DELAY) || idle)
            || !last && length >= self.cold.max_window / 2;
        allowed.then_some(length)
    }

    /// A window too small to be worth it has stayed so for a time-out: it is used all the same
    /// (RFC 9293 3.8.6.2.1). Gives whether something left.
    pub(crate) fn send_fitting(&mut self) -> bool {
        let unsent = self.written_end().since(self.hot.snd_nxt);
        let part = self.record_left(unsent);
        let length = part.min(self.hot.snd_wnd).min(self.full_size());
        let fin = length == unsent && self.hot.has(flag::FIN_QUEUED);
        // Pushed, whatever follows (as Linux's `tcp_write_wakeup`).
        length > 0 && self.send_new(length, length, fin)
    }

    /// Data that was not sent yet, and room for it in the peer's window: bytes.
    fn unsent_and_room(&self) -> (u32, u32) {
        let sent_fin = self.hot.has(flag::FIN_SENT);
        let unsent = if sent_fin { 0 } else { self.written_end().since(self.hot.snd_nxt) };
        let edge = self.hot.snd_una.add(self.hot.snd_wnd);
        let room = if edge.after(self.hot.snd_nxt) { edge.since(self.hot.snd_nxt) } else { 0 };
        (unsent, room)
    }

    /// Whether the peer's window takes the next segment whole.
    pub(crate) fn has_room_for_next(&self) -> bool {
        let (unsent, room) = self.unsent_and_room();
        room >= unsent.min(self.full_size()).max(1)
    }

    /// Sends a segment of new data, or the FIN, whatever Nagle's algorithm and the congestion window say.
    /// Gives whether there was one, and room for it.
    pub(crate) fn send_one(&mut self) -> bool {
        let (unsent, room) = self.unsent_and_room();
        let part = self.record_left(unsent);
        let fin = self.hot.has(flag::FIN_QUEUED) && !self.hot.has(flag::FIN_SENT);
        let length = part.min(room).min(self.full_size());
        let before = self.hot.snd_nxt;
        self.send_new(length, part, fin && part == unsent);
        self.hot.snd_nxt != before
    }

    /// F-RTO's two new segments (RFC 5682 2.1 step 2b), whatever Nagle would say. Without new data,
    /// or room for it at the peer's, lost segments are sent again as after any time-out.
    #[cold]
    pub(super) fn send_forward(&mut self) {
        self.hot.clear(flag::FORWARDING);
        for _ in 0..2 {
            if !self.send_one() {
                return;
            }
            self.hot.set(flag::FORWARD_SENT);
        }
    }

    /// Bytes of data of one packet that its way out takes as many segments; 0: it takes single ones.
    #[inline]
    pub(super) fn segmentation(&self) -> u32 {
        let offloads = &self.shared.offloads;
        let aside = self.hot.has(flag::ASIDE);
        if aside { offloads.path_segmentation } else { offloads.segmentation }
    }

    /// Bytes to send as one, segments of `mss`: the port cuts them, or else we do.
    fn batch(&self, mss: u32) -> u32 {
        let most = match self.segmentation() {
            0 => BATCH * mss,
            _ if self.hot.has(flag::ACCURATE) && self.field_has_cwr() => mss,
            most => most.min(65_000),
        };
        let most = if self.hot.has(flag::PACED) { most.min(self.quantum()) } else { most };
        most.max(mss) / mss * mss
    }

    /// Bytes that a paced connection may send at once.
    fn quantum(&self) -> u32 {
        let bytes = self.pacing_rate().map_or(u64::MAX, |rate| rate / (1_000_000_000 / QUANTUM));
        bytes.min(u64::from(u32::MAX)) as u32
    }

    #[inline]
    fn send_new(&mut self, length: u32, unsent: u32, fin: bool) -> bool {
        let start = self.hot.snd_nxt;
        let edge = self.hot.snd_una.add(self.hot.snd_wnd);
        // The FIN goes with the last byte when the window has room for it.
        let fin = fin && length == unsent && start.add(length).before(edge);
        if length == 0 && !fin {
            return false;
        }
        let marks = if fin { mark::FIN } else { 0 } | if length == unsent { mark::PUSH } else { 0 };
        let gone = self.send_record(start.add(length + u32::from(fin)), marks);
        if fin && gone {
            self.hot.set(flag::FIN_SENT);
            self.hot.state = match self.hot.state {
                State::CloseWait => State::LastAck,
                _ => State::FinWait1,
            };
        }
        gone
    }

    /// Sends what follows SND.NXT up to `next` for the first time. Gives whether all of it left.
    #[inline]
    pub(crate) fn send_record(&mut self, next: Seq, marks: u8) -> bool {
        let start = self.hot.snd_nxt;
        if self.cold.flight.is_empty() {
            self.restart_idle();
        }
        let answers = self.answers();
        let probes = marks & mark::PATH_PROBE != 0;
        let size = if probes { next.since(start) } else { self.full_size() } as u16;
        let end = self.transmit((start, next), marks, false);
        if end == start {
            return false;
        }
        // Only what left is noted.
        let marks = if end == next { marks } else { marks & !(mark::FIN | mark::PUSH) };
        let sent = self.note_sent((start, end), marks, size);
        self.hot.snd_nxt = end;
        if answers {
            self.hot.converse();
        }
        if sent.data() % u32::from(self.hot.mss) != 0 {
            self.cold.small_end = end;
        }
        if self.hot.has(flag::RECOVERY) {
            self.cold.flight.reduction.on_sent(sent.data());
        }
        self.spend(sent.data());
        self.extend_timer();
        end == next
    }

    /// Whether what is sent now answers what came just before, where that is not known. What is said both ways needs no
    /// quick acknowledgments: they go with the next word.
    #[inline]
    pub(super) fn answers(&self) -> bool {
        let hot = &*self.hot;
        let may = !hot.has(flag::CONVERSES) && (hot.quick > 0 || hot.ack_at != NEVER);
        may && self.is_answer()
    }

    fn is_answer(&self) -> bool {
        let pending = self.hot.ack_at != NEVER || self.hot.has(flag::ACK_NOW);
        let had_data = self.hot.rcv_nxt != self.cold.irs.add(1);
        let ago = self.now.saturating_sub(self.hot.received_at);
        pending || had_data && ago < self.cold.options.delayed_ack
    }

    /// Sending begins with nothing in flight: what was quiet for long starts anew (RFC 5681 4.1).
    #[inline(always)]
    pub(super) fn restart_idle(&mut self) {
        let idle = self.now.saturating_sub(self.cold.progress_at);
        let rto = u64::from(self.hot.rto) * 1000;
        if idle > rto && self.cold.congestion.is_some() {
            self.restart_congestion(idle, rto);
        }
        self.cold.progress_at = self.now;
    }

    #[cold]
    fn restart_congestion(&mut self, idle: u64, rto: u64) {
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.on_restart(self.now, idle, rto);
            self.follow_congestion();
        }
    }

    /// Pacing: after a quantum, the next waits.
    fn spend(&mut self, bytes: u32) {
        if !self.hot.has(flag::PACED) {
            return;
        }
        let Some(rate) = self.pacing_rate() else { return };
        let takes = |bytes: u32| u64::from(bytes).saturating_mul(1_000_000_000) / rate.max(1);
        let time = takes(bytes);
        let late = if self.hot.has(flag::LATE) {
            takes(CATCH_UP.max(self.hot.cwnd / 2)).max(QUANTUM)
        } else {
            QUANTUM
        };
        let from = self.hot.pace_at.max(self.now.saturating_sub(late));
        self.hot.pace_at = from.saturating_add(time);
    }

    /// Bytes per second.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.cold.pacing_rate(self.hot)
    }
}
