//! What a SYN negotiates, and how a connection becomes established.

use std::sync::Arc;

use super::cold::Tuning;
use super::hot::{NEVER, flag};
use super::state::State;
use super::{Tcb, rtt};
use crate::congestion::Start;
use crate::emit::OptionBytes;
use crate::event::Event;
use crate::failure::Failure;
use crate::fifo::{ByteFifo, Grant, Opening};
use crate::isn::timestamp;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};

/// Segments that are acknowledged at once before delays begin: the peer is in slow start.
pub(crate) const QUICK: u8 = 16;
/// Segment size of a peer that announces none (RFC 9293 3.7.1): bytes, IPv4 and IPv6.
const DEFAULT_MSS: (u16, u16) = (536, 1220);

/// The segment size that the peer's SYN tells: bytes.
pub(crate) fn peer_mss(syn: &Segment<'_>, is_v4: bool) -> u16 {
    let default = if is_v4 { DEFAULT_MSS.0 } else { DEFAULT_MSS.1 };
    // None at all says as much as none.
    syn.mss.filter(|mss| *mss != 0).unwrap_or(default).max(48)
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Takes the peer's SYN in: sequence number and options.
    pub(crate) fn take_syn(&mut self, segment: &Segment<'_>) {
        let options = &self.cold.options;
        let hot = &mut *self.hot;
        self.cold.irs = segment.seq;
        self.cold.counts.begin(segment.seq);
        hot.rcv_nxt = segment.seq.add(1);
        hot.acked = hot.rcv_nxt;
        self.cold.urgent = hot.rcv_nxt;
        self.cold.peer_mss = peer_mss(segment, self.cold.is_v4());
        match segment.window_scale {
            Some(shift) if options.window_scale => hot.snd_scale = shift,
            _ => (hot.snd_scale, hot.rcv_scale) = (0, 0),
        }
        match segment.timestamps {
            Some((value, _)) if options.timestamps => {
                hot.set(flag::TIMESTAMPS);
                hot.ts_recent = value;
                self.cold.ts_recent_at = self.now;
            }
            _ => hot.clear(flag::TIMESTAMPS),
        }
        if segment.sack_permitted && options.sack {
            hot.set(flag::SACK);
        }
        self.update_mss();
        self.first_window();
    }

    /// The window of a SYN, which is not scaled.
    pub(crate) fn first_window(&mut self) {
        let window = self.cold.options.receive_buffer.min(65_535);
        self.hot.rcv_adv = self.hot.rcv_nxt.add(window);
    }

    /// The shift that lets the window say all that the receive buffer may become.
    pub(crate) fn choose_scale(&mut self) {
        self.hot.rcv_scale = self.cold.options.own_scale();
    }

    /// Congestion control begins: RFC 6928's window, or one segment when the SYN was lost
    /// (RFC 5681 3.1).
    pub(crate) fn start_congestion(&mut self) {
        self.begin_search();
        let mss = u32::from(self.hot.mss);
        let segments = u32::from(self.cold.options.initial_window.max(1));
        // RFC 6928 2: no more than so many segments of Ethernet's size, or two that are larger.
        let most = (segments * 1460).max(2 * mss);
        let window = if self.cold.retransmitted > 1 { mss } else { (segments * mss).min(most) };
        self.hot.cwnd = window;
        self.hot.set(flag::SLOW_START);
        if self.cold.options.congestion.hears_all() {
            self.hot.set(flag::HEARS_ALL);
            self.begin_congestion();
        }
        self.hot.quick = QUICK;
        self.hot.backoff = 0;
        self.cold.tries = 0;
        if self.cold.retransmitted > 0 && self.hot.srtt == 0 {
            // RFC 6298 5.7
            self.hot.rto = 3 * rtt::INITIAL_RTO;
        }
        self.cold.recover = self.cold.iss;
        self.cold.small_end = self.cold.iss;
        self.cold.reduced_until = self.cold.iss;
        self.cold.progress_at = self.now;
        self.cold.tuning = Tuning::begin(self.now);
        if let Some(accurate) = &mut self.cold.accurate {
            accurate.begin_round(self.hot.snd_nxt);
        }
        super::settings::apply(self.hot, self.cold);
    }

    /// Congestion control has something to say. Most connections never fill the initial window nor lose
    /// anything, and do without.
    pub(crate) fn begin_congestion(&mut self) {
        if self.cold.congestion.is_none() && self.hot.cwnd > 0 {
            let mss = u32::from(self.hot.mss);
            let (window, seed) = (self.hot.cwnd, self.cold.iss.0);
            let start = Start { mss, window, threshold: u32::MAX, now: self.now, seed };
            self.cold.congestion = Some(self.cold.options.congestion.start(&start));
            self.follow_congestion();
        }
    }

    /// The acknowledgment of our SYN in SYN-RECEIVED. Gives whether to go on.
    pub(super) fn establish(&mut self, segment: &Segment<'_>) -> bool {
        if !segment.ack.after(self.hot.snd_una) || segment.ack.after(self.hot.snd_nxt) {
            self.refuse(segment, Reason::BadAck);
            return false;
        }
        if self.hot.has(flag::FAST_PENDING) {
            self.leave_fast_open(false);
        } else {
            if self.is_deferred(segment) {
                self.hot.set(flag::DEFERRED);
                self.drop(Reason::Deferred);
                return false;
            }
            if self.hot.has(flag::PASSIVE) && !self.admit() {
                return false;
            }
            self.start_congestion();
        }
        self.hot.state = State::Established;
        self.take_window(segment, self.scale_of(segment));
        self.take_handshake_field(segment);
        self.shared.counters.established += 1;
        self.start_keepalive();
        if !self.hot.has(flag::PASSIVE) {
            let id = self.id();
            self.tell(Event::Connected(id));
        }
        true
    }

    /// Whether the acknowledgment comes too early for a listener that waits for data.
    fn is_deferred(&self, segment: &Segment<'_>) -> bool {
        // What was made of a cookie has no timer that would bring it up again.
        segment.length() == 0 && self.hot.has(flag::HALF_OPEN) && self.hot.backoff < self.patience()
    }

    /// Time-outs of our answer to the SYN after which the connection is established without data, as
    /// Linux counts them (`secs_to_retrans`).
    fn patience(&self) -> u8 {
        let first = u64::from(rtt::INITIAL_RTO) * 1000;
        let (mut period, mut end, mut count) = (first, first, 1);
        if self.cold.options.defer_accept == 0 {
            return 0;
        }
        while self.cold.options.defer_accept > end && count < u8::MAX {
            count += 1;
            period = (period * 2).min(rtt::MAXIMUM_RTO * 1000);
            end += period;
        }
        count
    }

    /// Whether a time-out of our answer to the SYN is only waited through: the peer has acknowledged it,
    /// and data is to come.
    pub(crate) fn awaits_data(&self) -> bool {
        self.hot.has(flag::DEFERRED) && self.hot.backoff < self.patience()
    }

    /// Retransmissions of a SYN, or of the answer to one.
    pub(crate) fn handshake_tries(&self) -> u8 {
        let options = &self.cold.options;
        match () {
            () if !self.hot.has(flag::PASSIVE) => options.syn_retries,
            () if self.hot.has(flag::DEFERRED) => options.syn_ack_retries.max(self.patience()),
            () => options.syn_ack_retries,
        }
    }

    /// Its listener was closed during the handshake: another at the same address takes it over.
    fn follow_group(&mut self) {
        let known = self.cold.listener.and_then(|id| self.shared.listeners.get(id));
        if known.is_some() {
            return;
        }
        let ends = self.cold.ends();
        let hash = self.shared.secret.hash_ends(&ends, [8, 0]);
        let Some(id) = self.shared.listeners.find(&ends, hash).map(|found| {
            found.half_open += 1;
            found.id
        }) else {
            return;
        };
        self.shared.listeners.enter(id);
        if let Some(old) = self.cold.listener.replace(id) {
            self.shared.listeners.leave(old);
        }
    }

    /// Puts a connection that came in into its listener's queue, with data buffers.
    pub(crate) fn admit(&mut self) -> bool {
        let id = self.id();
        self.follow_group();
        let Some(listener) =
            self.cold.listener.and_then(|listener| self.shared.listeners.get_mut(listener))
        else {
            if self.shared.config.custody {
                self.admit_later();
            } else {
                self.reset(Failure::Aborted);
            }
            return false;
        };
        if listener.is_full() {
            self.admit_later();
            return false;
        }
        // What was set at the listener meanwhile counts, as far as the handshake has not settled it.
        self.cold.options = Arc::clone(&listener.options);
        let options = &self.cold.options;
        let (receive, transmit) = (options.receive_buffer, options.transmit_buffer);
        let (receive, transmit) = (receive as usize, transmit as usize);
        let (ends, from) = (self.cold.ends(), Some(listener.id));
        let opening = Opening { connection: id, ends, listener: from, receive, transmit };
        match self.buffers.open(&opening) {
            Grant::Given(pair) => self.cold.fifos = Some(pair),
            Grant::Later => {
                self.admit_later();
                return false;
            }
            Grant::Refused => {
                self.drop(Reason::NoFifo);
                self.reset(Failure::NoBuffers);
                return false;
            }
        }
        listener.queue.push_back(id);
        if !listener.told {
            listener.told = true;
            self.shared.events.push_back(Event::Incoming(listener.id));
        }
        self.hot.set(flag::QUEUED);
        self.hot.clear(flag::RELEASED);
        self.leave_half_open();
        true
    }

    /// There is no room for the connection now. The peer's acknowledgment or data comes again, or our
    /// answer to its SYN does.
    fn admit_later(&mut self) {
        self.drop(Reason::AcceptQueue);
        if !self.hot.has(flag::HALF_OPEN) {
            // It was made of a cookie, which comes again too.
            self.end();
        }
    }

    pub(crate) fn start_keepalive(&mut self) {
        self.hot.life_at = match self.cold.options.keepalive {
            Some(keepalive) => self.now.saturating_add(keepalive.idle),
            None => NEVER,
        };
    }

    /// Sends our SYN, alone or with an acknowledgment, for the first time or again. Gives whether it left;
    /// when the sink is full, it stays due.
    pub(crate) fn send_syn(&mut self) -> bool {
        let answers = self.hot.state == State::SynReceived;
        let mut options = OptionBytes::default();
        options.mss(self.cold.announced_mss(self.path_limit()));
        let sack = self.hot.has(flag::SACK) || !answers && self.cold.options.sack;
        let stamps = self.hot.has(flag::TIMESTAMPS) || !answers && self.cold.options.timestamps;
        let clock = timestamp(self.now, self.hot.ts_offset);
        let echo = if answers { self.hot.ts_recent } else { 0 };
        match (sack, stamps) {
            (true, true) => options.sack_permitted_and_timestamps(clock, echo),
            (true, false) => options.sack_permitted(),
            (false, true) => options.timestamps(clock, echo),
            (false, false) => {}
        }
        // RFC 7323 2.2: whoever takes the peer's shift says so, by a shift of 0 if need be. With 0 at both ends there is
        // nothing to say.
        let scales = !answers || self.hot.rcv_scale != 0 || self.hot.snd_scale != 0;
        if scales && self.cold.options.window_scale {
            options.window_scale(self.hot.rcv_scale);
        }
        let carried = self.add_fast_open(&mut options, answers);
        let mut flags = bits::SYN;
        if answers {
            flags |= bits::ACK;
        }
        flags |= self.ecn_offer(answers);
        self.test_accurate_option(&mut options, answers);
        let room = if answers { self.hot.rcv_wnd() } else { self.cold.options.receive_buffer };
        let window = room.min(65_535) as u16;
        let iss = self.cold.iss;
        let gone = self.put_data(iss, flags, window, &options, carried as usize);
        let first = self.cold.flight.is_empty();
        if first && (gone || self.hot.retransmit_at == NEVER) {
            self.hot.retransmit_at = self.now.saturating_add(rtt::timeout(self.hot));
        }
        if !gone {
            self.hot.set(flag::ACK_NOW);
        } else if first {
            self.note_sent((iss, iss.add(1)), super::flight::mark::SYN, self.hot.mss);
            self.hot.backoff = 0;
            self.hot.snd_una = iss;
            self.hot.snd_nxt = iss.add(1);
            self.cold.data_start = iss.add(1);
            self.note_syn_data(carried);
        }
        gone
    }
}
