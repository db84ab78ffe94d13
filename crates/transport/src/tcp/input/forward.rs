//! F-RTO (RFC 5682): whether a time-out was spurious, told without time stamps by what the peer
//! acknowledges next. With time stamps, Eifel detection knows already by the first acknowledgment.

use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::tcp::Tcb;
use crate::tcp::flight::{Delivered, Sent, mark};
use crate::tcp::hot::flag;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Looks at an acknowledgment after a time-out. Gives whether the time-out was spurious.
    /// `duplicate`: it says nothing new.
    pub(super) fn is_spurious(&mut self, news: &Delivered, duplicate: bool) -> bool {
        if self.hot.has(flag::FORWARD) {
            self.await_retransmission(news, duplicate);
            return false;
        }
        if !self.hot.has(flag::FORWARD_NEW | flag::FORWARD_SENT) {
            return false;
        }
        if news.bytes == 0 && news.acked == 0 {
            // 2.1 step 3a: a duplicate. With SACK (3.1) one that tells nothing decides nothing.
            if duplicate && !self.hot.has(flag::SACK) {
                self.hot.clear(flag::FORWARDING);
                // One of the new segments arrived: a lost one may go, within 3 segments.
                self.cold.flight.duplicates = 1;
            }
            return false;
        }
        self.hot.clear(flag::FORWARDING);
        // 3.1 step 3a: what went out after the time-out arrived first, so there is a hole.
        let beyond = news.newest.is_some_and(|sent| sent.end.after(self.cold.recover));
        // Step 3b: from before the time-out, and sent only once.
        !beyond && news.clean_sent_at.is_some()
    }

    /// Step 2: the acknowledgment of the segment that was sent again.
    fn await_retransmission(&mut self, news: &Delivered, duplicate: bool) {
        if news.acked == 0 {
            // With SACK, duplicates only change the scoreboard (3.1 step 2).
            if duplicate && !self.hot.has(flag::SACK) {
                self.hot.clear(flag::FORWARDING);
            }
            return;
        }
        self.hot.clear(flag::FORWARDING);
        // Of what was sent again at the time-out, and is no longer marked as lost, none may be left.
        let left = |front: &Sent| front.is(mark::RETRANSMITTED) && !front.is(mark::LOST);
        let all = self.cold.flight.sent.front().is_some_and(|front| !left(front));
        if all && self.hot.snd_una.before(self.cold.recover) {
            self.hot.set(flag::FORWARD_NEW);
        }
    }
}
