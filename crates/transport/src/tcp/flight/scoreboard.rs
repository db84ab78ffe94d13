//! What the peer has received: acknowledgments and SACK blocks on the records (RFC 2018, RFC 6675 3).
//!
//! A peer decides what its blocks cover, so they decide neither how many records there are nor how long one
//! acknowledgment takes. A block counts for the segments that it covers whole, as they were sent; and what was
//! sacked side by side becomes one record.

use super::{Delivered, Flight, Sent, mark};
use crate::sequence::Seq;
use tables::Place;

impl Flight {
    /// Takes off what `ack` covers.
    pub(crate) fn acknowledge(&mut self, ack: Seq, news: &mut Delivered) {
        while let Some(front) = self.sent.front().copied() {
            let whole = !front.end.after(ack);
            let mut part = front;
            if !whole {
                if !front.start.before(ack) {
                    break;
                }
                self.trim_front(ack);
                part.end = ack;
            }
            news.acked += part.length();
            news.ambiguous |= part.is(mark::RETRANSMITTED);
            if part.is(mark::SACKED) {
                self.sacked -= part.length();
                let left = self.sent.front().filter(|_| !whole).map_or(0, |rest| rest.segments);
                self.sacked_segments -= front.segments - left;
            } else {
                if part.is(mark::LOST) {
                    self.lost -= part.length();
                }
                self.rack.deliver(&part, news);
            }
            if !whole {
                break;
            }
            news.marks |= part.marks & (mark::SYN | mark::FIN);
            self.sent.pop_front();
        }
        if self.sent.is_empty() && self.again.is_large() {
            self.again.clear();
        }
    }

    /// The first record begins at `ack`, which lies in it.
    fn trim_front(&mut self, ack: Seq) {
        let Some(front) = self.sent.front_mut() else { return };
        let size = u32::from(front.size.max(1));
        // Where the segment ends that this cuts in two: those behind stay as they were sent.
        let into = ack.since(front.start);
        let border = front.start.add(into.div_ceil(size) * size);
        front.start = ack;
        front.marks &= !mark::SYN;
        if front.is(mark::SACKED) {
            front.segments = front.segments.min(front.segments());
        } else if ack.before(border) && border.before(front.end) {
            self.split_at(border);
        }
    }

    /// Marks what a block covers, which lies within the flight.
    pub(crate) fn sack(&mut self, start: Seq, end: Seq, news: &mut Delivered) {
        let (start, end) = (self.border(start, true), self.border(end, false));
        if !start.before(end) {
            return;
        }
        self.split_at(start);
        self.split_at(end);
        let first = self.sent.partition_point(|sent| sent.start.before(start));
        let mut next = first;
        while let Some(sent) = self.sent.get_mut(next).filter(|sent| !sent.end.after(end)) {
            if sent.is(mark::SACKED) {
                next = self.sent.after(next);
                continue;
            }
            self.rack.deliver(sent, news);
            if sent.is(mark::LOST) {
                self.lost -= sent.length();
                sent.marks &= !mark::LOST;
            }
            sent.marks |= mark::SACKED;
            sent.segments = sent.segments();
            self.sacked += sent.length();
            self.sacked_segments += sent.segments;
            next = self.sent.after(next);
        }
        self.join_sacked(first, next);
    }

    /// The segment border nearest to `at`, behind it (`up`) or before. Within what is sacked already there
    /// are none.
    fn border(&self, at: Seq, up: bool) -> Seq {
        let place = self.sent.partition_point(|sent| !sent.end.after(at));
        let Some(sent) = self.sent.get(place).filter(|sent| sent.start.before(at)) else {
            return at;
        };
        let (into, size) = (at.since(sent.start), u32::from(sent.size.max(1)));
        // Receivers need not hold a FIN that comes ahead of data.
        let before_fin = sent.is(mark::FIN) && at.add(1) == sent.end;
        let border = match (up, sent.is(mark::SACKED)) {
            (true, true) => sent.length(),
            (false, true) => 0,
            (true, false) => into.div_ceil(size) * size,
            (false, false) if before_fin => into,
            (false, false) => into / size * size,
        };
        sent.start.add(border.min(sent.length()))
    }

    /// Makes one of the records from `first` to before `next`, all of which are sacked, and of sacked ones
    /// beside them.
    fn join_sacked(&mut self, first: Place, next: Place) {
        let is_sacked =
            |place: Place| self.sent.get(place).is_some_and(|sent| sent.is(mark::SACKED));
        let first = self.sent.before(first).filter(|before| is_sacked(*before)).unwrap_or(first);
        let next = if is_sacked(next) { self.sent.after(next) } else { next };
        let second = self.sent.after(first);
        if next <= second {
            return;
        }
        let (mut marks, mut segments, mut end, mut place) = (0, 0, None, first);
        while let Some(sent) = self.sent.get(place).filter(|_| place < next) {
            marks |= sent.marks;
            segments += sent.segments;
            end = Some(sent.end);
            place = self.sent.after(place);
        }
        if let Some((joined, end)) = self.sent.get_mut(first).zip(end) {
            *joined = Sent { end, marks, segments, ..*joined };
        }
        self.sent.remove(second..next);
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
        if sent.is(mark::SACKED) {
            // A tail loss probe repeats the end of what was sacked meanwhile: each segment counts once.
            sent.segments = sent.segments().min(sent.segments);
            rest.segments -= sent.segments;
        }
        let again = sent.is_again();
        self.sent.insert(self.sent.after(place), rest);
        if again {
            self.note_again(rest.sent_at, at);
        }
    }
}
