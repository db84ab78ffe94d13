//! The acknowledgment field (RFC 9293 3.10.7.4 fifth).

use crate::congestion::{Ack, RateSample};
use crate::fifo::ByteFifo;
use crate::isn::timestamp;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};
use crate::sequence::Seq;
use crate::tcp::flight::{Delivered, mark};
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;
use crate::tcp::{Tcb, rtt};

/// Where more is to be done about an acknowledgment than to take it.
pub(super) const NOT_PLAIN: u64 = flag::RECOVERY
    | flag::LOSS
    | flag::PROBING
    | flag::FORWARDING
    | flag::ACCURATE
    | flag::WINDOW_LIMITED
    | flag::HEARS_ALL;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Gives whether the rest of the segment is to be looked at.
    #[inline]
    pub(super) fn on_ack(&mut self, segment: &Segment<'_>) -> bool {
        let (ack, una) = (segment.ack, self.hot.snd_una);
        if ack.after(self.hot.snd_nxt) {
            self.drop(Reason::BadAck);
            self.challenge();
            return false;
        }
        if ack.before(una) {
            // RFC 5961 5.2: older than the largest window there ever was.
            if una.since(ack) > self.cold.max_window {
                self.drop(Reason::BadAck);
                self.challenge();
                return false;
            }
            if segment.sack_count > 0 && self.hot.has(flag::SACK) && !self.cold.flight.is_empty() {
                self.take_late_blocks(segment);
            }
            return true;
        }
        self.note_life();
        let window_moved = self.update_window(segment);
        if ack == una && self.cold.flight.is_empty() && segment.sack_count == 0 {
            if self.hot.has(flag::PROBING) && segment.length() == 0 && !window_moved {
                // RFC 8985 7.4.2, case 2: both the probe and what it repeated arrived.
                self.settle_probe(&Delivered::default(), true);
            }
            return true;
        }
        if !self.hot.has(NOT_PLAIN) && segment.sack_count == 0 {
            let mut news = Delivered::new(self.now, una, false);
            // A lone segment is acknowledged, which is all there is to it.
            if self.cold.flight.acknowledge_lone(ack, self.now, &mut news) {
                self.advance(ack);
                if self.cold.search.is_some() {
                    self.settle_path_probe();
                }
                self.measure(segment, &news);
                if segment.flags & (bits::ECE | bits::SYN) == bits::ECE && self.hot.has(flag::ECN) {
                    self.on_echo(65_536);
                }
                self.progress(&news);
                return true;
            }
        }
        self.on_ack_of_many(segment, window_moved)
    }

    /// The same, when more than one segment is in flight, or there is more to do about it.
    fn on_ack_of_many(&mut self, segment: &Segment<'_>, window_moved: bool) -> bool {
        let (ack, una) = (segment.ack, self.hot.snd_una);
        let (mut news, prior) = self.open_flight(segment);
        if segment.sack_count > 0 && self.hot.has(flag::SACK) {
            self.take_sack(segment, &mut news);
        }
        if ack != una {
            self.cold.flight.acknowledge(ack, &mut news);
            self.advance(ack);
            if self.cold.search.is_some() {
                self.settle_path_probe();
            }
        }
        self.measure(segment, &news);
        let plain = ack == una && segment.length() == 0 && !window_moved;
        self.detect_loss(&mut news, plain);
        if self.hot.has(flag::ACCURATE) {
            self.take_feedback(segment, &news);
        } else if segment.flags & (bits::ECE | bits::SYN) == bits::ECE && self.hot.has(flag::ECN) {
            self.on_echo(65_536);
        }
        self.inform(&news, prior);
        if ack != una {
            self.progress(&news);
        }
        true
    }

    /// What a segment delivers, which is nothing yet, and the bytes in flight before it.
    #[inline(always)]
    fn open_flight(&mut self, segment: &Segment<'_>) -> (Delivered, u32) {
        self.cold.flight.open(self.flights);
        let older = self.echo_is_older(segment);
        (Delivered::new(self.now, self.cold.flight.rack.highest(), older), self.pipe())
    }

    /// An acknowledgment that a later one has overtaken: its SACK blocks may be news all the same (as in Linux).
    #[cold]
    fn take_late_blocks(&mut self, segment: &Segment<'_>) {
        let (mut news, prior) = self.open_flight(segment);
        self.take_sack(segment, &mut news);
        self.detect_loss(&mut news, false);
        self.inform(&news, prior);
    }

    /// SND.WND by SND.WL1 and SND.WL2. Gives whether it changed.
    #[inline]
    pub(super) fn update_window(&mut self, segment: &Segment<'_>) -> bool {
        let hot = &mut *self.hot;
        let newer = hot.snd_wl1.before(segment.seq)
            || (hot.snd_wl1 == segment.seq && !hot.snd_wl2.after(segment.ack));
        if !newer {
            return false;
        }
        let before = hot.snd_wnd;
        self.take_window(segment, self.scale_of(segment));
        self.hot.snd_wnd != before
    }

    /// The shift of a segment's window: none in one with a SYN (RFC 7323 2.2).
    #[inline]
    pub(crate) fn scale_of(&self, segment: &Segment<'_>) -> u8 {
        if segment.has(bits::SYN | bits::UNSCALED) { 0 } else { self.hot.snd_scale }
    }

    pub(crate) fn take_window(&mut self, segment: &Segment<'_>, scale: u8) {
        let hot = &mut *self.hot;
        hot.snd_wnd = u32::from(segment.window) << scale;
        hot.snd_wl1 = segment.seq;
        hot.snd_wl2 = segment.ack;
        if hot.snd_wnd > self.cold.max_window {
            self.cold.max_window = hot.snd_wnd;
        }
        // The window opened: probing it is over.
        if hot.snd_wnd > 0 && hot.has(flag::TIMER_IS_PERSIST) && !hot.has(flag::CORKED) {
            hot.clear(flag::TIMER_KIND);
            hot.retransmit_at = NEVER;
            hot.backoff = 0;
        }
    }

    /// SND.UNA moves to `ack`.
    #[inline]
    pub(super) fn advance(&mut self, ack: Seq) {
        self.cold.counts.note_acked(self.hot.snd_una, ack);
        self.hot.snd_una = ack;
        // What was sent tells how much of it is data, not the FIFO, which somebody else may write.
        let fin = self.hot.has(flag::FIN_SENT) && ack == self.hot.snd_nxt;
        let end = if fin { ack.sub(1) } else { ack };
        if !self.cold.data_start.before(end) {
            return;
        }
        let count = end.since(self.cold.data_start) as usize;
        self.cold.data_start = end;
        let Some(pair) = &mut self.cold.fifos else { return };
        pair.transmit.consume(count);
        if self.hot.cwnd as usize > pair.transmit.capacity() / 2 {
            self.grow_transmit();
        }
        self.offer_room();
    }

    /// Round-trip time: of a segment that was sent once, unless it may have waited for one that was sent
    /// again (RFC 6298 3); else by the time stamp, unless that is ambiguous too.
    #[inline]
    fn measure(&mut self, segment: &Segment<'_>, news: &Delivered) {
        let minimum = (self.cold.options.minimum_rto / 1000) as u32;
        if let (Some(sent_at), false) = (news.clean_sent_at, news.ambiguous) {
            let taken = self.now.saturating_sub(sent_at) / 1000;
            rtt::measure(self.hot, taken.min(u64::from(u32::MAX)) as u32, minimum);
        } else if let (true, true, Some((_, echo))) =
            (news.acked > 0, self.hot.has(flag::TIMESTAMPS), segment.timestamps)
        {
            let taken = timestamp(self.now, self.hot.ts_offset).wrapping_sub(echo);
            if taken < 60_000 && !self.is_old_echo(news) {
                rtt::measure(self.hot, taken.max(1) * 1000, minimum);
            }
        }
    }

    /// Whether what was sent again is acknowledged with an echo from before, which may be as old as an outage:
    /// the first copy arrived, its acknowledgment was lost, and the peer echoes the first copy's time stamp still
    /// (RFC 7323 5.3 R2). The peer tells of the duplicate then, if it can (RFC 2883); without, the first copy
    /// took that long.
    fn is_old_echo(&self, news: &Delivered) -> bool {
        let tells = self.hot.has(flag::SACK) && news.marks & mark::SYN == 0;
        news.echo_is_older && (news.duplicate || news.probe_duplicate || !tells)
    }

    /// Tells congestion control, and sets the window.
    fn inform(&mut self, news: &Delivered, prior: u32) {
        if news.bytes == 0 && news.acked == 0 {
            return self.reduce_by_duplicate(news.estimate);
        }
        let sample = self.cold.flight.rate.sample(news.bytes, news.newest.as_ref(), self.now);
        self.note_rate(&sample);
        let recovering = self.hot.has(flag::RECOVERY | flag::LOSS);
        let limited = self.is_window_limited();
        if !limited && !recovering && !self.hot.has(flag::HEARS_ALL) {
            return;
        }
        let pipe = self.pipe();
        let srtt = self.srtt_ns();
        let delivered = if self.hot.has(flag::SACK) { news.bytes } else { news.estimate };
        self.begin_congestion();
        let Some(congestion) = &mut self.cold.congestion else { return };
        congestion.on_ack(&Ack {
            now: self.now,
            // RFC 5681 3.1: what was told of before by SACK, or by a duplicate, lets nothing grow.
            acked: if news.acked > 0 { delivered } else { 0 },
            delivered: news.bytes,
            total_delivered: self.cold.flight.rate.delivered,
            prior_in_flight: prior,
            in_flight: pipe,
            window_limited: limited,
            in_recovery: self.hot.has(flag::RECOVERY),
            srtt,
            min_rtt: self.cold.flight.rack.min_rtt,
            sample,
        });
        if !self.hot.has(flag::RECOVERY) || congestion.rules_recovery() {
            return self.follow_congestion();
        }
        if delivered > 0 {
            // RFC 9937 6.2: recovery makes progress.
            let safe = news.acked > 0 && news.lost == 0;
            self.reduce_in_proportion(delivered, pipe, safe);
        }
        if !self.hot.has(flag::SACK) && news.acked > 0 {
            // RFC 6582 3.2 step 3: a partial acknowledgment lets the next gap out.
            self.hot.cwnd = self.hot.cwnd.max(pipe.saturating_add(self.hot.mss.into()));
        }
    }

    /// The window that lets out what may be sent in return for `delivered` bytes.
    fn reduce_in_proportion(&mut self, delivered: u32, pipe: u32, safe: bool) {
        let Some(congestion) = &self.cold.congestion else { return };
        let (threshold, mss) = (congestion.threshold(), u32::from(self.hot.mss));
        let reduction = &mut self.cold.flight.reduction;
        self.hot.cwnd = reduction.window(delivered, pipe, threshold, mss, safe);
    }

    /// The delivery rate for `info`: one that the application limited counts only when it is higher.
    fn note_rate(&mut self, sample: &RateSample) {
        if sample.interval == 0 || sample.delivered == 0 {
            return;
        }
        let rate = sample.delivered.saturating_mul(1_000_000_000) / sample.interval;
        if !sample.app_limited || rate >= self.cold.rare.rate {
            let rare = self.cold.rare.note();
            (rare.rate, rare.rate_limited) = (rate, sample.app_limited);
        }
    }

    /// A duplicate from a peer without SACK: another segment has arrived there.
    fn reduce_by_duplicate(&mut self, delivered: u32) {
        let Some(congestion) = &self.cold.congestion else { return };
        if delivered > 0 && self.hot.has(flag::RECOVERY) && !congestion.rules_recovery() {
            let pipe = self.pipe();
            self.reduce_in_proportion(delivered, pipe, false);
        }
    }

    /// The peer makes progress: what is counted towards giving it up begins anew.
    #[inline(always)]
    pub(super) fn note_progress(&mut self) {
        self.cold.tries = 0;
        self.cold.progress_at = self.now;
        self.cold.soft_failure = None;
    }

    /// Something new was acknowledged: timers, and the states that wait for our FIN's.
    fn progress(&mut self, news: &Delivered) {
        self.note_progress();
        // RFC 8985 6.2 step 5: the window of reordering that this acknowledgment opened goes before.
        if !self.hot.has(flag::TIMER_IS_REORDER) {
            self.restart_timer();
        }
        if news.marks & mark::SYN != 0 {
            // Only the SYN was sent again.
            self.hot.clear(flag::SENT_AGAIN);
        }
        if news.marks & mark::FIN == 0 {
            return;
        }
        self.hot.set(flag::FIN_ACKED);
        match self.hot.state {
            State::FinWait1 => {
                self.hot.state = State::FinWait2;
                if self.hot.has(flag::RELEASED) {
                    // Nobody reads any more: do not wait for the peer for ever.
                    self.hot.life_at = self.now.saturating_add(self.cold.options.fin_wait_2);
                }
            }
            State::Closing => self.enter_time_wait(),
            State::LastAck => self.end(),
            _ => {}
        }
    }
}
