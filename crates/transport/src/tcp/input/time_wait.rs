//! A segment arrives in TIME-WAIT (RFC 9293 3.10.7.4, RFC 1337). SYNs that may open a new connection
//! are told apart before, by the stack.

use crate::fifo::ByteFifo;
use crate::reason::Reason;
use crate::segment::{Segment, bits};
use crate::tcp::Tcb;
use crate::tcp::hot::{Hot, flag};

impl<F: ByteFifo> Tcb<'_, F> {
    pub(super) fn on_time_wait(&mut self, segment: &Segment<'_>) {
        self.drop(Reason::TimeWait);
        // RFC 1337 3 (1): a reset does not end it early.
        if segment.has(bits::RST) {
            return;
        }
        // The peer's FIN again: our last acknowledgment was lost.
        if segment.has(bits::FIN) && segment.end() == self.hot.rcv_nxt {
            self.enter_time_wait();
        }
        if segment.length() > 0 || segment.seq != self.hot.rcv_nxt {
            self.challenge();
        }
    }
}

/// Whether a SYN may take the place of this connection (RFC 6191 2, RFC 9293 3.10.7.4 fourth).
pub(crate) fn may_be_replaced(hot: &Hot, segment: &Segment<'_>) -> bool {
    if let (true, Some((value, _))) = (hot.has(flag::TIMESTAMPS), segment.timestamps) {
        let newer = value.wrapping_sub(hot.ts_recent) as i32;
        return newer > 0 || newer == 0 && segment.seq.after(hot.rcv_nxt);
    }
    segment.seq.after(hot.rcv_nxt)
}
