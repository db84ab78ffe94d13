//! A segment arrives in TIME-WAIT (RFC 9293 3.10.7.4, RFC 1337). SYNs that may open a new connection
//! are told apart before, by the stack.

use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};
use crate::sequence::Seq;
use crate::tcp::Tcb;
use crate::tcp::hot::{Hot, flag};

/// What a segment in TIME-WAIT calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    Nothing,
    /// The peer is told where we are.
    Answer,
    /// The same, and the wait begins anew: our last acknowledgment was lost.
    Again,
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    pub(super) fn on_time_wait(&mut self, segment: &Segment<'_>) {
        self.drop(Reason::TimeWait);
        let recent = recent(self.hot);
        match judge_late(self.hot.rcv_nxt, self.hot.rcv_wnd(), recent, segment) {
            Late::Nothing => {}
            Late::Answer => self.challenge(),
            Late::Again => {
                if let (Some(recent), Some((value, _))) = (recent, segment.timestamps) {
                    if value.wrapping_sub(recent) as i32 > 0 {
                        self.hot.ts_recent = value;
                    }
                }
                self.enter_time_wait();
                self.acknowledge_now();
            }
        }
    }
}

/// The latest time stamp of the peer, if they are in use.
pub(crate) fn recent(hot: &Hot) -> Option<u32> {
    hot.has(flag::TIMESTAMPS).then_some(hot.ts_recent)
}

/// What to do about a segment; `next`: RCV.NXT; `window`: bytes; `recent`: TS.Recent.
pub(crate) fn judge_late(
    next: Seq,
    window: u32,
    recent: Option<u32>,
    segment: &Segment<'_>,
) -> Late {
    // RFC 1337 3 (1): a reset does not end it early.
    if segment.has(bits::RST) {
        return Late::Nothing;
    }
    if segment.has(bits::FIN) && segment.has(bits::ACK) && segment.end() == next {
        return Late::Again;
    }
    // First: what is outside the window, or older than what came last.
    let old = match (recent, segment.timestamps) {
        (Some(recent), Some((value, _))) => (value.wrapping_sub(recent) as i32) < 0,
        _ => false,
    };
    let inside = segment.seq == next || segment.seq.within(next, next.add(window));
    if old || !inside {
        return Late::Answer;
    }
    // Fourth: RFC 5961 4. Fifth: without ACK nothing. Data cannot be: its sender has sent a FIN.
    match () {
        () if segment.has(bits::SYN) => Late::Answer,
        () if !segment.has(bits::ACK) => Late::Nothing,
        () if segment.length() > 0 => Late::Answer,
        () => Late::Nothing,
    }
}

/// Whether a SYN may take the place of a connection (RFC 6191 2, RFC 9293 3.10.7.4 fourth); `next`:
/// RCV.NXT; `recent`: TS.Recent.
pub(crate) fn may_be_replaced(next: Seq, recent: Option<u32>, segment: &Segment<'_>) -> bool {
    if let (Some(recent), Some((value, _))) = (recent, segment.timestamps) {
        let newer = value.wrapping_sub(recent) as i32;
        return newer > 0 || newer == 0 && segment.seq.after(next);
    }
    segment.seq.after(next)
}
