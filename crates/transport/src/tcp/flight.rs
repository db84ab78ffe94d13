//! Segments in flight: when each was sent, what the peer has told of it, and what is lost.
//!
//! Records are in order of sequence numbers. A record is in one of three states: in flight, sacked, or
//! lost (to be sent again). Detection of loss is RACK's (RFC 8985); rate samples are taken as the
//! drafts of delivery rate estimation say.

use crate::sequence::Seq;
use crate::tcp::prr::Reduction;
use tables::PagedList;

mod loss;
mod rack;
mod rate;
mod scoreboard;
mod slot;

pub(crate) use rack::Rack;
pub(crate) use rate::Rate;
pub(crate) use slot::{Slot, Spares};

/// Bits of a record.
pub(crate) mod mark {
    pub(crate) const SACKED: u8 = 1;
    pub(crate) const LOST: u8 = 2;
    pub(crate) const RETRANSMITTED: u8 = 4;
    pub(crate) const SYN: u8 = 8;
    pub(crate) const FIN: u8 = 16;
    pub(crate) const APP_LIMITED: u8 = 32;
    pub(crate) const PUSH: u8 = 64;
    /// Larger than others, to see whether the path takes it.
    pub(crate) const PATH_PROBE: u8 = 128;
}

/// A segment, or several that were sent in one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) start: Seq,
    pub(crate) end: Seq,
    pub(crate) marks: u8,
    /// Bytes of data of each of its segments but the last, which may be shorter.
    pub(crate) size: u16,
    /// How many segments were sacked, of what is.
    segments: u32,
    /// Last sent at: ns.
    pub(crate) sent_at: u64,
    /// State of the rate estimation then.
    pub(crate) delivered_at: u64,
    pub(crate) first_sent_at: u64,
    /// Bytes delivered until then, modulo 2^32.
    pub(crate) delivered: u32,
    /// Bytes in flight then, itself included, and found lost until then, modulo 2^32.
    pub(crate) tx_in_flight: u32,
    pub(crate) lost: u32,
}

impl Sent {
    pub(crate) fn length(&self) -> u32 {
        self.end.since(self.start)
    }

    pub(crate) fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// Sequence numbers that are data.
    pub(crate) fn data(&self) -> u32 {
        let marks = u32::from(self.is(mark::SYN)) + u32::from(self.is(mark::FIN));
        self.length().saturating_sub(marks)
    }

    /// Segments that it went out in.
    fn segments(&self) -> u32 {
        self.data().div_ceil(u32::from(self.size.max(1))).max(1)
    }

    /// Sent last at `at`, or at that time with `end` behind its own: it was sent before (RFC 8985 6.1).
    fn is_older(&self, at: u64, end: Seq) -> bool {
        self.sent_at < at || self.sent_at == at && self.end.before(end)
    }
}

/// What an acknowledgment has newly delivered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delivered {
    /// Bytes acknowledged cumulatively.
    pub(crate) acked: u32,
    /// Bytes delivered in either way that were not before.
    pub(crate) bytes: u32,
    /// The newest record among them.
    pub(crate) newest: Option<Sent>,
    /// When the newest of those that were sent only once was sent: ns.
    pub(crate) clean_sent_at: Option<u64>,
    /// Bytes that a peer without SACK has taken in, as far as can be told (RFC 6937 3).
    pub(crate) estimate: u32,
    /// Something that was sent twice was acknowledged: what arrived behind it may have waited long.
    pub(crate) ambiguous: bool,
    /// Records among them.
    pub(crate) records: u32,
    /// A SYN or FIN was among them.
    pub(crate) marks: u8,
    /// The peer told of a duplicate (RFC 2883).
    pub(crate) duplicate: bool,
    /// The duplicate was what a tail loss probe had sent again.
    pub(crate) probe_duplicate: bool,
    /// Bytes found lost by it.
    pub(crate) lost: u32,
    /// ns.
    now: u64,
    /// The time stamp that the peer echoed is older than the first retransmission: originals arrived.
    pub(crate) echo_is_older: bool,
    /// Highest sequence number delivered before.
    highest: Seq,
    /// Highest end among what was delivered now.
    reached: Seq,
    /// The newest record that says what the path's delay is: sent at, end.
    latest: Option<(u64, Seq)>,
    /// Round-trip time of the record that said so last, whether or not it is the newest: ns.
    rtt: u64,
}

impl Delivered {
    /// Of an acknowledgment that came now; `highest`: what was the highest delivered before.
    pub(crate) fn new(now: u64, highest: Seq, echo_is_older: bool) -> Self {
        Self { now, highest, reached: highest, echo_is_older, ..Self::default() }
    }

    fn take(&mut self, sent: &Sent) {
        self.bytes += sent.length();
        self.records += 1;
        self.reached = self.reached.max(sent.end);
        if !sent.is(mark::RETRANSMITTED) {
            self.clean_sent_at = self.clean_sent_at.max(Some(sent.sent_at));
        }
        if self.newest.is_none_or(|newest| newest.is_older(sent.sent_at, sent.end)) {
            self.newest = Some(*sent);
        }
    }
}

/// The segments in flight of a connection.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    pub(crate) sent: PagedList<Sent>,
    /// Bytes sacked, and segments.
    pub(crate) sacked: u32,
    sacked_segments: u32,
    /// Bytes lost and not sent again yet.
    pub(crate) lost: u32,
    /// No record before this is lost.
    lost_from: Seq,
    /// No record before this is in flight for the first time.
    fresh_from: Seq,
    /// What was sent again, in the order of time: when, and where it begins. Some of it may be delivered
    /// or lost by now.
    again: PagedList<(u64, Seq)>,
    /// Duplicate acknowledgments from a peer without SACK.
    pub(crate) duplicates: u32,
    pub(crate) rack: Rack,
    pub(crate) rate: Rate,
    pub(crate) reduction: Reduction,
    pub(crate) probe: Probe,
    /// The recovery or time-out that may be taken back began with this as SND.UNA.
    pub(crate) undo_from: Seq,
    /// It is over, and may still be taken back.
    pub(crate) may_undo: bool,
    /// Most bytes in flight, lost and sacked ones included, since `usage_end` was SND.NXT.
    usage: u32,
    usage_end: Seq,
}

/// A tail loss probe that is out (RFC 8985 7.1).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    /// SND.NXT behind it.
    pub(crate) end: Seq,
    /// It was old data.
    pub(crate) again: bool,
}

impl Flight {
    /// As new, but for the memory of its records.
    fn clear(&mut self) {
        let (mut sent, mut again) =
            (std::mem::take(&mut self.sent), std::mem::take(&mut self.again));
        sent.clear();
        again.clear();
        *self = Self { sent, again, ..Self::default() };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Bytes that are on the way, as far as is known.
    #[inline]
    pub(crate) fn pipe(&self, una: Seq, next: Seq, mss: u16) -> u32 {
        let inferred = self.inferred(mss);
        let out = next.since(una).saturating_sub(self.sacked);
        out.saturating_sub(self.lost).saturating_sub(inferred)
    }

    /// Bytes that a peer without SACK has let know of by duplicates.
    #[inline]
    pub(crate) fn inferred(&self, mss: u16) -> u32 {
        self.duplicates.saturating_mul(u32::from(mss))
    }

    /// A probe of the tail was sent; `end`: SND.NXT; `again`: it is old data.
    pub(crate) fn probed(&mut self, end: Seq, again: bool) {
        self.probe = Probe { end, again };
    }

    /// Notes what was sent for the first time.
    fn push(&mut self, start: Seq, end: Seq, marks: u8, size: u16, now: u64) -> Sent {
        if self.sent.is_empty() {
            self.rate.restart(now);
            self.fresh_from = start;
            self.again.clear();
            // Most connections have one segment under way at a time: no memory for more.
            self.sent.begin();
        }
        let una = self.sent.front().map_or(start, |front| front.start);
        let limited = if self.rate.is_app_limited() { mark::APP_LIMITED } else { 0 };
        let sent = Sent {
            start,
            end,
            marks: marks | limited,
            size,
            segments: 0,
            sent_at: now,
            delivered: self.rate.delivered as u32,
            delivered_at: self.rate.delivered_at,
            first_sent_at: self.rate.first_sent_at,
            tx_in_flight: self.pipe(una, end, 0),
            lost: self.rate.lost,
        };
        self.sent.push_back(sent);
        sent
    }

    /// The first record to be sent again.
    pub(crate) fn next_lost(&mut self) -> Option<Sent> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_from;
        let first = self.sent.partition_point(|sent| sent.start.before(from));
        let found = self.sent.iter_from(first).find(|sent| sent.is(mark::LOST)).copied();
        if let Some(found) = &found {
            self.lost_from = found.start;
        }
        found
    }

    /// Whether the record that begins at `start` is lost.
    pub(crate) fn is_lost(&self, start: Seq) -> bool {
        let place = self.sent.partition_point(|sent| sent.start.before(start));
        self.sent.get(place).is_some_and(|sent| sent.start == start && sent.is(mark::LOST))
    }

    /// Notes that the record at `start` was sent again.
    pub(crate) fn resent(&mut self, start: Seq, now: u64) {
        let place = self.sent.partition_point(|sent| sent.start.before(start));
        let rate = (self.rate.delivered as u32, self.rate.delivered_at, self.rate.first_sent_at);
        let ends =
            self.sent.front().zip(self.sent.back()).map(|(front, back)| (front.start, back.end));
        let Some(sent) = self.sent.get_mut(place) else { return };
        if sent.is(mark::LOST) {
            self.lost -= sent.length();
        }
        let in_flight = ends.map_or(0, |(una, next)| next.since(una));
        sent.tx_in_flight = in_flight.saturating_sub(self.sacked + self.lost);
        sent.lost = self.rate.lost;
        sent.marks = (sent.marks & !mark::LOST) | mark::RETRANSMITTED;
        sent.sent_at = now;
        sent.size = sent.length().min(65_535) as u16;
        (sent.delivered, sent.delivered_at, sent.first_sent_at) = rate;
        self.note_again(now, start);
    }
}

carried!(Sent {
    start,
    end,
    marks,
    size,
    segments,
    sent_at @ time,
    delivered_at @ time,
    first_sent_at @ time,
    delivered,
    tx_in_flight,
    lost,
});

carried!(Probe { end, again });

carried!(Flight {
    sent,
    sacked,
    lost,
    lost_from,
    duplicates,
    rack,
    rate,
    reduction,
    probe,
    undo_from,
    may_undo,
    usage,
    usage_end,
    sacked_segments,
    fresh_from,
    // Told by the records.
    again @ local,
});

impl Flight {
    /// Whether its records join up from `una` to `next`, and its counters are theirs: an imported one may be
    /// anything.
    fn is_sound(&self, una: Seq, next: Seq) -> bool {
        let (mut at, mut sacked, mut lost, mut segments) = (una, 0, 0, 0u64);
        for sent in self.sent.iter() {
            if sent.start != at || !at.before(sent.end) || sent.end.after(next) {
                return false;
            }
            sacked += if sent.is(mark::SACKED) { sent.length() } else { 0 };
            lost += if sent.is(mark::LOST) { sent.length() } else { 0 };
            segments += if sent.is(mark::SACKED) { u64::from(sent.segments) } else { 0 };
            let before = self.rate.is_after(sent);
            if sent.is(mark::SACKED) && sent.is(mark::LOST) || !before {
                return false;
            }
            at = sent.end;
        }
        segments == u64::from(self.sacked_segments)
            && at == next
            // Each tells of a byte at least.
            && self.duplicates <= next.since(una)
            && (sacked, lost) == (self.sacked, self.lost)
    }
}

#[cfg(test)]
mod tests;
