//! Putting a segment together: options, window, acknowledgment.

use crate::emit::{OptionBytes, Out, emit};
use crate::fifo::ByteFifo;
use crate::isn::timestamp;
use crate::packet::Sink;
use crate::segment::bits;
use crate::sequence::Seq;
use crate::tcp::Tcb;
use crate::tcp::accurate::Accurate;
use crate::tcp::flight::mark;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;

/// ECT(0): the segment may be marked (RFC 3168 5).
const CAPABLE: u8 = 2;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Sends an acknowledgment without data. When the sink is full, it stays due.
    pub(crate) fn acknowledge_now(&mut self) {
        let before = self.promises();
        let window = self.advertise();
        let mut options = self.options();
        let plain = !self.cold.gaps.has_news();
        if !plain || self.hot.has(flag::ACCURATE) {
            self.tell_more(&mut options, plain);
        }
        let flags = bits::ACK | self.feedback(plain);
        if self.put(self.acceptable_seq(), flags, window, &options) {
            self.cold.gaps.told();
        } else {
            self.take_back(before);
            self.hot.set(flag::ACK_NOW);
        }
    }

    /// The sequence number of a segment without data: SND.NXT, or the window's edge when the peer has taken its window back from
    /// beneath what was sent (RFC 9293 3.8.6), because it ignores what lies beyond (as Linux's `tcp_acceptable_seq`).
    #[inline]
    fn acceptable_seq(&self) -> Seq {
        let hot = &*self.hot;
        let edge = hot.snd_una.add(hot.snd_wnd);
        // What scaling cuts off the window was not taken back.
        let is_cut = edge.before(hot.snd_nxt) && hot.snd_nxt.since(edge) >> hot.snd_scale > 0;
        // Before the handshake is over there is no window to go by.
        if is_cut && hot.state != State::SynReceived { edge } else { hot.snd_nxt }
    }

    /// Adds to an acknowledgment what it tells beside: blocks, and counters of marks.
    #[cold]
    fn tell_more(&mut self, options: &mut OptionBytes, plain: bool) {
        let told = self.hot.has(flag::SACK) && !plain;
        let (blocks, count) = if told { self.cold.gaps.blocks() } else { Default::default() };
        if self.hot.has(flag::ACCURATE) {
            self.add_accurate_option(options, count);
        }
        options.sack(blocks.get(..count).unwrap_or(&[]));
    }

    /// An acknowledgment of what is known already, which the peer must answer. Gives whether it left.
    pub(crate) fn probe(&mut self) -> bool {
        let before = self.promises();
        let window = self.advertise();
        let options = self.options();
        let flags = bits::ACK | if self.hot.has(flag::ACCURATE) { self.feedback(false) } else { 0 };
        let gone = self.put(self.hot.snd_una.sub(1), flags, window, &options);
        if !gone {
            self.take_back(before);
        }
        gone
    }

    /// Sends a reset (RFC 9293 3.10.7.1 for what its numbers are). Gives whether it left, or none was due.
    pub(crate) fn send_reset(&mut self) -> bool {
        if !self.hot.state.is_synchronized() && self.hot.state != State::SynReceived {
            return true;
        }
        let options = self.options();
        let gone = self.put(self.acceptable_seq(), bits::RST | bits::ACK, 0, &options);
        self.shared.counters.resets_out += u64::from(gone);
        gone
    }

    /// What a segment promises the peer while it is put together, in case that it does not leave.
    fn promises(&self) -> (Seq, Option<Accurate>) {
        let accurate =
            if self.hot.has(flag::ACCURATE) { self.cold.accurate.as_deref() } else { None };
        (self.hot.rcv_adv, accurate.copied())
    }

    /// The sink did not take the segment: the peer was told nothing.
    #[cold]
    fn take_back(&mut self, (edge, before): (Seq, Option<Accurate>)) {
        self.hot.rcv_adv = edge;
        if let (Some(accurate), Some(before)) = (&mut self.cold.accurate, before) {
            **accurate = before;
        }
    }

    /// The sink is full, which is no loss: the connection is looked at again at the next flush.
    #[cold]
    pub(super) fn wait_for_sink(&mut self) {
        // Another path than the network concerns those on it.
        self.shared.sink_is_full |= self.cold.path == 0;
        self.touch();
    }

    /// Options that every segment after the handshake has.
    #[inline]
    fn options(&self) -> OptionBytes {
        let mut options = OptionBytes::default();
        if self.hot.has(flag::TIMESTAMPS) {
            let clock = timestamp(self.now, self.hot.ts_offset);
            options.timestamps(clock, self.hot.ts_recent);
        }
        options
    }

    /// A segment without data. Gives whether it left.
    fn put(&mut self, seq: Seq, flags: u16, window: u16, options: &OptionBytes) -> bool {
        self.put_data(seq, flags, window, options, 0)
    }

    /// A segment with the first `data` bytes of the transmit FIFO, as a SYN may carry. Gives whether it
    /// left.
    pub(crate) fn put_data(
        &mut self,
        seq: Seq,
        flags: u16,
        window: u16,
        options: &OptionBytes,
        data: usize,
    ) -> bool {
        let out = Out {
            key: &self.cold.key,
            path: self.cold.path,
            seq,
            ack: if flags & bits::ACK != 0 { self.hot.rcv_nxt } else { Seq(0) },
            flags,
            window,
            urgent: 0,
            options,
            ttl: self.hot.ttl,
            service: self.hot.service,
            dont_fragment: !self.hot.has(flag::FRAGMENTS),
            data,
            segment_size: 0,
        };
        let source = self.cold.fifos.as_ref().map(|pair| (&pair.transmit, 0));
        let gone = emit(self.sink, self.shared, &out, source);
        if gone {
            self.cold.counts.note_sent(1, data, self.now);
        }
        if !gone {
            self.wait_for_sink();
        } else if flags & bits::ACK != 0 {
            self.acknowledged();
        }
        gone
    }

    #[inline]
    fn acknowledged(&mut self) {
        self.hot.acked = self.hot.rcv_nxt;
        self.hot.ack_at = NEVER;
        self.hot.clear(flag::ACK_NOW);
    }

    /// Sends a record from `start` to `end`, for the first time or again. Gives where what left ends: a
    /// full sink takes only a part, or nothing.
    #[inline]
    pub(crate) fn transmit(&mut self, (start, end): (Seq, Seq), marks: u8, again: bool) -> Seq {
        let before = (self.promises(), self.hot.flags & flag::REDUCED);
        let window = self.advertise();
        let has = |mark: u8| marks & mark != 0;
        let data =
            (end.since(start) - u32::from(has(mark::SYN)) - u32::from(has(mark::FIN))) as usize;
        // What the path is probed with has the size that it has.
        let whole = again || has(mark::PATH_PROBE);
        let mss = if whole { usize::from(self.hot.mss) } else { self.full_size() as usize };
        let mut options = self.options();
        let told = self.add_blocks(&mut options, data.min(mss));
        // RFC 9768 3.2.3.2.2: what has to be sent again goes without; full segments have no room.
        if self.hot.has(flag::ACCURATE) && !again && data + 12 <= mss {
            self.add_accurate_option(&mut options, 0);
        }
        let mut flags = bits::ACK | self.feedback(false);
        if has(mark::FIN) {
            flags |= bits::FIN;
        }
        if data > 0 && has(mark::PUSH | mark::FIN) {
            flags |= bits::PSH;
        }
        let mut service = self.hot.service;
        if self.hot.has(flag::ECN | flag::ACCURATE) && !again && data > 0 {
            if !self.hot.has(flag::UNMARKABLE) {
                service |= CAPABLE;
            }
            if self.hot.has(flag::REDUCED) && self.hot.has(flag::ECN) {
                flags |= bits::CWR;
                self.hot.clear(flag::REDUCED);
            }
        }
        let cut = data > mss && !has(mark::PATH_PROBE);
        let urgent = self.urgent_end();
        // Each segment has an urgent pointer of its own.
        let by_port = cut && self.segmentation() != 0 && urgent.is_none();
        let mut out = Out {
            key: &self.cold.key,
            path: self.cold.path,
            seq: start,
            ack: self.hot.rcv_nxt,
            flags,
            window,
            urgent: 0,
            options: &options,
            ttl: self.hot.ttl,
            service,
            dont_fragment: !self.hot.has(flag::FRAGMENTS),
            data,
            segment_size: if by_port { mss as u16 } else { 0 },
        };
        let size = if cut && !by_port { mss } else { data };
        let mut left = data;
        let gone_to = loop {
            out.data = left.min(size);
            left -= out.data;
            if size != data {
                // What belongs to the end of the data, or to its beginning.
                let first = if out.seq == start { 0 } else { bits::CWR };
                let last = if left == 0 { 0 } else { bits::FIN | bits::PSH };
                out.flags = flags & !(first | last);
            }
            if let Some(pointer) = urgent.and_then(|end| pointer(end, out.seq)) {
                (out.flags, out.urgent) = (out.flags | bits::URG, pointer);
            } else {
                (out.flags, out.urgent) = (out.flags & !bits::URG, 0);
            }
            let offset = out.seq.since(self.cold.data_start) as usize;
            let source = self.cold.fifos.as_ref().map(|pair| (&pair.transmit, offset));
            let gone = emit(self.sink, self.shared, &out, source);
            if !gone {
                break out.seq;
            }
            if left == 0 {
                break end;
            }
            out.seq = out.seq.add(out.data as u32);
        };
        let due = !told && self.hot.has(flag::ACK_NOW);
        let out = gone_to.since(start) as usize;
        if out > 0 {
            let each = if cut { mss } else { data.max(1) };
            let segments = data.min(out).div_ceil(each).max(1);
            self.cold.counts.note_sent(segments as u32, data.min(out), self.now);
        }
        if again {
            self.cold.rare.note().bytes_resent += data.min(out) as u64;
        }
        if gone_to == start {
            self.take_back(before.0);
            self.hot.set(before.1);
        } else {
            self.acknowledged();
            if told {
                self.cold.gaps.told();
            } else if due {
                // What there is to tell found no room.
                self.hot.set(flag::ACK_NOW);
            }
        }
        if gone_to != end {
            self.wait_for_sink();
        }
        gone_to
    }

    /// Behind the last byte that was written as urgent (SND.UP), while it is not acknowledged.
    #[inline]
    pub(super) fn urgent_end(&mut self) -> Option<Seq> {
        self.cold.rare.urgent?;
        let una = self.hot.snd_una;
        let rare = self.cold.rare.note();
        rare.urgent = rare.urgent.filter(|end| end.after(una));
        rare.urgent
    }

    /// The window to tell, as it is written. The right edge moves only by what is worth it, and never
    /// back (RFC 9293 3.8.6.2.2).
    #[inline(always)]
    pub(super) fn advertise(&mut self) -> u16 {
        if let Some(edge) = self.wider_edge() {
            self.hot.rcv_adv = edge;
        }
        (self.hot.rcv_wnd() >> self.hot.rcv_scale).min(65_535) as u16
    }

    /// The right edge that the receive FIFO allows, if it is worth telling.
    #[inline(always)]
    fn wider_edge(&self) -> Option<Seq> {
        if !self.hot.state.receives() || self.hot.has(flag::RELEASED) {
            return None;
        }
        let fifo = &self.cold.fifos.as_ref()?.receive;
        let most = 65_535u32 << self.hot.rcv_scale;
        let room = fifo.room().min(most as usize) as u32;
        let room = room >> self.hot.rcv_scale << self.hot.rcv_scale;
        let edge = self.hot.rcv_nxt.add(room);
        let gain = edge.since(self.hot.rcv_adv);
        let worth = (fifo.capacity() / 2).min(usize::from(self.hot.rcv_mss)) as u32;
        (edge.after(self.hot.rcv_adv) && gain >= worth.max(1)).then_some(edge)
    }

    /// Tells the peer of a window that opened by much since the application has read, when no segment does
    /// so anyway.
    pub(super) fn consider_window(&mut self) {
        if !self.hot.has(flag::HAS_READ) {
            return;
        }
        self.hot.clear(flag::HAS_READ);
        let known = self.hot.rcv_wnd();
        if let Some(edge) = self.wider_edge() {
            let now = edge.since(self.hot.rcv_nxt);
            if now >= known.saturating_mul(2) {
                self.hot.set(flag::ACK_NOW);
            }
        }
    }
}

/// The urgent pointer of a segment at `seq`, while urgent data ends at `end` (RFC 9293 3.8.5, RFC 6093 2.1: behind
/// its last byte). `None`: it was sent before, or is too far away to be pointed to.
fn pointer(end: Seq, seq: Seq) -> Option<u16> {
    if end.after(seq) { u16::try_from(end.since(seq)).ok() } else { None }
}
