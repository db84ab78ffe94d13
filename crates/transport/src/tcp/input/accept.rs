//! Whether a segment may be looked at: time stamp, window, RST and SYN (RFC 9293 3.10.7.4 first to
//! fourth, RFC 7323 5.3, RFC 5961 3 and 4).

use crate::failure::Failure;
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};
use crate::tcp::Tcb;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

/// A time stamp older than this says nothing: 24 days (RFC 7323 5.5): ns.
const STALE: u64 = 24 * 86_400 * 1_000_000_000;
/// Between two challenges, or answers to segments without data outside the window, per connection: ms (Linux's
/// `tcp_invalid_ratelimit`).
const PATIENCE: u32 = 500;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// SYNs that belong to the handshake: a repeated one is answered again; one that crosses ours
    /// completes it. Gives whether to go on.
    pub(super) fn settle_syn(&mut self, segment: &mut Segment<'_>) -> bool {
        if !segment.has(bits::SYN) || segment.has(bits::RST) || segment.seq != self.cold.irs {
            return true;
        }
        if !segment.has(bits::ACK) {
            if !self.take_ecn_offer_again(segment) {
                self.drop(Reason::EcnMixed);
                self.reset(Failure::Aborted);
                return false;
            }
            // The answer was lost: once more.
            self.note_timestamp(segment);
            self.hot.set(flag::ACK_NOW);
            if !self.cold.flight.is_empty() {
                // RFC 6298 3: which of both is acknowledged then cannot be told.
                self.cold.flight.resent(self.cold.iss, self.now);
                self.note_again();
            }
            return false;
        }
        // Simultaneous open (RFC 9293 3.5): the SYN was taken before, the rest counts.
        if segment.ack == self.hot.snd_nxt {
            segment.flags = segment.flags & !bits::SYN | bits::WITH_SYN | bits::UNSCALED;
            segment.seq = segment.seq.add(1);
        }
        true
    }

    /// Answers what must not be taken. Gives whether to go on.
    #[inline]
    pub(super) fn is_acceptable(&mut self, segment: &Segment<'_>) -> bool {
        let reset = segment.has(bits::RST);
        if self.hot.has(flag::TIMESTAMPS) && !reset && !self.is_recent(segment) {
            self.drop(Reason::Paws);
            self.answer(segment);
            return false;
        }
        if !self.is_in_window(segment) && !self.is_reset_at_fin(segment) {
            if reset {
                self.drop(Reason::ResetOutOfWindow);
                return false;
            }
            let old = segment.length() > 0 && !segment.end().after(self.hot.rcv_nxt);
            self.drop(if old { Reason::OldData } else { Reason::OutOfWindow });
            // A segment again, whose end is where we are: its acknowledgment may be news, as with a FIN
            // that crossed ours (RFC 9293 3.10.7.4: valid acknowledgments are accepted), and so is its time
            // stamp (as Linux's `tcp_sequence`).
            let again = old && segment.end() == self.hot.rcv_nxt && segment.has(bits::ACK);
            if again && !segment.has(bits::SYN) && self.hot.state.is_synchronized() {
                if !self.on_ack(segment) || self.hot.state == State::Closed {
                    return false;
                }
                self.note_timestamp(segment);
            }
            if old && !segment.data.is_empty() && self.hot.has(flag::SACK) {
                // RFC 2883 4.1
                self.cold.gaps.note_duplicate(segment.seq, segment.end());
            }
            if self.hot.has(flag::ACCURATE) {
                self.greet_again(segment);
            }
            self.answer(segment);
            return false;
        }
        if reset {
            self.on_reset(segment);
            return false;
        }
        if segment.has(bits::SYN) {
            let passive = self.hot.state == State::SynReceived && self.hot.has(flag::PASSIVE);
            if passive && !self.hot.has(flag::FAST_PENDING) {
                // RFC 9293 3.10.7.4, fourth: back to LISTEN. The peer is told, as Linux does.
                self.refuse(segment, Reason::SynChallenged);
                self.end();
                return false;
            }
            // RFC 5961 4
            self.drop(Reason::SynChallenged);
            self.challenge();
            return false;
        }
        true
    }

    /// PAWS. A segment without a time stamp is dropped too (RFC 7323 3.2).
    #[inline]
    fn is_recent(&self, segment: &Segment<'_>) -> bool {
        let Some((value, _)) = segment.timestamps else { return false };
        self.is_newer(value)
    }

    /// Whether a time stamp is no older than TS.Recent, or that says nothing any more.
    #[inline(always)]
    pub(super) fn is_newer(&self, value: u32) -> bool {
        let newer = value.wrapping_sub(self.hot.ts_recent) as i32 >= 0;
        newer || self.now.saturating_sub(self.cold.ts_recent_at) > STALE
    }

    /// First: the four cases of the window.
    #[inline]
    fn is_in_window(&self, segment: &Segment<'_>) -> bool {
        let (next, edge) = (self.hot.rcv_nxt, self.hot.rcv_adv);
        let length = segment.length();
        if next == edge {
            // A closed window: acknowledgments and resets at its edge are taken; data there is
            // dropped later, and answered.
            return segment.seq == next;
        }
        let inside = |seq: crate::sequence::Seq| !seq.before(next) && seq.before(edge);
        if length == 0 {
            return inside(segment.seq) || segment.seq == edge && !segment.has(bits::RST);
        }
        let last = segment.end().sub(1);
        let covers = !segment.seq.after(next) && !last.before(edge);
        inside(segment.seq) || inside(last) || covers
    }

    /// A reset with the number of the FIN ahead of it, from a host that does not count its FIN. Only the peer knows that
    /// number, too; Linux takes such a reset (`tcp_reset_check`).
    fn is_reset_at_fin(&self, segment: &Segment<'_>) -> bool {
        segment.has(bits::RST)
            && segment.seq == self.hot.rcv_nxt.sub(1)
            && matches!(self.hot.state, State::CloseWait | State::Closing | State::LastAck)
    }

    /// Second: a reset is taken at the window's edge only (RFC 5961 3.2).
    fn on_reset(&mut self, segment: &Segment<'_>) {
        if segment.seq != self.hot.rcv_nxt && !self.is_reset_at_fin(segment) {
            self.drop(Reason::ResetChallenged);
            return self.challenge();
        }
        match self.hot.state {
            // Back to LISTEN: nobody knew of it.
            State::SynReceived if self.hot.has(flag::FAST_PENDING) => {
                self.leave_fast_open(true);
                self.fail(Failure::Reset);
            }
            State::SynReceived if self.hot.has(flag::PASSIVE) => self.end(),
            State::SynReceived => self.fail(Failure::Refused),
            // As Linux: to write is what fails now, and reading has ended already.
            State::CloseWait => self.fail(Failure::BrokenPipe),
            State::Closing | State::LastAck | State::TimeWait => self.end(),
            _ => self.fail(Failure::Reset),
        }
    }

    /// Tells the peer where we are, unless that could go on for ever: data and FIN are no answers.
    fn answer(&mut self, segment: &Segment<'_>) {
        let harmless = segment.length() > 0 && !segment.has(bits::SYN);
        if !harmless && !self.has_patience() {
            return self.drop(Reason::RateLimit);
        }
        self.acknowledge_now();
    }

    /// Whether the connection has not answered for a while.
    fn has_patience(&mut self) -> bool {
        let now = (self.now / 1_000_000) as u32;
        let last = self.cold.challenged_at;
        let has = last == 0 || now.wrapping_sub(last) >= PATIENCE;
        if has {
            self.cold.challenged_at = now.max(1);
        }
        has
    }

    /// A challenge acknowledgment, at most so many in a second (RFC 5961 7), and two a connection.
    pub(crate) fn challenge(&mut self) {
        let peer = self.cold.ends().remote.ip();
        if self.has_patience() && self.shared.may_challenge(peer, self.now) {
            self.shared.counters.challenges += 1;
            self.acknowledge_now();
        } else {
            self.drop(Reason::RateLimit);
        }
    }
}
