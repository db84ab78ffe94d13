//! The side that fills slots.

use super::mark::{Mark, Meta, Turns, turn};
use super::{Layout, Slots};
use crate::sync::Ordering;

/// Why a packet was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The consumer has not returned enough slots.
    #[error("the queue is full: the other side has not returned its slots yet")]
    Full,
    /// Longer than the queue can ever take.
    #[error("a packet of {length} bytes; the queue takes {longest} at most")]
    TooLong {
        /// Bytes.
        length: usize,
        /// Bytes.
        longest: usize,
    },
    /// No bytes.
    #[error("a packet without bytes")]
    Empty,
}

/// Most packets of a burst that are published together. Measured with 60 bytes, two cores, bursts of 32 and 256:
/// 45 to 53 cycles a packet with 4, 39 to 50 with 8, 35 to 47 with 16, 39 to 44 with 32.
const GROUP: usize = 16;

/// The filling end of a packet queue.
#[derive(Debug)]
pub struct Producer {
    slots: Slots,
    turns: Turns,
    longest: usize,
    /// The next slot to fill.
    position: u32,
}

impl Producer {
    pub(super) fn with(slots: Slots, layout: Layout) -> Self {
        Self {
            slots,
            turns: Turns::new(layout.slots()),
            longest: layout.longest() as usize,
            position: 0,
        }
    }

    #[inline(always)]
    fn is_empty(&self, position: u32) -> bool {
        // Acquire: what the consumer did with the slot is over.
        turn(self.slots.mark(position).load(Ordering::Acquire)) == self.turns.empty(position)
    }

    #[inline(always)]
    fn publish(&self, position: u32, mark: Mark) {
        let word = mark.encode(self.turns.full(position));
        // Release: who sees the mark sees the packet.
        self.slots.mark(position).store(word, Ordering::Release);
    }

    /// Puts a copy of a packet into the queue; a long one takes several slots, all or none.
    ///
    /// # Errors
    /// [`PushError::Full`]: try again later. Else this packet never goes.
    #[inline]
    pub fn push(&mut self, packet: &[u8], meta: Meta) -> Result<(), PushError> {
        if packet.len() > self.slots.capacity() || packet.is_empty() {
            return self.push_long(packet, meta);
        }
        if !self.is_empty(self.position) {
            return Err(PushError::Full);
        }
        self.slots.write(self.position, packet);
        self.publish(self.position, Mark { length: packet.len() as u32, more: false, meta });
        self.advance(1);
        Ok(())
    }

    /// Puts copies of up to `count` packets into the queue, as many as find room; `packet` gives each by its
    /// number. Returns how many went: fewer when the queue is full, or when the next packet never goes
    /// ([`push`](Self::push) says why).
    ///
    /// Faster than one by one. Packets that follow each other become visible together, the first one last: a
    /// consumer that waits for it leaves the cache lines of the others alone while they are written.
    #[inline]
    pub fn push_burst<'p>(
        &mut self,
        count: usize,
        packet: impl Fn(usize) -> (&'p [u8], Meta),
    ) -> usize {
        let mut sent = 0;
        while sent < count {
            let group = (count - sent).min(GROUP);
            let went = match self.push_group(group, |number| packet(sent + number)) {
                0 => {
                    let (bytes, meta) = packet(sent);
                    usize::from(self.push(bytes, meta).is_ok())
                }
                some => some,
            };
            if went == 0 {
                break;
            }
            sent += went;
        }
        sent
    }

    /// Packets of one slot each, up to the first that is none.
    #[inline(always)]
    fn push_group<'p>(&mut self, most: usize, packet: impl Fn(usize) -> (&'p [u8], Meta)) -> usize {
        let (first, capacity) = (self.position, self.slots.capacity());
        let at = |number: usize| first.wrapping_add(number as u32);
        let goes = |number: &usize| {
            let length = packet(*number).0.len();
            length > 0 && length <= capacity && self.is_empty(at(*number))
        };
        // Beyond the ring's length slots would be counted twice.
        let count = (0..most.min(self.slots.count() as usize)).take_while(goes).count();
        for number in (0..count).rev() {
            let (bytes, meta) = packet(number);
            self.slots.write(at(number), bytes);
            self.publish(at(number), Mark { length: bytes.len() as u32, more: false, meta });
        }
        self.advance(count as u32);
        count
    }

    #[cold]
    fn push_long(&mut self, packet: &[u8], meta: Meta) -> Result<(), PushError> {
        if packet.is_empty() {
            return Err(PushError::Empty);
        }
        if packet.len() > self.longest {
            return Err(PushError::TooLong { length: packet.len(), longest: self.longest });
        }
        let pieces = packet.chunks(self.slots.capacity());
        let count = pieces.len() as u32;
        let at = |place: u32| self.position.wrapping_add(place);
        if !(0..count).all(|place| self.is_empty(at(place))) {
            return Err(PushError::Full);
        }
        // From the last to the first: who sees the first sees all.
        for (place, piece) in pieces.enumerate().rev() {
            let place = place as u32;
            self.slots.write(at(place), piece);
            let mark = Mark { length: piece.len() as u32, more: place + 1 < count, meta };
            self.publish(at(place), mark);
        }
        self.advance(count);
        Ok(())
    }

    #[inline(always)]
    fn advance(&mut self, count: u32) {
        self.position = self.position.wrapping_add(count);
    }

    /// Slots of the queue.
    #[inline]
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots.count()
    }

    /// Bytes of a packet that takes one slot, at most.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Bytes of a packet, however many slots it takes, at most.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether the next packet of one slot finds room.
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.is_empty(self.position)
    }

    /// Whether so many packets of one slot each find room, as far as the consumer gives slots back in order: only the last of them is
    /// looked at.
    #[inline]
    #[must_use]
    pub fn has_free(&self, slots: u32) -> bool {
        let slots = slots.clamp(1, self.slots.count());
        self.is_empty(self.position.wrapping_add(slots - 1))
    }

    /// Whether the next packet finds room, of so many bytes.
    #[inline]
    #[must_use]
    pub fn has_room_for(&self, length: usize) -> bool {
        let slots = length.div_ceil(self.slots.capacity()).max(1);
        // Beyond the ring's length slots would be counted twice.
        slots <= self.slots.count() as usize
            && (0..slots as u32).all(|place| self.is_empty(self.position.wrapping_add(place)))
    }

    /// Whether the consumer has returned every slot: nothing that was sent is on the way any more.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        // A slot that was never filled is in the same turn as one that was returned.
        (1..=self.slots.count()).all(|back| {
            let position = self.position.wrapping_sub(back);
            turn(self.slots.mark(position).load(Ordering::Acquire)) == self.turns.returned(position)
        })
    }
}

#[cfg(not(loom))]
impl Producer {
    /// The filling end of the queue in `region`, which is all zeros or was left by an end before: both
    /// ends begin anew together.
    ///
    /// # Errors
    /// [`LayoutError::Memory`](super::LayoutError::Memory) when the region is too short.
    pub fn new(region: crate::Region, layout: Layout) -> Result<Self, super::LayoutError> {
        Ok(Self::with(Slots::new(region, layout)?, layout))
    }

    /// Wakes the consumer if this says that it sleeps: after a burst was pushed.
    #[must_use]
    pub fn consumer_sleeps(&self) -> crate::sleep::SleepWord<'_> {
        self.slots.consumer_sleeps()
    }

    /// To say that this side waits for room.
    #[must_use]
    pub fn sleeps(&self) -> crate::sleep::SleepWord<'_> {
        self.slots.producer_sleeps()
    }
}

#[cfg(not(loom))]
impl Producer {
    /// Trusts the consumer: packets can be made where they are to lie.
    ///
    /// # Safety
    /// The consumer keeps to the protocol: it looks at a slot in its own turn only. A client may say so of the daemon; the
    /// daemon must not say so of a client. There is no second producer, and nothing but the two ends reaches into the queue's
    /// memory.
    #[must_use]
    pub unsafe fn trust(self) -> Filling {
        Filling { producer: self }
    }
}

/// A producer whose consumer keeps to the protocol.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct Filling {
    producer: Producer,
}

#[cfg(not(loom))]
impl Filling {
    /// The next slot, to make a packet of one slot in; what it holds means nothing. `None`: there is no room, or the packet
    /// takes more than a slot.
    #[inline]
    #[must_use]
    pub fn slot(&mut self, length: usize) -> Option<&mut [u8]> {
        let Self { producer } = self;
        if length > producer.slots.capacity() || !producer.has_room() {
            return None;
        }
        // SAFETY: the slot is empty, so it is this side's turn until `publish`; the consumer waits for its own, says whoever
        // called `trust`. No other borrow lives: this one is of the whole producer.
        Some(unsafe { producer.slots.bytes_mut(producer.position, length) })
    }

    /// Shows the packet that was made in the next slot: its first bytes, so many.
    #[inline]
    pub fn publish(&mut self, length: usize, meta: Meta) {
        let Self { producer } = self;
        let fits = (1..=producer.slots.capacity()).contains(&length);
        if fits && producer.has_room() {
            let mark = Mark { length: length as u32, more: false, meta };
            producer.publish(producer.position, mark);
            producer.advance(1);
        }
    }
}

#[cfg(not(loom))]
impl std::ops::Deref for Filling {
    type Target = Producer;

    fn deref(&self) -> &Producer {
        &self.producer
    }
}

#[cfg(not(loom))]
impl std::ops::DerefMut for Filling {
    fn deref_mut(&mut self) -> &mut Producer {
        &mut self.producer
    }
}
