//! A flight only as far as it is needed. What an idle connection keeps is a few words; a segment that is
//! alone in flight, as most requests and responses are, takes a few words more; everything else has a
//! [`Flight`].

use std::ops::{Deref, DerefMut};

use super::{Delivered, Flight, Rack, Rate, Sent, mark};
use crate::carried::{Carried, ImportError, Reader, Writer};
use crate::sequence::Seq;
use tables::PagedList;

use memory::{Lone, Memory};

mod memory;

/// Flights kept for the next connection that needs one.
const SPARE: usize = 512;

#[derive(Debug, Default)]
enum Content {
    #[default]
    Nothing,
    /// With its marks, and the size of its segments.
    Lone(u8, u16, Lone),
    Flight(Box<Flight>),
}

/// The place of a connection's flight. Read as a [`Flight`] it is empty unless there is one; what asks for
/// more than its counters calls [`open`](Self::open) before. Writing makes one.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    content: Content,
    memory: Memory,
}

/// Flights that no connection uses, the most recently used first out: its memory is near.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes go on to connections as they are")]
pub(crate) struct Spares(Vec<Box<Flight>>);

static EMPTY: Flight = Flight {
    sent: PagedList::new(),
    sacked: 0,
    lost: 0,
    lost_from: Seq(0),
    sacked_segments: 0,
    fresh_from: Seq(0),
    again: PagedList::new(),
    duplicates: 0,
    rack: Rack::NEW,
    rate: Rate::NEW,
    reduction: crate::tcp::prr::Reduction::NONE,
    probe: super::Probe { end: Seq(0), again: false },
    undo_from: Seq(0),
    may_undo: false,
    usage: 0,
    usage_end: Seq(0),
};

impl Slot {
    /// Whether nothing is in flight.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match &self.content {
            Content::Nothing => true,
            Content::Lone(..) => false,
            Content::Flight(flight) => flight.is_empty(),
        }
    }

    /// Whether nothing is in flight, and nothing is remembered of a flight but what the next begins with.
    #[inline]
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.content, Content::Nothing)
    }

    /// Notes a single segment, all that the application has to send, while at rest.
    #[inline(always)]
    pub(crate) fn push_lone(&mut self, (start, end): (Seq, Seq), marks: u8, size: u16, now: u64) {
        self.content = Content::Lone(marks, size, Lone { start, end, sent_at: now });
        self.memory.app_limited = true;
    }

    /// When the segment that was not acknowledged for the longest was sent last: ns.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u64> {
        match &self.content {
            Content::Nothing => None,
            Content::Lone(_, _, lone) => Some(lone.sent_at),
            Content::Flight(flight) => flight.sent.front().map(|sent| sent.sent_at),
        }
    }

    /// Whether some of it arrived or was lost while what was sent before it is in flight yet.
    #[inline]
    pub(crate) fn has_holes(&self) -> bool {
        match &self.content {
            Content::Flight(flight) => flight.sacked != 0 || flight.lost != 0,
            _ => false,
        }
    }

    /// Whether a single segment, of `mss` bytes at most, is in flight.
    #[inline]
    pub(crate) fn is_single(&self, mss: u16) -> bool {
        let length = match &self.content {
            Content::Nothing => 0,
            Content::Lone(_, _, lone) => lone.end.since(lone.start),
            Content::Flight(flight) if flight.sent.len() > 1 => return false,
            Content::Flight(flight) => flight.sent.front().map_or(0, Sent::length),
        };
        length <= u32::from(mss) + 1
    }

    /// Most bytes that were in flight in this round trip, lost and sacked ones included.
    #[inline]
    pub(crate) fn usage(&self) -> u32 {
        match &self.content {
            Content::Nothing => 0,
            Content::Lone(_, _, lone) => lone.end.since(lone.start),
            Content::Flight(flight) => flight.usage,
        }
    }

    /// Something was sent up to `next`; `full`: the congestion window is full now; `was_full`: it was in
    /// this round trip. Gives whether it was in the round trip that goes on.
    #[inline]
    pub(crate) fn note_use(&mut self, una: Seq, next: Seq, full: bool, was_full: bool) -> bool {
        let Content::Flight(flight) = &mut self.content else { return full };
        let out = next.since(una);
        let over = !una.before(flight.usage_end);
        if over || full || (!was_full && out > flight.usage) {
            (flight.usage, flight.usage_end) = (out, next);
            return full;
        }
        was_full
    }

    /// Notes what is sent for the first time. `whole`: congestion control hears of every acknowledgment,
    /// so that all there is to know of it is kept. Gives the record.
    #[inline]
    pub(crate) fn push(
        &mut self,
        spares: &mut Spares,
        (start, end): (Seq, Seq),
        (marks, size): (u8, u16),
        now: u64,
        whole: bool,
    ) -> Sent {
        if matches!(self.content, Content::Nothing) && !whole {
            let lone = Lone { start, end, sent_at: now };
            self.content = Content::Lone(marks, size, lone);
            return self.memory.record(marks, size, &lone);
        }
        self.push_whole(spares, (start, end), (marks, size), now)
    }

    fn push_whole(
        &mut self,
        spares: &mut Spares,
        (start, end): (Seq, Seq),
        (marks, size): (u8, u16),
        now: u64,
    ) -> Sent {
        if matches!(self.content, Content::Nothing) {
            let mut flight = spares.0.pop().unwrap_or_default();
            self.memory.restore(&mut flight, start);
            self.content = Content::Flight(flight);
        } else {
            self.open(spares);
        }
        Flight::push(self, start, end, marks, size, now)
    }

    /// Makes a flight of a lone segment.
    #[inline]
    pub(crate) fn open(&mut self, spares: &mut Spares) {
        if let Content::Lone(marks, size, lone) = self.content {
            let flight = spares.0.pop().unwrap_or_default();
            self.content = Content::Flight(self.memory.open(flight, marks, size, &lone));
        }
    }

    /// Takes off the only segment in flight, if it was sent once, is all data, and ends at `ack`. Gives when it was
    /// sent: ns.
    #[inline(always)]
    pub(crate) fn take_message(&mut self, ack: Seq, now: u64) -> Option<u64> {
        let Content::Lone(marks, _, lone) = self.content else { return None };
        if lone.end != ack || marks & (mark::SYN | mark::FIN | mark::RETRANSMITTED) != 0 {
            return None;
        }
        self.content = Content::Nothing;
        self.memory.note_lone(&lone, now);
        Some(lone.sent_at)
    }

    /// Takes off the only segment in flight, if that is all there is and `ack` covers it. Gives whether.
    #[inline]
    pub(crate) fn acknowledge_lone(&mut self, ack: Seq, now: u64, news: &mut Delivered) -> bool {
        let Content::Lone(marks, size, lone) = self.content else { return false };
        if lone.end != ack {
            return false;
        }
        let sent = self.memory.record(marks, size, &lone);
        self.content = Content::Nothing;
        news.acked = sent.length();
        news.take(&sent);
        news.marks = marks & (mark::SYN | mark::FIN);
        self.memory.note_lone(&lone, now);
        true
    }

    /// Nothing is in flight any more, and no recovery goes on.
    #[inline]
    pub(crate) fn rest(&mut self, spares: &mut Spares) {
        let Content::Flight(mut flight) = std::mem::take(&mut self.content) else { return };
        self.memory.keep(&flight);
        if spares.0.len() < SPARE {
            flight.clear();
            spares.0.push(flight);
        }
    }

    /// The application has no more to send; `pipe`: bytes in flight.
    #[inline]
    pub(crate) fn limit(&mut self, pipe: u32) {
        match &mut self.content {
            Content::Flight(flight) => flight.rate.limit(pipe),
            _ => self.memory.app_limited = true,
        }
    }

    #[cold]
    fn make(&self) -> Box<Flight> {
        let mut flight = Box::default();
        match &self.content {
            Content::Lone(marks, size, lone) => self.memory.open(flight, *marks, *size, lone),
            _ => {
                self.memory.restore(&mut flight, Seq(0));
                flight
            }
        }
    }

    /// Least round-trip time: us, rounded up; 0: none yet.
    pub(crate) fn min_rtt(&self) -> u32 {
        let ns = match &self.content {
            Content::Flight(flight) => flight.rack.min_rtt,
            _ => u64::from(self.memory.min_rtt),
        };
        ns.div_ceil(1000).min(u64::from(u32::MAX)) as u32
    }

    /// Asks the cache for what lies elsewhere.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Content::Flight(flight) = &self.content {
            tables::prefetch(&**flight);
        }
    }
}

carried!(Slot { content, memory });

impl Carried for Content {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::Nothing => 0u8.put(to),
            Self::Lone(marks, size, lone) => {
                1u8.put(to);
                marks.put(to);
                size.put(to);
                lone.put(to);
            }
            Self::Flight(flight) => {
                2u8.put(to);
                flight.put(to);
            }
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        match u8::take(from)? {
            0 => Ok(Self::Nothing),
            1 => {
                let (marks, size) = Carried::take(from)?;
                Ok(Self::Lone(marks, size, Carried::take(from)?))
            }
            2 => {
                let mut flight: Box<Flight> = Carried::take(from)?;
                flight.sort_again();
                Ok(Self::Flight(flight))
            }
            _ => from.refuse(),
        }
    }
}

impl Slot {
    /// Whether it holds all that is in flight from `una` to `next`, and nothing else.
    pub(crate) fn is_sound(&self, una: Seq, next: Seq) -> bool {
        match &self.content {
            Content::Nothing => una == next,
            Content::Lone(_, _, lone) => {
                (lone.start, lone.end) == (una, next) && lone.start.before(lone.end)
            }
            Content::Flight(flight) => flight.is_sound(una, next),
        }
    }
}

impl Deref for Slot {
    type Target = Flight;

    #[inline(always)]
    fn deref(&self) -> &Flight {
        match &self.content {
            Content::Flight(flight) => flight,
            _ => &EMPTY,
        }
    }
}

impl DerefMut for Slot {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Flight {
        if !matches!(self.content, Content::Flight(_)) {
            self.content = Content::Flight(self.make());
        }
        match &mut self.content {
            Content::Flight(flight) => flight,
            _ => unreachable!("it was made"),
        }
    }
}

#[cfg(test)]
mod tests;
