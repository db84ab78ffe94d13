//! What is lost by other signs than RACK's, and what turned out not to be.

use super::{Flight, Sent, mark};
use crate::sequence::Seq;
use tables::PagedList;

impl Flight {
    /// Any record may be marked as lost now.
    fn lose_front(&mut self) {
        if let Some(front) = self.sent.front() {
            self.lost_from = front.start;
        }
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

    /// Segments with more than `size` bytes of data did not fit the path.
    pub(crate) fn lose_oversized(&mut self, size: u32) {
        self.lose_front();
        for sent in self.sent.iter_mut() {
            let oversized = sent.data().min(sent.size.into()) > size;
            if oversized && !sent.is(mark::LOST | mark::SACKED) {
                sent.marks |= mark::LOST;
                self.lost += sent.length();
            }
        }
    }

    /// Nothing was lost after all: what was taken for lost is in flight. Sent again or not, it stays
    /// acknowledged by whatever arrives first.
    pub(crate) fn forgive(&mut self) {
        for sent in self.sent.iter_mut() {
            sent.marks &= !mark::LOST;
        }
        self.lost = 0;
        self.watch_all();
    }

    /// The peer took back what it had told of (RFC 2018 8): none of it is trusted.
    pub(crate) fn forget_sacks(&mut self) {
        for sent in self.sent.iter_mut() {
            sent.marks &= !mark::SACKED;
        }
        (self.sacked, self.sacked_segments) = (0, 0);
        self.watch_all();
    }

    /// Any record may be in flight now.
    fn watch_all(&mut self) {
        if let Some(front) = self.sent.front() {
            self.fresh_from = front.start;
        }
        self.sort_again();
    }

    /// Bytes that were sent again, and that nobody has told of.
    pub(crate) fn sent_again(&self) -> u32 {
        let again = |sent: &&Sent| sent.is(mark::RETRANSMITTED) && !sent.is(mark::SACKED);
        self.sent.iter().filter(again).map(Sent::length).sum()
    }

    /// Lists what was sent again and is in flight, in the order of time.
    pub(super) fn sort_again(&mut self) {
        self.again.clear();
        for sent in self.sent.iter().filter(|sent| sent.is_again()) {
            list_again(&mut self.again, sent.sent_at, sent.start);
        }
    }

    /// Lists what begins at `start` and was sent again at `sent_at`.
    pub(super) fn note_again(&mut self, sent_at: u64, start: Seq) {
        list_again(&mut self.again, sent_at, start);
        if self.again.len() > 64 + 2 * self.sent.len() {
            self.sort_again();
        }
    }
}

/// Adds to a list in the order of time, and of sequence numbers for one time.
fn list_again(again: &mut PagedList<(u64, Seq)>, sent_at: u64, start: Seq) {
    let is_before =
        |(at, other): &(u64, Seq)| *at < sent_at || *at == sent_at && !other.after(start);
    if again.back().is_none_or(is_before) {
        return again.push_back((sent_at, start));
    }
    again.insert(again.partition_point(is_before), (sent_at, start));
}
