//! Finding losses, entering and leaving recovery, and taking a mistake back.

use crate::congestion::Congestion;
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::segment::Segment;
use crate::sequence::Seq;
use crate::tcp::Tcb;
use crate::tcp::flight::Delivered;
use crate::tcp::hot::flag;
use crate::tcp::prr::Reduction;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Selective acknowledgments. A first block that is old or lies within the second tells of a
    /// duplicate (RFC 2883 4).
    pub(super) fn take_sack(&mut self, segment: &Segment<'_>, news: &mut Delivered) {
        let (una, next) = (self.hot.snd_una.max(segment.ack), self.hot.snd_nxt);
        let blocks = segment.sack_blocks();
        let blocks = blocks.get(..usize::from(segment.sack_count)).unwrap_or(&[]);
        for (place, &(start, end)) in blocks.iter().enumerate() {
            if !start.before(end) || end.after(next) {
                continue;
            }
            let inside = blocks
                .get(1)
                .is_some_and(|&(first, last)| !start.before(first) && !end.after(last));
            if place == 0 && (start.before(segment.ack) || inside) {
                self.note_duplicate(start, end, news);
                continue;
            }
            // What SND.UNA waits for was not received.
            if start.after(una) {
                self.cold.flight.sack(start, end, news);
            }
        }
    }

    /// The peer received `start..end` once more.
    fn note_duplicate(&mut self, start: Seq, end: Seq, news: &mut Delivered) {
        let una = self.hot.snd_una;
        let straddles = start.before(una) && end.after(una);
        if straddles || start.before(una) && una.since(start) > self.cold.max_window {
            // No window was ever that large, or nothing that was received begins there.
            return;
        }
        let probe = self.cold.flight.probe;
        if self.hot.has(flag::PROBING) && probe.again && end == probe.end {
            // RFC 8985 7.4.2: the probe and what it repeated.
            news.probe_duplicate = true;
            return;
        }
        news.duplicate = true;
        let rare = self.cold.rare.note();
        rare.duplicates = rare.duplicates.wrapping_add(1);
        // From before this recovery, or sent after it, it says nothing of what was sent again in it.
        let over = !self.hot.has(flag::RECOVERY | flag::LOSS) && end.after(self.cold.recover);
        if end.after(self.cold.flight.undo_from) && !over {
            let again = end.since(start);
            self.cold.undo_left = self.cold.undo_left.saturating_sub(again);
        }
    }

    /// `plain`: nothing but the acknowledgment is in the segment, and it is one as before.
    pub(super) fn detect_loss(&mut self, news: &mut Delivered, plain: bool) {
        let una = self.hot.snd_una;
        if self.hot.has(flag::RECOVERY | flag::LOSS) {
            self.maybe_undo(news, plain);
            if !una.before(self.cold.recover) && self.hot.has(flag::RECOVERY | flag::LOSS) {
                self.leave_recovery();
            }
        } else if news.duplicate && self.cold.flight.may_undo && self.cold.undo_left == 0 {
            self.undo_late();
        }
        if self.hot.has(flag::PROBING) && (news.acked > 0 || news.probe_duplicate || plain) {
            self.settle_probe(news, plain);
        }
        let recovering = self.hot.has(flag::RECOVERY | flag::LOSS);
        let lost = if self.hot.has(flag::SACK) {
            let next = self.hot.snd_nxt;
            self.cold.flight.rack_update(news, una, next);
            self.detect_by_time(recovering)
        } else {
            let before = self.cold.flight.duplicates;
            let lost = self.count_duplicates(news, plain, recovering);
            let mss = u32::from(self.hot.mss);
            news.estimate = if news.acked > 0 {
                // It fills a hole of a segment at least; the duplicates told of the rest.
                let told = before.saturating_mul(mss);
                news.acked.saturating_sub(told).max(news.acked.min(mss))
            } else {
                self.cold.flight.duplicates.saturating_sub(before) * mss
            };
            lost
        };
        news.lost = lost;
        if lost > 0 && !recovering {
            let delivered = if self.hot.has(flag::SACK) { news.bytes } else { news.estimate };
            self.enter_recovery(lost, delivered);
        }
    }

    /// RACK; also when its timer has run out.
    pub(crate) fn detect_by_time(&mut self, recovering: bool) -> u32 {
        let srtt = self.srtt_ns();
        let (lost, wake) = self.cold.flight.detect_loss(recovering, srtt, self.now);
        let lost = if lost > 0 { self.excuse_path_probe(lost, recovering) } else { 0 };
        match wake {
            Some(at) => {
                self.hot.clear(flag::TIMER_KIND);
                self.hot.set(flag::TIMER_IS_REORDER);
                self.hot.retransmit_at = at;
            }
            None if self.hot.has(flag::TIMER_IS_REORDER) => self.resume_timer(),
            None => {}
        }
        lost
    }

    /// A peer without SACK (RFC 6582).
    fn count_duplicates(&mut self, news: &Delivered, plain: bool, recovering: bool) -> u32 {
        let mss = u32::from(self.hot.mss.max(1));
        if news.acked > 0 {
            let flight = &mut self.cold.flight;
            flight.duplicates = flight.duplicates.saturating_sub(news.acked.div_ceil(mss) - 1);
            if recovering && self.hot.has(flag::RECOVERY) {
                // A partial acknowledgment: the next one is lost too.
                return flight.lose_first(mss);
            }
            flight.duplicates = 0;
            return 0;
        }
        // Segments, which may be small ones: what is one record of several are full ones.
        let records = self.cold.flight.sent.len() as u32;
        let outstanding = records.max(self.hot.snd_nxt.since(self.hot.snd_una) / mss);
        // After a time-out they tell of what was taken for lost, which is not counted anyway.
        let counts = plain && !self.hot.has(flag::LOSS);
        if counts && !self.cold.flight.is_empty() && self.cold.flight.duplicates < outstanding {
            self.cold.flight.duplicates += 1;
        }
        // RFC 6582 3.2 step 2: not for what was in flight at the last recovery. One of long ago says nothing, however often
        // sequence numbers have gone round since.
        let recover = self.cold.recover;
        let fresh = recover == self.cold.iss || !recover.within(self.hot.snd_una, self.hot.snd_nxt);
        if self.cold.flight.duplicates >= 3 && !recovering && fresh {
            return self.cold.flight.lose_first(mss);
        }
        0
    }

    /// `lost` bytes were found lost; `delivered`: by the acknowledgment that told so.
    pub(crate) fn enter_recovery(&mut self, lost: u32, delivered: u32) {
        let in_flight = self.hot.snd_nxt.since(self.hot.snd_una);
        // RFC 9937 6.1: what was delivered before is not to be delivered in the recovery.
        let flight = &self.cold.flight;
        let told = flight.sacked.saturating_add(flight.inferred(self.hot.mss));
        let recovery = in_flight.saturating_sub(told).saturating_add(delivered);
        self.cold.recover = self.hot.snd_nxt;
        self.hot.clear(flag::PROBING);
        self.prepare_undo();
        self.cold.flight.reduction = Reduction::begin(recovery);
        self.hot.set(flag::RECOVERY);
        self.hot.set(flag::REDUCED);
        self.begin_congestion();
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.on_loss(&Congestion { now: self.now, in_flight, lost });
            let rules = congestion.rules_recovery();
            self.follow_congestion();
            if !rules {
                // Whatever PRR says later, the first retransmission leaves now (RFC 9937 6.2).
                self.hot.cwnd = self.pipe().saturating_add(self.hot.mss.into());
            }
        }
        if !self.hot.has(flag::TIMER_IS_REORDER) {
            self.restart_timer();
        }
    }

    /// A recovery begins that may turn out to be a mistake. What an earlier one sent again may still be on
    /// the way: its time stamps and duplicates say nothing of this one.
    pub(crate) fn prepare_undo(&mut self) {
        let again = self.cold.flight.sent_again();
        if again == 0 {
            self.hot.clear(flag::SENT_AGAIN);
        }
        self.cold.undo_left = again;
        self.cold.flight.undo_from = self.hot.snd_una;
    }

    fn leave_recovery(&mut self) {
        self.hot.clear(flag::RECOVERY | flag::LOSS | flag::FORWARDING);
        self.cold.flight.duplicates = 0;
        self.cold.flight.rack.recovered();
        // Duplicates of what was sent again may still come.
        self.cold.flight.may_undo = self.cold.undo_left > 0;
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.on_recovered(self.now);
            self.follow_congestion();
        }
    }

    /// Whether the peer echoes a time stamp from before the first retransmission.
    pub(super) fn echo_is_older(&self, segment: &Segment<'_>) -> bool {
        match segment.timestamps {
            Some((_, echo)) if self.hot.has(flag::TIMESTAMPS) && self.hot.has(flag::SENT_AGAIN) => {
                (echo.wrapping_sub(self.cold.eifel) as i32) < 0
            }
            _ => false,
        }
    }

    /// Eifel (RFC 3522 3.2): the original arrived, so it was not lost; or every retransmission was
    /// told of as a duplicate; or F-RTO says so.
    fn maybe_undo(&mut self, news: &Delivered, plain: bool) {
        let late = news.acked > 0 && news.echo_is_older;
        let all_twice = news.duplicate && self.cold.undo_left == 0;
        if self.is_spurious(news, plain) || late || all_twice {
            self.cold.flight.forgive();
            if self.hot.has(flag::RECOVERY) {
                self.cold.flight.rack.note_reordering();
            }
            self.cold.recover = self.hot.snd_una;
            if let Some(congestion) = &mut self.cold.congestion {
                congestion.undo(self.now);
            }
            self.leave_recovery();
        }
    }

    /// The last recovery is over, and the peer has now told of all its retransmissions as duplicates, since each arrives behind
    /// what it repeats. The window is what is left to restore, as in Linux (`tcp_try_undo_dsack`).
    #[cold]
    fn undo_late(&mut self) {
        self.cold.flight.may_undo = false;
        if let Some(congestion) = &mut self.cold.congestion {
            if !congestion.rules_recovery() {
                congestion.undo(self.now);
                self.follow_congestion();
            }
        }
    }
}
