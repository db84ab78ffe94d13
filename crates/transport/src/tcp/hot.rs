//! What every segment touches: two cache lines.

use super::state::State;
use crate::sequence::Seq;

pub(crate) use crate::options::NEVER;

/// Facts about a connection, one bit each.
pub(crate) mod flag {
    /// Time stamps are in use.
    pub(crate) const TIMESTAMPS: u64 = 1;
    /// Selective acknowledgment is in use.
    pub(crate) const SACK: u64 = 1 << 1;
    /// An acknowledgment is due at the next flush.
    pub(crate) const ACK_NOW: u64 = 1 << 2;
    /// The application sends no more: a FIN follows the data.
    pub(crate) const FIN_QUEUED: u64 = 1 << 3;
    /// The FIN was sent.
    pub(crate) const FIN_SENT: u64 = 1 << 4;
    /// On the list of connections to flush.
    pub(crate) const DIRTY: u64 = 1 << 5;
    /// The application has given up its handle, or never had it.
    pub(crate) const RELEASED: u64 = 1 << 6;
    /// `Readable` is in the queue of events.
    pub(crate) const TOLD_READABLE: u64 = 1 << 7;
    /// `Writable` is in the queue of events.
    pub(crate) const TOLD_WRITABLE: u64 = 1 << 8;
    /// A write was cut short.
    pub(crate) const WANTS_ROOM: u64 = 1 << 9;
    /// Loss recovery goes on.
    pub(crate) const RECOVERY: u64 = 1 << 10;
    /// Recovery after a time-out goes on.
    pub(crate) const LOSS: u64 = 1 << 11;
    /// It came in through a listener.
    pub(crate) const PASSIVE: u64 = 1 << 12;
    /// In the table of connections.
    pub(crate) const IN_TABLE: u64 = 1 << 13;
    /// The peer's FIN was received.
    pub(crate) const PEER_CLOSED: u64 = 1 << 14;
    /// Counted among its listener's half-open ones.
    pub(crate) const HALF_OPEN: u64 = 1 << 15;
    /// Congestion marks are in use.
    pub(crate) const ECN: u64 = 1 << 16;
    /// The peer is told of congestion until it answers (RFC 3168 6.1.3).
    pub(crate) const ECHO: u64 = 1 << 17;
    /// The next segment of new data says that the window was reduced.
    pub(crate) const REDUCED: u64 = 1 << 18;
    /// A tail loss probe is out.
    pub(crate) const PROBING: u64 = 1 << 19;
    /// The congestion window is used to such an extent that it may grow.
    pub(crate) const WINDOW_LIMITED: u64 = 1 << 20;
    /// Congestion control hears of every acknowledgment.
    pub(crate) const HEARS_ALL: u64 = 1 << 21;
    /// Nagle's algorithm is off.
    pub(crate) const NO_DELAY: u64 = 1 << 22;
    /// Only full segments are sent.
    pub(crate) const CORK: u64 = 1 << 23;
    /// Acknowledgments are never delayed.
    pub(crate) const QUICK_ACK: u64 = 1 << 24;
    /// It waits in its listener's queue.
    pub(crate) const QUEUED: u64 = 1 << 25;
    /// Segments are spread over time.
    pub(crate) const PACED: u64 = 1 << 26;
    /// Receiving was shut down: reading ends when the FIFO is empty. What arrives once our direction is shut
    /// down too is dropped, with a reset.
    pub(crate) const DEAF: u64 = 1 << 27;
    /// The retransmission timer stands for something else than a time-out: a tail loss probe.
    pub(crate) const TIMER_IS_PROBE: u64 = 1 << 28;
    /// The same, a reordering window.
    pub(crate) const TIMER_IS_REORDER: u64 = 1 << 29;
    /// The same, a closed window.
    pub(crate) const TIMER_IS_PERSIST: u64 = 1 << 30;
    /// A reset is due at the next flush.
    pub(crate) const RESET_DUE: u64 = 1 << 31;
    /// F-RTO (RFC 5682): the acknowledgment of what a time-out sent again is awaited (step 2).
    pub(crate) const FORWARD: u64 = 1 << 32;
    /// F-RTO: it came, so new segments go out, and the next acknowledgment decides (step 3).
    pub(crate) const FORWARD_NEW: u64 = 1 << 33;
    /// F-RTO: those new segments were sent.
    pub(crate) const FORWARD_SENT: u64 = 1 << 34;
    /// Any of F-RTO's.
    pub(crate) const FORWARDING: u64 = FORWARD | FORWARD_NEW | FORWARD_SENT;
    /// Fast Open: the server has taken data before the handshake was over.
    pub(crate) const FAST_PENDING: u64 = 1 << 35;
    /// Fast Open: the answer to the SYN carries a cookie.
    pub(crate) const FAST_COOKIE: u64 = 1 << 36;
    /// Fast Open: our SYN carried the option.
    pub(crate) const FAST_TRIED: u64 = 1 << 37;
    /// Fast Open: what the SYN carried was taken.
    pub(crate) const FAST_TAKEN: u64 = 1 << 38;
    /// Congestion control is in slow start.
    pub(crate) const SLOW_START: u64 = 1 << 44;
    /// The peer's FIN came ahead of data.
    pub(crate) const FIN_AHEAD: u64 = 1 << 42;
    /// Something was sent again in this recovery.
    pub(crate) const SENT_AGAIN: u64 = 1 << 43;
    /// The application has read while the window was small.
    pub(crate) const HAS_READ: u64 = 1 << 49;
    /// Data waits for the pacing rate.
    pub(crate) const HELD_BACK: u64 = 1 << 48;
    /// That wait has ended just now, maybe late.
    pub(crate) const LATE: u64 = 1 << 47;
    /// Congestion marks are in use, with accurate feedback (RFC 9768).
    pub(crate) const ACCURATE: u64 = 1 << 39;
    /// Nothing of ours may be marked, or no more.
    pub(crate) const UNMARKABLE: u64 = 1 << 40;
    /// With accurate feedback: what comes back is no sign of congestion.
    pub(crate) const MARKS_MEAN_NOTHING: u64 = 1 << 41;
    /// The peer has acknowledged our FIN, and so all that was written.
    pub(crate) const FIN_ACKED: u64 = 1 << 50;
    /// Routers may fragment what is sent.
    pub(crate) const FRAGMENTS: u64 = 1 << 51;
    /// The path takes less than the smallest packets that are made, which is one reason for `FRAGMENTS`.
    pub(crate) const NARROW: u64 = 1 << 45;
    /// The handshake's last acknowledgment came; the connection waits for data (`TCP_DEFER_ACCEPT`).
    pub(crate) const DEFERRED: u64 = 1 << 52;
    /// It came from another stack, which chose what its time stamps are ahead of the clock.
    pub(crate) const MOVED: u64 = 1 << 56;
    /// The congestion window was full in this round trip.
    pub(crate) const WINDOW_FULL: u64 = 1 << 60;
    /// More is to come with the next write (`MSG_MORE`): as [`CORK`] until then.
    pub(crate) const MORE: u64 = 1 << 53;
    /// What is held back with nothing in flight leaves when the timer that stands for a closed window fires.
    pub(crate) const CORKED: u64 = 1 << 54;
    /// The application has not been told of the failure by a call yet (`sk_err`).
    pub(crate) const ERROR_DUE: u64 = 1 << 55;
    /// Closed by the application, with something left to send or to wait for: counted.
    pub(crate) const ORPHAN: u64 = 1 << 61;
    /// The peer has called data urgent that was not read yet: reading stops there.
    pub(crate) const URGENT: u64 = 1 << 58;
    /// Both sides talk in turn: what is sent answers what came just before, and carries its acknowledgment.
    pub(crate) const CONVERSES: u64 = 1 << 46;
    /// It takes another path than the network.
    pub(crate) const ASIDE: u64 = 1 << 57;
    /// Any kind.
    pub(crate) const TIMER_KIND: u64 = TIMER_IS_PROBE | TIMER_IS_REORDER | TIMER_IS_PERSIST;
}

/// The hot part of a connection.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct Hot {
    /// SND.UNA.
    pub(crate) snd_una: Seq,
    /// SND.NXT; never goes back, retransmissions go by the queue of segments in flight.
    pub(crate) snd_nxt: Seq,
    /// SND.WND: bytes.
    pub(crate) snd_wnd: u32,
    /// SND.WL1.
    pub(crate) snd_wl1: Seq,
    /// SND.WL2.
    pub(crate) snd_wl2: Seq,
    /// RCV.NXT.
    pub(crate) rcv_nxt: Seq,
    /// The right edge of the window that the peer was told; never goes back.
    pub(crate) rcv_adv: Seq,
    /// RCV.NXT as the peer was told last.
    pub(crate) acked: Seq,
    /// TS.Recent.
    pub(crate) ts_recent: u32,
    /// What our time stamps are ahead of the clock.
    pub(crate) ts_offset: u32,
    /// Congestion window, or what recovery lets: bytes.
    pub(crate) cwnd: u32,
    /// Which connection this place holds, counted.
    pub(crate) generation: u32,
    /// Bits of [`flag`].
    pub(crate) flags: u64,
    /// Bytes of data of a full segment.
    pub(crate) mss: u16,
    /// Bytes of data of the largest segment received.
    pub(crate) rcv_mss: u16,
    /// State.
    pub(crate) state: State,
    /// Shift of windows that the peer tells.
    pub(crate) snd_scale: u8,
    /// Shift of windows that we tell.
    pub(crate) rcv_scale: u8,
    /// How often the time-out was doubled since a round-trip time was measured (RFC 6298 5.5, 5.7).
    pub(crate) backoff: u8,
    /// Retransmission, probe, reordering or closed-window timer: ns.
    pub(crate) retransmit_at: u64,
    /// Delayed acknowledgment: ns.
    pub(crate) ack_at: u64,
    /// Keepalive, FIN-WAIT-2, TIME-WAIT: ns.
    pub(crate) life_at: u64,
    /// What was sent at the pacing rate lasts until then: ns. A deadline while data is held back.
    pub(crate) pace_at: u64,
    /// When the connection's timer fires: ns.
    pub(crate) armed_at: u64,
    /// When the last segment came: ns.
    pub(crate) received_at: u64,
    /// Smoothed round-trip time: us; 0: none yet.
    pub(crate) srtt: u32,
    /// Its variation: us.
    pub(crate) rttvar: u32,
    /// Retransmission time-out: us, without back-off.
    pub(crate) rto: u32,
    /// Segments to be acknowledged at once before delays begin.
    pub(crate) quick: u8,
    /// Keepalive or window probes without an answer.
    pub(crate) probes: u8,
    /// Time to live or hop limit of what is sent.
    pub(crate) ttl: u8,
    /// DSCP of what is sent, in the upper six bits.
    pub(crate) service: u8,
}

impl Hot {
    /// The state as the application left it: with the call that ends its direction, whatever is still to be sent before
    /// the FIN (RFC 9293 3.10.4: 'in any case, enter FIN-WAIT-1 state').
    pub(crate) fn told_state(&self) -> State {
        match self.state {
            State::Established if self.has(flag::FIN_QUEUED) => State::FinWait1,
            State::CloseWait if self.has(flag::FIN_QUEUED) => State::LastAck,
            state => state,
        }
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, flag: u64) {
        self.flags |= flag;
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, flag: u64) {
        self.flags &= !flag;
    }

    /// Acknowledgments wait for answers that carry them from now on.
    #[inline(always)]
    pub(crate) fn converse(&mut self) {
        self.quick = 0;
        self.set(flag::CONVERSES);
    }

    /// Bytes that the peer may still send.
    #[inline(always)]
    pub(crate) fn rcv_wnd(&self) -> u32 {
        self.rcv_adv.since(self.rcv_nxt)
    }

    /// The earliest of the deadlines: ns.
    #[inline(always)]
    pub(crate) fn deadline(&self) -> u64 {
        self.ack_at.min(self.deadline_but_ack())
    }

    /// The same without the delayed acknowledgment's.
    #[inline(always)]
    pub(crate) fn deadline_but_ack(&self) -> u64 {
        let held = if self.has(flag::HELD_BACK) { self.pace_at } else { NEVER };
        self.retransmit_at.min(self.life_at).min(held)
    }

    /// An unused place.
    pub(crate) fn vacant(generation: u32) -> Self {
        let zero = Seq(0);
        Self {
            snd_una: zero,
            snd_nxt: zero,
            snd_wnd: 0,
            snd_wl1: zero,
            snd_wl2: zero,
            rcv_nxt: zero,
            rcv_adv: zero,
            acked: zero,
            ts_recent: 0,
            ts_offset: 0,
            cwnd: 0,
            flags: 0,
            mss: 536,
            rcv_mss: 536,
            state: State::Closed,
            snd_scale: 0,
            rcv_scale: 0,
            backoff: 0,
            generation,
            quick: 0,
            probes: 0,
            ttl: 64,
            service: 0,
            retransmit_at: NEVER,
            ack_at: NEVER,
            life_at: NEVER,
            pace_at: 0,
            armed_at: NEVER,
            received_at: 0,
            srtt: 0,
            rttvar: 0,
            rto: 1_000_000,
        }
    }
}

const _: () = assert!(size_of::<Hot>() == 128, "two cache lines");
