//! Data and FIN (RFC 9293 3.10.7.4 seventh and eighth).

use crate::event::Event;
use crate::failure::Failure;
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{CONGESTION_EXPERIENCED, Segment, bits};
use crate::sequence::Seq;
use crate::tcp::Tcb;
use crate::tcp::handshake::QUICK;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    #[inline]
    pub(super) fn on_data(&mut self, segment: &Segment<'_>) {
        if !self.hot.state.receives() {
            // After the peer's FIN there is no more text: ignored.
            self.hot.set(flag::ACK_NOW);
            return self.drop(Reason::OldData);
        }
        self.note_life();
        self.note_marks(segment);
        let (mut start, mut data) = (segment.seq, segment.data);
        let mut fin = segment.has(bits::FIN);
        if start.before(self.hot.rcv_nxt) {
            let known = self.hot.rcv_nxt.since(start) as usize;
            if self.hot.has(flag::SACK) && !data.is_empty() {
                let end = start.add(data.len() as u32).min(self.hot.rcv_nxt);
                self.cold.gaps.note_duplicate(start, end);
            }
            data = data.get(known..).unwrap_or(&[]);
            start = self.hot.rcv_nxt;
            self.hot.set(flag::ACK_NOW);
        }
        let room = if start.before(self.hot.rcv_adv) { self.hot.rcv_adv.since(start) } else { 0 };
        if data.len() > room as usize {
            self.drop(Reason::ZeroWindow);
            data = data.get(..room as usize).unwrap_or(&[]);
            fin = false;
            self.hot.set(flag::ACK_NOW);
        }
        if !data.is_empty() {
            let shut = self.hot.has(flag::DEAF) && self.hot.state != State::Established;
            if self.hot.has(flag::RELEASED) || shut {
                // RFC 9293 3.6.1: closed here, and data comes: the peer must know.
                self.drop(Reason::AfterClose);
                return self.turn_away(segment);
            }
            let taken = self.store(start, data);
            fin &= taken == data.len();
        }
        if fin {
            self.hot.set(flag::FIN_AHEAD);
            self.cold.fin_at = start.add(data.len() as u32);
        }
        if self.hot.has(flag::FIN_AHEAD) && self.cold.fin_at == self.hot.rcv_nxt {
            self.on_fin();
        } else if fin {
            self.cold.gaps.note_fin(self.cold.fin_at);
            self.acknowledge_now();
        }
    }

    /// For data there is no connection any more: its sender hears what 3.10.7.1 says, as from Linux.
    #[cold]
    fn turn_away(&mut self, segment: &Segment<'_>) {
        let ends = self.cold.ends();
        if crate::emit::reset_for(self.sink, self.shared, &ends, segment) {
            self.fail(Failure::Reset);
        } else {
            self.reset(Failure::Reset);
        }
    }

    /// Congestion marks are told until the peer answers (RFC 3168 6.1.3).
    fn note_marks(&mut self, segment: &Segment<'_>) {
        if !self.hot.has(flag::ECN) {
            return;
        }
        if segment.has(bits::CWR) {
            self.hot.clear(flag::ECHO);
        }
        if segment.ecn == CONGESTION_EXPERIENCED {
            self.hot.set(flag::ECHO | flag::ACK_NOW);
        }
    }

    /// Puts data into the FIFO, in order or beyond a gap. Gives bytes taken.
    #[inline(always)]
    pub(crate) fn store(&mut self, start: Seq, data: &[u8]) -> usize {
        let Some(pair) = &mut self.cold.fifos else { return 0 };
        let ahead = start.since(self.hot.rcv_nxt);
        if ahead > 0 {
            let end = start.add(data.len() as u32);
            let taken = pair.receive.write_at(ahead as usize, data).min(data.len());
            if taken < data.len() || !self.cold.gaps.insert(start, end, pair.receive.capacity()) {
                self.drop(Reason::Reassembly);
                return 0;
            }
            let rare = self.cold.rare.note();
            rare.out_of_order = rare.out_of_order.wrapping_add(1);
            self.cold.counts.note_data(self.now);
            // RFC 5681 4.2: at once.
            self.acknowledge_now();
            return taken;
        }
        let taken = pair.receive.write_at(0, data).min(data.len());
        let mut next = self.hot.rcv_nxt.add(taken as u32);
        if taken < data.len() {
            self.hot.set(flag::ACK_NOW);
        }
        if !self.cold.gaps.is_empty() {
            next = self.cold.gaps.advance(next);
            self.hot.set(flag::ACK_NOW);
        }
        pair.receive.commit(next.since(self.hot.rcv_nxt) as usize);
        self.cold.counts.note_taken(self.hot.rcv_nxt, next);
        self.hot.rcv_nxt = next;
        if data.len() > usize::from(self.hot.rcv_mss) {
            self.note_size(data.len());
        }
        self.schedule_ack();
        self.cold.counts.note_data(self.now);
        self.tell_readable();
        taken
    }

    /// A segment larger than those before. What the peer was not told that it may send is several in one, as a port or a path
    /// gives them together (Linux's `tcp_measure_rcv_mss` looks at the size of each).
    #[cold]
    fn note_size(&mut self, length: usize) {
        let most = self.cold.announced_mss(self.path_limit());
        let size = length.min(16_384).min(usize::from(most)) as u16;
        self.hot.rcv_mss = self.hot.rcv_mss.max(size);
    }

    /// What is more than a full segment is acknowledged at once, less waits (RFC 9293 3.8.6.3; as Linux's
    /// `__tcp_ack_snd_check`).
    #[inline]
    fn schedule_ack(&mut self) {
        let hot = &mut *self.hot;
        let unacknowledged = hot.rcv_nxt.since(hot.acked);
        if hot.quick > 0 || hot.has(flag::QUICK_ACK) {
            hot.quick = hot.quick.saturating_sub(1);
            hot.set(flag::ACK_NOW);
        } else if unacknowledged > u32::from(hot.rcv_mss) {
            hot.set(flag::ACK_NOW);
        } else if hot.ack_at == NEVER {
            self.delay_ack();
        }
    }

    /// The acknowledgment waits for more data, or for an answer that carries it. After a pause longer than a time-out, though,
    /// the peer begins with a small window again: acknowledgments are quick until it has grown, unless both sides talk in turn
    /// (as Linux's `tcp_event_data_recv`).
    #[inline]
    fn delay_ack(&mut self) {
        let pause = self.cold.counts.received_ago(self.now).unwrap_or(0);
        let hot = &mut *self.hot;
        if pause > u64::from(hot.rto) * 1000 && !hot.has(flag::CONVERSES) {
            hot.quick = QUICK - 1;
            hot.set(flag::ACK_NOW);
        } else {
            hot.ack_at = self.now.saturating_add(self.cold.options.delayed_ack);
        }
    }

    /// Eighth: the peer is done.
    fn on_fin(&mut self) {
        self.hot.clear(flag::FIN_AHEAD);
        self.cold.gaps.take_fin();
        let next = self.hot.rcv_nxt.add(1);
        self.cold.counts.note_taken(self.hot.rcv_nxt, next);
        self.hot.rcv_nxt = next;
        self.hot.rcv_adv = self.hot.rcv_adv.max(self.hot.rcv_nxt);
        self.hot.set(flag::PEER_CLOSED | flag::ACK_NOW);
        match self.hot.state {
            State::Established => self.hot.state = State::CloseWait,
            State::FinWait1 => self.hot.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(),
            _ => {}
        }
        let id = self.id();
        self.tell(Event::PeerClosed(id));
        self.tell_readable();
    }
}
