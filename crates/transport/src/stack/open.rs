//! Segments for which there is no connection: a listener's, or nobody's (RFC 9293 3.10.7.1 and 2).

use std::sync::Arc;

use super::Stack;
use crate::emit::{self, OptionBytes, Out};
use crate::ends::Ends;
use crate::fifo::Buffers;
use crate::handle::{ConnectionId, ListenerId};
use crate::isn;
use crate::options::Options;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};
use crate::sequence::Seq;
use crate::syn_cookie::{self, Kept};
use crate::tcp::accurate::{ace, handshake_bits};
use crate::tcp::cold::Cold;
use crate::tcp::handshake::peer_mss;
use crate::tcp::hot::flag;
use crate::tcp::marks::{self, Offer};
use crate::tcp::settings;
use crate::tcp::state::State;

/// How long acknowledgments are checked for cookies after the last was sent: ns.
const COOKIE_LIFE: u64 = 120_000_000_000;

impl<B: Buffers> Stack<B> {
    /// `after`: the sequence number that a connection between these ends has come to.
    pub(super) fn take_unmatched<S: Sink + ?Sized>(
        &mut self,
        ends: &Ends,
        segment: &Segment<'_>,
        after: Option<Seq>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        if segment.has(bits::RST) {
            return Err(Reason::NoConnection);
        }
        let now = self.now;
        if self.held.is_quiet(ends, now) {
            let is_syn = segment.flags & (bits::SYN | bits::ACK | bits::FIN) == bits::SYN;
            let hash = self.group_hash(ends);
            if is_syn && self.shared.path == 0 && self.shared.listeners.find(ends, hash).is_some() {
                self.held.keep_syn(ends, segment, now);
            }
            self.turn_away(ends, sink);
            return Err(Reason::Moving);
        }
        if segment.has(bits::ACK) {
            return self.take_unmatched_ack(ends, segment, sink);
        }
        let hash = self.group_hash(ends);
        let Some(listener) = self.shared.listeners.find(ends, hash) else {
            return self.reset_unmatched(ends, segment, Reason::NoConnection, sink);
        };
        if !segment.has(bits::SYN) {
            return Err(Reason::NoAck);
        }
        if listener.is_full() || !self.buffers.admits(listener.id, ends) {
            return Err(Reason::AcceptQueue);
        }
        if listener.half_open >= listener.backlog {
            listener.cookies_until = now.saturating_add(COOKIE_LIFE);
            let options = Arc::clone(&listener.options);
            self.send_cookie(ends, segment, &options, sink);
            return Err(Reason::SynQueue);
        }
        listener.half_open += 1;
        let (id, options) = (listener.id, Arc::clone(&listener.options));
        let made = self.make(ends, options, Some(id));
        if made.is_none() {
            if let Some(listener) = self.shared.listeners.get_mut(id) {
                listener.half_open -= 1;
            }
        }
        let connection = made.ok_or(Reason::NoSlot)?;
        self.answer_syn(connection, segment, after, sink);
        Ok(())
    }

    /// An acknowledgment that may hold a cookie. Another stack with the same secret may have sent that, and be no longer the one that
    /// packets of new connections come to. While this one has sent none, a cookie is taken only where a reset could leave: so nobody
    /// makes connections by guessing at more cookies than that.
    fn take_unmatched_ack<S: Sink + ?Sized>(
        &mut self,
        ends: &Ends,
        segment: &Segment<'_>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        if segment.has(bits::SYN) || !self.shared.listeners.is_listening(ends.local) {
            return self.reset_unmatched(ends, segment, Reason::NoConnection, sink);
        }
        let (now, peer) = (self.now, ends.remote.ip());
        let has_sent = self.shared.listeners.takes_cookies(ends.local, now);
        let (irs, iss) = (segment.seq.sub(1), segment.ack.sub(1));
        match syn_cookie::check(&self.shared.secret, ends, irs, iss, now) {
            Some(mss) if has_sent || self.shared.path == 0 && self.shared.may_reset(peer, now) => {
                self.take_cookie(ends, segment, mss, sink)
            }
            _ => {
                let reason = if has_sent { Reason::Cookie } else { Reason::NoConnection };
                self.reset_unmatched(ends, segment, reason, sink)
            }
        }
    }

    fn answer_syn<S: Sink + ?Sized>(
        &mut self,
        connection: ConnectionId,
        segment: &Segment<'_>,
        after: Option<Seq>,
        sink: &mut S,
    ) {
        self.step(connection.index(), sink, |tcb| {
            tcb.hot.set(flag::HALF_OPEN);
            tcb.hot.state = State::SynReceived;
            tcb.cold.iss = isn::beyond(tcb.cold.iss, after);
            tcb.choose_scale();
            tcb.take_syn(segment);
            tcb.take_ecn_offer(segment);
            tcb.hot.snd_wnd = u32::from(segment.window);
            tcb.hot.received_at = tcb.now;
            tcb.cold.counts.note_received(segment.data.len());
            tcb.take_fast_open(segment);
            tcb.output();
        });
    }

    /// Chooses among listeners that share an address.
    pub(crate) fn group_hash(&self, ends: &Ends) -> u64 {
        self.shared.secret.hash_ends(ends, [8, 0])
    }

    /// A place for a connection between `ends`, listed in the table.
    pub(crate) fn make(
        &mut self,
        ends: &Ends,
        options: Arc<Options>,
        listener: Option<ListenerId>,
    ) -> Option<ConnectionId> {
        let known = self.shared.paths.find(ends.remote.ip(), self.now);
        let known = known.filter(|_| options.mtu_discovery && self.shared.path == 0);
        let mtu = known.map_or(self.shared.path_mtu, |path| path.mtu.min(self.shared.config.mtu));
        let mut cold = Cold::new(*ends, options, mtu);
        cold.path = self.shared.path;
        cold.iss = isn::initial(&self.shared.secret, ends, self.now);
        cold.listener = listener;
        let id = self.slab.add(cold);
        if !self.list(ends, id.index()) {
            self.slab.free(id.index());
            return None;
        }
        let offset = isn::timestamp_offset(&self.shared.secret, ends);
        let (hot, cold) = self.slab.get_mut(id)?;
        hot.ts_offset = offset;
        if known.is_some_and(|path| path.narrow) {
            hot.set(flag::NARROW);
        }
        settings::apply(hot, cold);
        hot.set(flag::IN_TABLE | if self.shared.path == 0 { 0 } else { flag::ASIDE });
        if let Some(listener) = listener {
            hot.set(flag::PASSIVE | flag::RELEASED);
            self.shared.listeners.enter(listener);
            self.buffers.came(ends);
        }
        Some(id)
    }

    fn reset_unmatched<S: Sink + ?Sized>(
        &mut self,
        ends: &Ends,
        segment: &Segment<'_>,
        reason: Reason,
        sink: &mut S,
    ) -> Result<(), Reason> {
        if self.shared.path != 0 {
            self.turn_away(ends, sink);
        } else if self.held.spares_resets(ends.local.port(), self.now) {
            return Err(Reason::Moving);
        } else if self.shared.may_reset(ends.remote.ip(), self.now) {
            emit::reset_for(sink, &mut self.shared, ends, segment);
        } else {
            self.shared.counters.drop(Reason::RateLimit);
        }
        Err(reason)
    }

    /// A segment that came by another path than the network: whoever it is for is to be looked for there.
    fn turn_away<S: Sink + ?Sized>(&self, ends: &Ends, sink: &mut S) {
        if self.shared.path != 0 {
            sink.turn_away(self.shared.path, ends);
        }
    }

    /// Answers a SYN without keeping anything of it.
    fn send_cookie<S: Sink + ?Sized>(
        &mut self,
        ends: &Ends,
        segment: &Segment<'_>,
        options: &Options,
        sink: &mut S,
    ) {
        let secret = &self.shared.secret;
        let mss = peer_mss(segment, ends.remote.is_ipv4());
        let seq = syn_cookie::make(secret, ends, segment.seq, mss, self.now);
        let kept = Kept {
            mss,
            window_scale: segment.window_scale.filter(|_| options.window_scale),
            sack: segment.sack_permitted && options.sack,
            ecn: marks::offer(segment, options) == Offer::Classic,
        };
        let mut bytes = OptionBytes::default();
        bytes.mss(options.announced_mss(self.shared.path_mtu, ends.ip_header() as u16));
        let mut flags = bits::SYN | bits::ACK;
        if marks::offer(segment, options) == Offer::Accurate {
            // The acknowledgment says it again (RFC 9768 5.1).
            flags |= handshake_bits(segment.ecn);
        }
        if let (Some((value, _)), true) = (segment.timestamps, options.timestamps) {
            let clock = isn::timestamp(self.now, isn::timestamp_offset(secret, ends));
            if kept.sack {
                bytes.sack_permitted();
            }
            bytes.timestamps(syn_cookie::stamp(clock, &kept), value);
            if kept.window_scale.is_some() {
                bytes.window_scale(options.own_scale());
            }
            if kept.ecn {
                flags |= bits::ECE;
            }
        }
        let out = Out {
            key: &ends.key(),
            path: self.shared.path,
            seq,
            ack: segment.seq.add(1),
            flags,
            window: options.receive_buffer.min(65_535) as u16,
            urgent: 0,
            options: &bytes,
            ttl: options.ttl,
            service: options.dscp << 2,
            dont_fragment: options.mtu_discovery,
            data: 0,
            segment_size: 0,
        };
        emit::emit::<B::Fifo, _>(sink, &mut self.shared, &out, None);
    }

    /// An acknowledgment that holds a cookie: the connection is made as if it had been there.
    fn take_cookie<S: Sink + ?Sized>(
        &mut self,
        ends: &Ends,
        segment: &Segment<'_>,
        mss: u16,
        sink: &mut S,
    ) -> Result<(), Reason> {
        let (irs, iss) = (segment.seq.sub(1), segment.ack.sub(1));
        let hash = self.group_hash(ends);
        let listener = self.shared.listeners.find(ends, hash);
        let listener = listener.filter(|listener| !listener.is_full());
        let listener = listener.ok_or(Reason::AcceptQueue)?;
        let (id, options) = (listener.id, Arc::clone(&listener.options));
        let connection = self.make(ends, options, Some(id)).ok_or(Reason::NoSlot)?;
        let kept = segment
            .timestamps
            .map_or(Kept { mss, window_scale: None, sack: false, ecn: false }, |(_, echo)| {
                syn_cookie::unstamp(echo, mss)
            });
        // RFC 9768 3.2.2.1 note 3: with accurate feedback the field is neither 0 nor 1.
        let marks = match () {
            () if kept.ecn => bits::ECE | bits::CWR,
            () if ace(segment.flags) > 1 => bits::AE | bits::ECE | bits::CWR,
            () => 0,
        };
        let syn = Segment {
            seq: irs,
            flags: bits::SYN | marks,
            mss: Some(kept.mss),
            window_scale: kept.window_scale,
            sack_permitted: kept.sack,
            sack_count: 0,
            data: &[],
            ..*segment
        };
        self.step(connection.index(), sink, |tcb| {
            tcb.cold.iss = iss;
            tcb.hot.state = State::SynReceived;
            tcb.choose_scale();
            tcb.take_syn(&syn);
            tcb.take_ecn_offer(&syn);
            tcb.hot.snd_una = iss;
            tcb.hot.snd_nxt = iss.add(1);
            tcb.cold.data_start = iss.add(1);
            tcb.on_segment(segment);
        });
        Ok(())
    }
}
