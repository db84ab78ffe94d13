//! RACK: time-based detection of loss (RFC 8985 6).

use super::{Delivered, Flight, mark};
use crate::sequence::Seq;

/// Segments sacked that stand for three duplicate acknowledgments (RFC 8985 6.2 step 4).
const THRESHOLD: u32 = 3;
/// Round trips without a duplicate told until the reordering window is small again.
const PERSISTENCE: u8 = 16;

/// State of the detection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rack {
    /// When the newest delivered segment was sent: ns.
    sent_at: u64,
    /// Its end.
    end: Seq,
    /// Its round-trip time: ns.
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

    /// The recovery is over.
    pub(crate) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }
}

impl Flight {
    /// Takes in what was delivered (RFC 8985 6.2 steps 1 to 4). `echo_is_older`: the time stamp that
    /// the peer echoed is older than the retransmission: the original arrived.
    pub(crate) fn rack_update(
        &mut self,
        news: &Delivered,
        echo_is_older: bool,
        una: Seq,
        next: Seq,
        now: u64,
    ) {
        let rack = &mut self.rack;
        if let Some(sent) = news.newest {
            let rtt = now.saturating_sub(sent.sent_at);
            let retransmitted = sent.is(mark::RETRANSMITTED);
            let doubtful = retransmitted && (echo_is_older || rtt < rack.min_rtt);
            if !retransmitted && (rack.min_rtt == 0 || rtt < rack.min_rtt) {
                rack.min_rtt = rtt.max(1);
            }
            if !doubtful {
                rack.rtt = rtt;
                let newer = sent.sent_at > rack.sent_at
                    || (sent.sent_at == rack.sent_at && sent.end.after(rack.end));
                if newer {
                    rack.sent_at = sent.sent_at;
                    rack.end = sent.end;
                }
            }
            // Step 3: something earlier came later, without having been sent twice.
            if sent.end.before(rack.highest) && !retransmitted {
                rack.reordering = true;
            }
            rack.highest = rack.highest.max(sent.end).max(una);
        }
        if rack.round_end.is_some_and(|end| !una.before(end)) {
            rack.round_end = None;
        }
        if news.duplicate && rack.round_end.is_none() {
            rack.round_end = Some(next);
            rack.multiplier = rack.multiplier.saturating_add(1);
            rack.persist = PERSISTENCE;
        }
    }

    /// The reordering window (6.2 step 4): ns.
    fn reordering_window(&self, recovering: bool, mss: u16, srtt: u64) -> u64 {
        let rack = &self.rack;
        if !rack.reordering && (recovering || self.sacked >= THRESHOLD * u32::from(mss)) {
            return 0;
        }
        (rack.min_rtt / 4).saturating_mul(u64::from(rack.multiplier)).min(srtt)
    }

    /// Marks what must be lost by now (6.2 step 5). Gives bytes newly lost, and when the next may be.
    pub(crate) fn detect_loss(
        &mut self,
        recovering: bool,
        mss: u16,
        srtt: u64,
        now: u64,
    ) -> (u32, Option<u64>) {
        let patience = self.rack.rtt + self.reordering_window(recovering, mss, srtt);
        let (newest, end) = (self.rack.sent_at, self.rack.end);
        let (mut lost, mut wake) = (0, None::<u64>);
        for sent in &mut self.sent {
            if !sent.start.before(self.rack.highest) && sent.sent_at >= newest {
                break;
            }
            let older = sent.sent_at < newest || (sent.sent_at == newest && sent.end.before(end));
            if !older || sent.is(mark::SACKED | mark::LOST) {
                continue;
            }
            let due = sent.sent_at.saturating_add(patience);
            if due <= now {
                if self.lost + lost == 0 || sent.start.before(self.lost_from) {
                    self.lost_from = sent.start;
                }
                sent.marks |= mark::LOST;
                self.rate.on_lost(sent);
                lost += sent.length();
            } else {
                wake = Some(wake.map_or(due, |wake| wake.max(due)));
            }
        }
        self.lost += lost;
        (lost, wake)
    }
}
