//! Segments in flight: when each was sent, what the peer has told of it, and what is lost.
//!
//! Records are in order of sequence numbers. A record is in one of three states: in flight, sacked, or
//! lost (to be sent again). Detection of loss is RACK's (RFC 8985); rate samples are taken as the
//! drafts of delivery rate estimation say.

use std::collections::VecDeque;

use crate::sequence::Seq;
use crate::tcp::prr::Reduction;

mod rack;
mod rate;
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
    /// Bytes found lost by it.
    pub(crate) lost: u32,
}

impl Delivered {
    fn take(&mut self, sent: &Sent) {
        self.bytes += sent.length();
        self.records += 1;
        if !sent.is(mark::RETRANSMITTED) {
            self.clean_sent_at = self.clean_sent_at.max(Some(sent.sent_at));
        }
        let newer = self.newest.is_none_or(|newest| {
            (newest.sent_at, newest.end.0) < (sent.sent_at, newest.end.max(sent.end).0)
        });
        if newer {
            self.newest = Some(*sent);
        }
    }
}

/// The segments in flight of a connection.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    pub(crate) sent: VecDeque<Sent>,
    /// Bytes sacked.
    pub(crate) sacked: u32,
    /// Bytes lost and not sent again yet.
    pub(crate) lost: u32,
    /// No record before this is lost.
    lost_from: Seq,
    /// Duplicate acknowledgments from a peer without SACK.
    pub(crate) duplicates: u32,
    pub(crate) rack: Rack,
    pub(crate) rate: Rate,
    pub(crate) reduction: Reduction,
    pub(crate) probe: Probe,
    /// The recovery or time-out that may be taken back began with this as SND.UNA.
    pub(crate) undo_from: Seq,
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
        let mut sent = std::mem::take(&mut self.sent);
        sent.clear();
        *self = Self { sent, ..Self::default() };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Bytes that are on the way, as far as is known.
    #[inline]
    pub(crate) fn pipe(&self, una: Seq, next: Seq, mss: u16) -> u32 {
        let inferred = self.inferred(mss);
        next.since(una).saturating_sub(self.sacked).saturating_sub(self.lost + inferred)
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
    fn push(&mut self, start: Seq, end: Seq, marks: u8, now: u64) -> Sent {
        if self.sent.is_empty() {
            self.rate.restart(now);
            // Most connections have one segment under way at a time: no memory for more.
            if self.sent.capacity() == 0 {
                self.sent.reserve_exact(1);
            }
        }
        let una = self.sent.front().map_or(start, |front| front.start);
        let limited = if self.rate.is_app_limited() { mark::APP_LIMITED } else { 0 };
        let sent = Sent {
            start,
            end,
            marks: marks | limited,
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

    /// Takes off what `ack` covers.
    pub(crate) fn acknowledge(&mut self, ack: Seq, news: &mut Delivered) {
        while let Some(front) = self.sent.front_mut() {
            let whole = !front.end.after(ack);
            let part = if whole { *front } else { Sent { end: ack.max(front.start), ..*front } };
            let length = part.length();
            if length == 0 {
                break;
            }
            news.acked += length;
            news.ambiguous |= part.is(mark::RETRANSMITTED);
            if part.is(mark::SACKED) {
                self.sacked -= length;
            } else {
                if part.is(mark::LOST) {
                    self.lost -= length;
                }
                news.take(&part);
            }
            if !whole {
                front.start = ack;
                front.marks &= !mark::SYN;
                break;
            }
            news.marks |= part.marks & (mark::SYN | mark::FIN);
            self.sent.pop_front();
        }
        if self.sent.is_empty() && self.sent.capacity() > 64 {
            self.sent = VecDeque::new();
        }
    }

    /// Marks what a block covers, which lies within the flight.
    pub(crate) fn sack(&mut self, start: Seq, end: Seq, news: &mut Delivered) {
        self.split_at(start);
        self.split_at(end);
        let first = self.sent.partition_point(|sent| sent.start.before(start));
        for sent in self.sent.range_mut(first..) {
            if sent.end.after(end) {
                break;
            }
            if sent.is(mark::SACKED) {
                continue;
            }
            news.take(sent);
            if sent.is(mark::LOST) {
                self.lost -= sent.length();
                sent.marks &= !mark::LOST;
            }
            sent.marks |= mark::SACKED;
            self.sacked += sent.length();
        }
    }

    /// Makes `at` a border between two records.
    pub(crate) fn split_at(&mut self, at: Seq) {
        let place = self.sent.partition_point(|sent| !sent.end.after(at));
        let Some(sent) = self.sent.get_mut(place) else { return };
        if !sent.start.before(at) {
            return;
        }
        let mut rest = *sent;
        rest.start = at;
        rest.marks &= !mark::SYN;
        sent.end = at;
        sent.marks &= !(mark::FIN | mark::PUSH);
        self.sent.insert(place + 1, rest);
    }

    /// The first record to be sent again.
    pub(crate) fn next_lost(&mut self) -> Option<Sent> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_from;
        let first = self.sent.partition_point(|sent| sent.start.before(from));
        let found = self.sent.range(first..).find(|sent| sent.is(mark::LOST)).copied();
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

    /// Any record may be marked as lost now.
    fn lose_front(&mut self) {
        if let Some(front) = self.sent.front() {
            self.lost_from = front.start;
        }
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
        (sent.delivered, sent.delivered_at, sent.first_sent_at) = rate;
    }

    /// The first record is lost: three duplicates from a peer without SACK, or a partial acknowledgment.
    /// Gives bytes newly lost.
    pub(crate) fn lose_first(&mut self, mss: u32) -> u32 {
        // Of what the port has cut, one segment.
        if let Some(front) = self.sent.front() {
            self.split_at(front.start.add(mss));
        }
        self.lose_front();
        match self.sent.front_mut() {
            Some(sent) if !sent.is(mark::LOST | mark::SACKED) => {
                sent.marks |= mark::LOST;
                self.rate.on_lost(sent);
                self.lost += sent.length();
                sent.length()
            }
            _ => 0,
        }
    }

    /// Everything that was not sacked is lost. Gives bytes newly lost.
    pub(crate) fn lose_all(&mut self) -> u32 {
        self.lose_old(u64::MAX, 0)
    }

    /// A time-out: the oldest is lost, and what else was not sacked, but for what was sent so lately that
    /// it may still be acknowledged (RFC 8985 6.3). Gives bytes newly lost.
    pub(crate) fn lose_old(&mut self, now: u64, srtt: u64) -> u32 {
        let before = self.lost;
        let patience = self.rack.round_trip().unwrap_or(srtt);
        self.lose_front();
        for (place, sent) in self.sent.iter_mut().enumerate() {
            let recent = place > 0 && sent.sent_at.saturating_add(patience) > now;
            if !recent && !sent.is(mark::LOST | mark::SACKED) {
                sent.marks |= mark::LOST;
                self.rate.on_lost(sent);
                self.lost += sent.length();
            }
        }
        self.duplicates = 0;
        self.lost - before
    }

    /// What is larger than `size` did not fit the path.
    pub(crate) fn lose_oversized(&mut self, size: u32) {
        self.lose_front();
        for sent in &mut self.sent {
            if sent.data() > size && !sent.is(mark::LOST | mark::SACKED) {
                sent.marks |= mark::LOST;
                self.lost += sent.length();
            }
        }
    }

    /// Nothing was lost after all: what was taken for lost is in flight. Sent again or not, it stays
    /// acknowledged by whatever arrives first.
    pub(crate) fn forgive(&mut self) {
        for sent in &mut self.sent {
            sent.marks &= !mark::LOST;
        }
        self.lost = 0;
    }

    /// The peer took back what it had told of (RFC 2018 8): none of it is trusted.
    pub(crate) fn forget_sacks(&mut self) {
        for sent in &mut self.sent {
            sent.marks &= !mark::SACKED;
        }
        self.sacked = 0;
    }
}

#[cfg(test)]
mod tests;
