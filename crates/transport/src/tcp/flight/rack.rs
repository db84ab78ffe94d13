//! RACK: time-based detection of loss (RFC 8985 6).

use super::{Delivered, Flight, Sent, mark};
use crate::sequence::Seq;
use tables::Place;

/// Segments sacked that stand for three duplicate acknowledgments (RFC 8985 6.2 step 4).
const THRESHOLD: u32 = 3;
/// Segments whose turn has not come that are looked at for when it comes: one acknowledgment costs no more.
const WAITING: usize = 256;
/// Round trips without a duplicate told until the reordering window is small again.
const PERSISTENCE: u8 = 16;

/// A round-trip time that is believed when a connection is imported: ns.
const LONGEST: u64 = 1 << 50;

/// State of the detection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rack {
    /// When the newest delivered segment was sent: ns.
    sent_at: u64,
    /// Its end.
    end: Seq,
    /// Round-trip time of what was delivered last (RFC 8985 5.3): ns.
    rtt: u64,
    /// Least round-trip time seen: ns; 0: none.
    pub(crate) min_rtt: u64,
    /// Highest sequence number delivered.
    highest: Seq,
    /// Segments were delivered out of order.
    pub(super) reordering: bool,
    /// Quarters of the least round-trip time.
    pub(super) multiplier: u8,
    /// Recoveries until the multiplier falls back.
    pub(super) persist: u8,
    /// The round in which the multiplier was raised ends here.
    round_end: Option<Seq>,
}

impl Default for Rack {
    fn default() -> Self {
        Self::NEW
    }
}

impl Rack {
    pub(super) const NEW: Self = Self {
        sent_at: 0,
        end: Seq(0),
        rtt: 0,
        min_rtt: 0,
        highest: Seq(0),
        reordering: false,
        multiplier: 1,
        persist: 0,
        round_end: None,
    };

    /// The flight begins at `start`.
    pub(crate) fn begin(&mut self, start: Seq) {
        self.end = start;
        self.highest = start;
    }

    /// Round-trip time of the newest segment delivered: ns; `None`: none of this flight was.
    pub(super) fn round_trip(&self) -> Option<u64> {
        (self.rtt > 0).then_some(self.rtt)
    }

    /// Highest sequence number delivered.
    pub(crate) fn highest(&self) -> Seq {
        self.highest
    }

    /// A record is delivered, cumulatively or selectively (6.2 steps 1 to 3).
    pub(super) fn deliver(&mut self, sent: &Sent, news: &mut Delivered) {
        news.take(sent);
        let rtt = news.now.saturating_sub(sent.sent_at);
        let again = sent.is(mark::RETRANSMITTED);
        // Step 2: which of both arrived cannot be told, or it was the first.
        let doubtful = again && (news.echo_is_older || rtt < self.min_rtt);
        let newer = news
            .latest
            .is_none_or(|(at, end)| sent.sent_at > at || sent.sent_at == at && sent.end.after(end));
        if !doubtful {
            news.rtt = rtt;
            if newer {
                news.latest = Some((sent.sent_at, sent.end));
            }
        }
        if again {
            return;
        }
        if self.min_rtt == 0 || rtt < self.min_rtt {
            self.min_rtt = rtt.max(1);
        }
        // Step 3: something earlier came later, without having been sent twice.
        if sent.end.before(news.highest) {
            self.reordering = true;
        }
    }

    /// What was taken for lost was only late.
    pub(crate) fn note_reordering(&mut self) {
        self.reordering = true;
    }

    /// The recovery is over.
    pub(crate) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }
}

impl Sent {
    /// In flight for the first time.
    fn is_fresh(&self) -> bool {
        !self.is(mark::SACKED | mark::LOST | mark::RETRANSMITTED)
    }

    /// In flight, and not for the first time.
    pub(super) fn is_again(&self) -> bool {
        self.is(mark::RETRANSMITTED) && !self.is(mark::SACKED | mark::LOST)
    }
}

carried!(Rack {
    sent_at @ time,
    end,
    rtt in 0..=LONGEST,
    min_rtt in 0..=LONGEST,
    highest,
    reordering,
    multiplier,
    persist,
    round_end,
});

impl Flight {
    /// Takes in what was delivered (RFC 8985 6.2 steps 2 and 4), up to `highest`.
    pub(crate) fn rack_update(&mut self, news: &Delivered, una: Seq, next: Seq) {
        let rack = &mut self.rack;
        if let Some((sent_at, end)) = news.latest {
            rack.rtt = news.rtt;
            if sent_at > rack.sent_at || sent_at == rack.sent_at && end.after(rack.end) {
                (rack.sent_at, rack.end) = (sent_at, end);
            }
        }
        rack.highest = rack.highest.max(news.reached).max(una);
        if rack.round_end.is_some_and(|end| !una.before(end)) {
            rack.round_end = None;
        }
        // A duplicate widens the window where reordering may have made one.
        if news.duplicate && rack.reordering && rack.round_end.is_none() {
            rack.round_end = Some(next);
            rack.multiplier = rack.multiplier.saturating_add(1);
            rack.persist = PERSISTENCE;
        }
    }

    /// The reordering window (6.2 step 4): ns.
    fn reordering_window(&self, recovering: bool, srtt: u64) -> u64 {
        let rack = &self.rack;
        if !rack.reordering && (recovering || self.sacked_segments >= THRESHOLD) {
            return 0;
        }
        (rack.min_rtt / 4).saturating_mul(u64::from(rack.multiplier)).min(srtt)
    }

    /// Marks what must be lost by now (6.2 step 5). Gives bytes newly lost, and when the next may be.
    pub(crate) fn detect_loss(
        &mut self,
        recovering: bool,
        srtt: u64,
        now: u64,
    ) -> (u32, Option<u64>) {
        let patience = self.rack.rtt.saturating_add(self.reordering_window(recovering, srtt));
        let mut search = Search { patience, now, lost: 0, wake: None, waiting: 0 };
        self.search_fresh(&mut search);
        self.search_again(&mut search);
        (search.lost, search.wake)
    }

    /// Records that were sent once: their order is that of time.
    fn search_fresh(&mut self, search: &mut Search) {
        let from = self.fresh_from;
        let mut next = self.sent.partition_point(|sent| sent.start.before(from));
        let mut all_seen = true;
        while let Some(sent) = self.sent.get(next) {
            let place = next;
            next = self.sent.after(place);
            if !sent.is_fresh() {
                continue;
            }
            let older = sent.is_older(self.rack.sent_at, self.rack.end);
            if older && search.is_due(sent.sent_at) {
                self.lose(place, search);
                continue;
            }
            if std::mem::take(&mut all_seen) {
                self.fresh_from = sent.start;
            }
            if !older || search.waiting > WAITING {
                break;
            }
        }
        if let (true, Some(last)) = (all_seen, self.sent.back()) {
            self.fresh_from = last.end;
        }
    }

    /// Records that were sent again, in the order of time.
    fn search_again(&mut self, search: &mut Search) {
        search.waiting = 0;
        let mut next = Place::default();
        while let Some((sent_at, start)) = self.again.get(next).copied() {
            // Its beginning may have been acknowledged.
            let place = self.sent.partition_point(|sent| !sent.end.after(start));
            let sent =
                self.sent.get(place).filter(|sent| sent.is_again() && sent.sent_at == sent_at);
            let Some(sent) = sent else {
                // It is settled.
                if next == Place::default() {
                    self.again.pop_front();
                } else {
                    next = self.again.after(next);
                }
                continue;
            };
            if !sent.is_older(self.rack.sent_at, self.rack.end) || search.waiting > WAITING {
                break;
            }
            if search.is_due(sent_at) {
                self.lose(place, search);
            } else {
                next = self.again.after(next);
            }
        }
    }

    fn lose(&mut self, place: Place, search: &mut Search) {
        let Some(sent) = self.sent.get_mut(place) else { return };
        if self.lost == 0 || sent.start.before(self.lost_from) {
            self.lost_from = sent.start;
        }
        sent.marks |= mark::LOST;
        self.rate.on_lost(sent);
        self.lost += sent.length();
        search.lost += sent.length();
    }
}

/// A look for what is lost.
struct Search {
    /// What a segment is given after it was sent: ns.
    patience: u64,
    now: u64,
    /// Bytes found.
    lost: u32,
    /// When all that waits for its turn has had it: ns.
    wake: Option<u64>,
    /// How many wait.
    waiting: usize,
}

impl Search {
    /// Whether the patience with what was sent at `sent_at` is at its end.
    fn is_due(&mut self, sent_at: u64) -> bool {
        let due = sent_at.saturating_add(self.patience);
        if due > self.now {
            self.wake = Some(self.wake.map_or(due, |wake| wake.max(due)));
            self.waiting += 1;
        }
        due <= self.now
    }
}
