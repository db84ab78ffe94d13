//! ICMP errors about a connection's segments (RFC 9293 3.9.2.2, RFC 5927, RFC 1191, RFC 8201).

use super::Tcb;
use super::hot::flag;
use super::state::State;
use crate::failure::Failure;
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::sequence::Seq;

/// What an error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The packet did not fit: bytes that do; 0: unknown.
    TooBig(u16),
    /// It will not work. Either kind ends an attempt to connect.
    Hard(Failure),
    /// It does not work now. A socket for datagrams hears of it only if it asks for errors.
    Soft(Failure),
}

impl Trouble {
    /// A failure, hard or soft.
    pub(crate) fn of((failure, is_hard): (Failure, bool)) -> Self {
        if is_hard { Self::Hard(failure) } else { Self::Soft(failure) }
    }
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Whether a handshake goes on that somebody here waits for: whoever has opened the connection, or is to accept what Fast
    /// Open has made.
    fn is_attempt(&self) -> bool {
        match self.hot.state {
            State::SynSent => true,
            State::SynReceived => !self.hot.has(flag::PASSIVE) || self.hot.has(flag::QUEUED),
            _ => false,
        }
    }

    /// `seq`: of the segment that the error quotes.
    pub(crate) fn on_icmp(&mut self, seq: Seq, trouble: Trouble) {
        // RFC 5927 4.1: only about what is in flight, SND.UNA =< SEQ < SND.NXT.
        let in_flight = !seq.before(self.hot.snd_una) && seq.before(self.hot.snd_nxt);
        if !in_flight || self.cold.flight.is_empty() {
            return self.drop(Reason::IcmpUnmatched);
        }
        match trouble {
            Trouble::TooBig(mtu) => self.shrink(mtu),
            // RFC 5461 4.1: nobody waits for the time-out of an attempt that the network says fails. RFC 5927 5.2: what is
            // synchronised goes on whatever it says.
            Trouble::Hard(failure) | Trouble::Soft(failure) if self.is_attempt() => {
                self.give_fast_open_up();
                self.fail(failure);
            }
            // Nobody here knows of it, and the client's SYN comes again.
            Trouble::Hard(_) | Trouble::Soft(_) if self.hot.has(flag::HALF_OPEN) => self.end(),
            Trouble::Hard(failure) | Trouble::Soft(failure) => {
                self.cold.soft_failure = Some(failure);
            }
        }
    }
}
