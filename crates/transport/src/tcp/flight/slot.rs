//! A flight only as far as it is needed. What an idle connection keeps is a few words; a segment that is
//! alone in flight, as most requests and responses are, takes a few words more; everything else has a
//! [`Flight`].

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use super::{Delivered, Flight, Rack, Rate, Sent, mark};
use crate::moving::{Carried, ImportError, Reader, Writer};
use crate::sequence::Seq;

/// Flights kept for the next connection that needs one.
const SPARE: usize = 1024;

/// What deserves to be remembered while nothing is in flight.
#[derive(Debug)]
struct Memory {
    /// Least round-trip time: ns; 0: none yet.
    min_rtt: u32,
    /// Bytes delivered in all, modulo 2^32.
    delivered: u32,
    /// Bytes found lost in all, modulo 2^32.
    lost: u32,
    multiplier: u8,
    persist: u8,
    reordering: bool,
    app_limited: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            min_rtt: 0,
            delivered: 0,
            lost: 0,
            multiplier: 1,
            persist: 0,
            reordering: false,
            app_limited: false,
        }
    }
}

/// The only segment in flight, sent when nothing else was: all that a record would say beside.
#[derive(Debug, Clone, Copy)]
struct Lone {
    start: Seq,
    end: Seq,
    sent_at: u64,
}

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
    sent: VecDeque::new(),
    sacked: 0,
    lost: 0,
    lost_from: Seq(0),
    sacked_segments: 0,
    fresh_from: Seq(0),
    again: VecDeque::new(),
    duplicates: 0,
    rack: Rack::NEW,
    rate: Rate::NEW,
    reduction: crate::tcp::prr::Reduction::NONE,
    probe: super::Probe { end: Seq(0), again: false },
    undo_from: Seq(0),
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
    #[inline]
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

impl Memory {
    /// A lone segment was delivered.
    #[inline(always)]
    fn note_lone(&mut self, lone: &Lone, now: u64) {
        let rtt = now.saturating_sub(lone.sent_at).clamp(1, u64::from(u32::MAX)) as u32;
        self.min_rtt = if self.min_rtt == 0 { rtt } else { self.min_rtt.min(rtt) };
        self.delivered = self.delivered.wrapping_add(lone.end.since(lone.start));
    }

    /// What a lone segment's record says.
    #[inline]
    fn record(&self, marks: u8, size: u16, lone: &Lone) -> Sent {
        let Lone { start, end, sent_at } = *lone;
        Sent {
            start,
            end,
            marks: marks | if self.app_limited { mark::APP_LIMITED } else { 0 },
            size,
            segments: 0,
            sent_at,
            delivered_at: sent_at,
            first_sent_at: sent_at,
            delivered: self.delivered,
            tx_in_flight: end.since(start),
            lost: self.lost,
        }
    }

    /// A flight of a lone segment.
    #[cold]
    fn open(&self, mut flight: Box<Flight>, marks: u8, size: u16, lone: &Lone) -> Box<Flight> {
        self.restore(&mut flight, lone.start);
        flight.rate.restart(lone.sent_at);
        (flight.usage, flight.usage_end) = (lone.end.since(lone.start), lone.end);
        flight.sent.push_back(self.record(marks, size, lone));
        flight
    }

    /// A flight that begins at `start`.
    fn restore(&self, flight: &mut Flight, start: Seq) {
        flight.rack.begin(start);
        (flight.usage_end, flight.fresh_from) = (start, start);
        flight.rack.min_rtt = u64::from(self.min_rtt);
        flight.rack.reordering = self.reordering;
        flight.rack.multiplier = self.multiplier;
        flight.rack.persist = self.persist;
        flight.rate.resume(u64::from(self.delivered), self.lost, self.app_limited);
    }

    fn keep(&mut self, flight: &Flight) {
        *self = Self {
            min_rtt: flight.rack.min_rtt.min(u64::from(u32::MAX)) as u32,
            delivered: flight.rate.delivered as u32,
            lost: flight.rate.lost,
            reordering: flight.rack.reordering,
            multiplier: flight.rack.multiplier,
            persist: flight.rack.persist,
            app_limited: flight.rate.is_app_limited(),
        };
    }
}

carried!(Slot { content, memory });
carried!(Memory { min_rtt, delivered, lost, multiplier, persist, reordering, app_limited });
carried!(Lone { start, end, sent_at @ time });

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
mod tests {
    use super::*;

    fn round_trip(slot: &mut Slot, spares: &mut Spares, start: u32, whole: bool) -> Delivered {
        slot.push(spares, (Seq(start), Seq(start + 100)), (0, 100), 1000, whole);
        assert!(!slot.is_empty());
        let (mut news, ack) = (Delivered::new(5000, Seq(start), false), Seq(start + 100));
        if !slot.acknowledge_lone(ack, 5000, &mut news) {
            slot.acknowledge(ack, &mut news);
            slot.rack_update(&news, ack, ack);
            slot.rate.sample(news.bytes, news.newest.as_ref(), 5000);
            slot.rest(spares);
        }
        assert!(slot.is_empty() && slot.sent.capacity() == 0);
        // RACK's, which has nothing to find.
        news.latest = None;
        news
    }

    #[test]
    fn a_flight_that_was_another_connections_brings_nothing_along() {
        let mut spares = Spares::default();
        let (mut one, mut other) = (Slot::default(), Slot::default());
        round_trip(&mut one, &mut spares, 0, true);
        assert_eq!(spares.0.len(), 1);
        other.push(&mut spares, (Seq(7), Seq(8)), (0, 100), 0, true);
        assert_eq!((other.rate.delivered, other.rack.min_rtt, other.sent.len()), (0, 0, 1));
        one.push(&mut spares, (Seq(100), Seq(200)), (0, 100), 9000, true);
        assert_eq!((one.rate.delivered, one.rack.min_rtt), (100, 4000));
    }

    #[test]
    fn a_lone_segment_is_as_good_as_a_flight() {
        let mut spares = Spares::default();
        let (mut lone, mut whole) = (Slot::default(), Slot::default());
        for start in [0, 100] {
            let one = round_trip(&mut lone, &mut spares, start, false);
            let other = round_trip(&mut whole, &mut spares, start, true);
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
            assert_eq!(format!("{:?}", lone.memory), format!("{:?}", whole.memory));
        }
        for slot in [&mut lone, &mut whole] {
            let is_lone = matches!(slot.content, Content::Nothing);
            slot.push(&mut spares, (Seq(200), Seq(300)), (mark::PUSH, 100), 9000, !is_lone);
            slot.push(&mut spares, (Seq(300), Seq(400)), (0, 100), 9500, false);
        }
        assert_eq!(format!("{:?}", *lone), format!("{:?}", *whole));
        let mut news = Delivered::default();
        assert!(!lone.acknowledge_lone(Seq(300), 9900, &mut news));
    }
}
