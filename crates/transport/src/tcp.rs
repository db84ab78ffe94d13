//! A TCP connection: its state, and the steps that segments, timers and calls take on it.

use crate::event::Event;
use crate::failure::Failure;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::options::TRANSMIT_BUFFER;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::sequence::Seq;
use crate::shared::Shared;

pub(crate) mod accurate;
pub(crate) mod cold;
pub(crate) mod counts;
pub(crate) mod fast_open;
pub(crate) mod flight;
pub(crate) mod gaps;
pub(crate) mod handshake;
pub(crate) mod hot;
pub(crate) mod icmp;
pub(crate) mod input;
pub(crate) mod marks;
pub(crate) mod mtu;
pub(crate) mod output;
pub(crate) mod prr;
pub(crate) mod rtt;
pub(crate) mod settings;
pub(crate) mod state;
mod tail_probe;
pub(crate) mod timers;

use cold::Cold;
use flight::Spares;
use hot::{Hot, NEVER, flag};
use state::State;

/// A connection with all that a step on it needs.
pub(crate) struct Tcb<'a, F: ByteFifo, S: Sink + ?Sized> {
    pub(crate) hot: &'a mut Hot,
    pub(crate) cold: &'a mut Cold<F>,
    pub(crate) shared: &'a mut Shared,
    /// Flights that no connection uses.
    pub(crate) flights: &'a mut Spares,
    pub(crate) buffers: &'a mut dyn Buffers<Fifo = F>,
    pub(crate) sink: &'a mut S,
    pub(crate) now: u64,
    pub(crate) index: u32,
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    pub(crate) fn id(&self) -> ConnectionId {
        ConnectionId::new(self.index, self.hot.generation)
    }

    pub(crate) fn drop(&mut self, reason: Reason) {
        self.shared.counters.drop(reason);
    }

    /// Puts it on the list of connections to flush.
    #[inline]
    pub(crate) fn touch(&mut self) {
        if !self.hot.has(flag::DIRTY) {
            self.hot.set(flag::DIRTY);
            self.shared.dirty.push_back(self.index);
        }
    }

    /// Bytes on the way to the peer.
    #[inline]
    pub(crate) fn pipe(&self) -> u32 {
        self.cold.flight.pipe(self.hot.snd_una, self.hot.snd_nxt, self.hot.mss)
    }

    /// Notes what is sent for the first time, in segments with so many bytes of data. Gives its record.
    #[inline]
    pub(crate) fn note_sent(&mut self, range: (Seq, Seq), marks: u8, size: u16) -> flight::Sent {
        let whole = self.hot.has(flag::HEARS_ALL);
        self.cold.flight.push(self.flights, range, (marks, size), self.now, whole)
    }

    pub(crate) fn srtt_ns(&self) -> u64 {
        u64::from(self.hot.srtt) * 1000
    }

    /// Tells the application, which must know the connection.
    pub(crate) fn tell(&mut self, event: Event) {
        if !self.hot.has(flag::RELEASED | flag::QUEUED) {
            self.shared.events.push_back(event);
        }
    }

    pub(crate) fn tell_readable(&mut self) {
        if !self.hot.has(flag::TOLD_READABLE | flag::RELEASED | flag::QUEUED) {
            self.hot.set(flag::TOLD_READABLE);
            let id = self.id();
            self.shared.events.push_back(Event::Readable(id));
        }
    }

    /// It is over, against somebody's will.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.cold.failure = Some(failure);
        self.hot.set(flag::ERROR_DUE);
        let id = self.id();
        self.tell(Event::Failed(id, failure));
        self.end();
    }

    /// Resets the peer: it is over, against somebody's will.
    pub(crate) fn reset(&mut self, failure: Failure) {
        if self.send_reset() {
            return self.fail(failure);
        }
        // The sink is full: nothing else is done until it takes the reset.
        self.hot.set(flag::RESET_DUE);
        self.stop_timers();
        self.cold.failure = Some(failure);
        self.hot.set(flag::ERROR_DUE);
        let id = self.id();
        self.tell(Event::Failed(id, failure));
    }

    /// It is over: what is in flight is forgotten, received data stays readable.
    pub(crate) fn end(&mut self) {
        self.leave_half_open();
        self.leave_fast_open(false);
        self.hot.state = State::Closed;
        self.cold.flight = flight::Slot::default();
        self.cold.gaps = gaps::Gaps::default();
        self.cold.congestion = None;
        self.stop_timers();
        self.hot.clear(flag::ACK_NOW);
    }

    pub(crate) fn stop_timers(&mut self) {
        self.hot.retransmit_at = NEVER;
        self.hot.ack_at = NEVER;
        self.hot.life_at = NEVER;
        self.hot.clear(flag::HELD_BACK);
    }

    /// Its handshake is over, one way or the other.
    pub(crate) fn leave_half_open(&mut self) {
        if self.hot.has(flag::HALF_OPEN) {
            self.hot.clear(flag::HALF_OPEN);
            let listener = self.cold.listener.and_then(|id| self.shared.listeners.get_mut(id));
            if let Some(listener) = listener {
                listener.half_open = listener.half_open.saturating_sub(1);
            }
        }
    }

    /// Both sides are done: late segments are waited out (RFC 9293 3.6.1).
    pub(crate) fn enter_time_wait(&mut self) {
        self.hot.state = State::TimeWait;
        self.cold.congestion = None;
        self.stop_timers();
        self.hot.life_at = self.now.saturating_add(self.cold.options.time_wait);
    }

    /// Takes over what congestion control says.
    pub(crate) fn follow_congestion(&mut self) {
        let Some(congestion) = &self.cold.congestion else { return };
        self.hot.cwnd = congestion.window();
        if self.hot.cwnd < congestion.threshold() {
            self.hot.set(flag::SLOW_START);
        } else {
            self.hot.clear(flag::SLOW_START);
        }
    }

    /// The segment size that path, peer and options allow.
    pub(crate) fn update_mss(&mut self) {
        let headers = self.cold.ip_header() + 20;
        let mut mss = self.cold.path_mtu.saturating_sub(headers).min(self.cold.peer_mss);
        if self.cold.options.mss != 0 {
            mss = mss.min(self.cold.options.mss);
        }
        // RFC 6691: options come out of the segment.
        let options = if self.hot.has(flag::TIMESTAMPS) { 12 } else { 0 };
        self.hot.mss = mss.saturating_sub(options).max(8);
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.set_mss(u32::from(self.hot.mss));
        }
    }

    /// Tells that there is room again, to who was refused some: a third of the FIFO, and less than half of
    /// what may wait unsent.
    pub(crate) fn offer_room(&mut self) {
        if !self.hot.has(flag::WANTS_ROOM) || self.hot.has(flag::TOLD_WRITABLE) {
            return;
        }
        if self.cold.has_room(self.hot) {
            self.hot.clear(flag::WANTS_ROOM);
            self.hot.set(flag::TOLD_WRITABLE);
            let id = self.id();
            self.tell(Event::Writable(id));
        }
    }

    /// Sequence number behind the last byte that the application wrote. Never behind what was sent: a FIFO
    /// whose writer takes bytes back has nothing new.
    pub(crate) fn written_end(&self) -> Seq {
        self.cold.data_start.add(self.cold.queued()).max(self.hot.snd_nxt)
    }

    /// What is in flight takes more than half of the transmit buffer: it grows, so that the application has the
    /// next window ready while one is under way. One whose size was chosen stays as it is.
    #[cold]
    pub(crate) fn grow_transmit(&mut self) {
        let limit = self.shared.config.transmit_buffer_limit;
        let wanted = self.hot.cwnd.saturating_mul(2).min(limit) as usize;
        let chosen = self.cold.options.transmit_buffer != TRANSMIT_BUFFER;
        let Some(pair) = self.cold.fifos.as_mut().filter(|_| !chosen) else { return };
        if wanted > pair.transmit.capacity() {
            pair.transmit.resize(wanted);
        }
    }
}
