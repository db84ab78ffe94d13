//! The side that empties slots.

use core::mem::MaybeUninit;

use super::mark::{Mark, Meta, Turns, turn};
use super::{Layout, Slots};
use crate::sync::Ordering;

/// How far ahead of its look the consumer asks for cache lines: slots. Four was best of 0, 4, 8 and 16:
/// 22 cycles a packet instead of 26 without (60 bytes, two cores).
const AHEAD: u32 = 4;

/// A packet that was taken out of a queue. Its slots go back with [`Consumer::release`], in any order.
#[derive(Debug)]
#[must_use = "its slots stay taken until it is released"]
pub struct Taken {
    position: u32,
    count: u32,
    length: u32,
    meta: Meta,
    queue: u32,
}

impl Taken {
    /// Bytes, 1 at least.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// What travelled with it.
    #[must_use]
    pub fn meta(&self) -> Meta {
        self.meta
    }

    /// Slots that it takes.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.count
    }
}

/// The emptying end of a packet queue. The producer is not trusted: whatever it writes, what comes out
/// are packets of 1 to [`Layout::longest`] bytes within the queue's memory, or nothing.
#[derive(Debug)]
pub struct Consumer {
    slots: Slots,
    turns: Turns,
    longest: u32,
    /// The next slot to look at.
    position: u32,
    /// Tells packets of different queues apart.
    id: u32,
    malformed: u64,
}

impl Consumer {
    pub(super) fn with(slots: Slots, layout: Layout, id: u32) -> Self {
        let turns = Turns::new(layout.slots());
        Self { slots, turns, longest: layout.longest(), position: 0, id, malformed: 0 }
    }

    /// Takes the next packet, if there is one.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "packets borrow nothing, but a queue is no iterator: it goes on"
    )]
    pub fn next(&mut self) -> Option<Taken> {
        let position = self.position;
        // Acquire: with the mark comes the packet.
        let word = self.slots.mark(position).load(Ordering::Acquire);
        if turn(word) != self.turns.full(position) {
            return None;
        }
        self.slots.prefetch(position.wrapping_add(AHEAD));
        let mark = Mark::decode(word);
        let sound = mark.length > 0 && mark.length as usize <= self.slots.capacity();
        if mark.more || !sound {
            return self.next_unusual(mark);
        }
        self.position = position.wrapping_add(1);
        Some(Taken { position, count: 1, length: mark.length, meta: mark.meta, queue: self.id })
    }

    /// A packet of several slots, or a mark that no producer of ours writes.
    #[cold]
    fn next_unusual(&mut self, first: Mark) -> Option<Taken> {
        let (position, capacity) = (self.position, self.slots.capacity() as u32);
        let (mut mark, mut count, mut length) = (first, 1, 0);
        let sound = loop {
            length += mark.length;
            let fits = length <= self.longest && mark.length <= capacity;
            if !mark.more || !fits || mark.length != capacity {
                break fits && !mark.more && mark.length > 0;
            }
            let next = position.wrapping_add(count);
            let word = self.slots.mark(next).load(Ordering::Acquire);
            if turn(word) != self.turns.full(next) {
                break false;
            }
            mark = Mark::decode(word);
            count += 1;
        };
        self.position = position.wrapping_add(count);
        let taken = Taken { position, count, length, meta: first.meta, queue: self.id };
        if sound {
            return Some(taken);
        }
        self.malformed += 1;
        self.release(taken);
        None
    }

    /// Copies a packet's bytes, as many as fit. Returns bytes copied. Safe against a producer that still
    /// writes: then the copy is a mixture.
    #[inline]
    pub fn copy(&self, taken: &Taken, target: &mut [u8]) -> usize {
        let target: *mut [u8] = target;
        // SAFETY: the caller's own slice, borrowed for this call; `copy_into` writes bytes to it and nothing uninitialised.
        self.copy_into(taken, unsafe { &mut *(target as *mut [MaybeUninit<u8>]) })
    }

    /// The same, to memory that need not be initialised. The bytes copied are initialised then, the others are as before.
    #[inline]
    pub fn copy_into(&self, taken: &Taken, target: &mut [MaybeUninit<u8>]) -> usize {
        if taken.queue != self.id {
            return 0;
        }
        let length = target.len().min(taken.length());
        let target = target.get_mut(..length).unwrap_or_default();
        for (place, piece) in target.chunks_mut(self.slots.capacity()).enumerate() {
            self.slots.read(taken.position.wrapping_add(place as u32), piece);
        }
        length
    }

    /// Gives a packet's slots back to the producer. One of another queue is not this one's to give.
    #[inline]
    pub fn release(&mut self, taken: Taken) {
        if taken.queue != self.id {
            return;
        }
        for place in 0..taken.count {
            let position = taken.position.wrapping_add(place);
            // Release: what was done with the packet is over.
            self.slots.mark(position).store(self.turns.returned(position), Ordering::Release);
        }
    }

    /// Whether a packet waits, without taking it.
    #[inline]
    #[must_use]
    pub fn has_next(&self) -> bool {
        let word = self.slots.mark(self.position).load(Ordering::Acquire);
        turn(word) == self.turns.full(self.position)
    }

    /// Slots that were looked at and passed so far, those of packets that made no sense too. It wraps.
    #[inline]
    #[must_use]
    pub fn passed(&self) -> u32 {
        self.position
    }

    /// Packets dropped because their marks made no sense.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

#[cfg(not(loom))]
impl Consumer {
    /// The emptying end of the queue in `region`, which is all zeros or was left by an end before: both
    /// ends begin anew together.
    ///
    /// # Errors
    /// [`LayoutError::Memory`](super::LayoutError::Memory) when the region is too short.
    pub fn new(region: crate::Region, layout: Layout) -> Result<Self, super::LayoutError> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static QUEUES: AtomicU32 = AtomicU32::new(0);
        let id = QUEUES.fetch_add(1, Ordering::Relaxed);
        Ok(Self::with(Slots::new(region, layout)?, layout, id))
    }

    /// To say that this side sleeps until something comes.
    #[must_use]
    pub fn sleeps(&self) -> crate::sleep::SleepWord<'_> {
        self.slots.consumer_sleeps()
    }

    /// Wakes the producer if this says that it waits for room: after packets were released.
    #[must_use]
    pub fn producer_sleeps(&self) -> crate::sleep::SleepWord<'_> {
        self.slots.producer_sleeps()
    }

    /// Trusts the producer: packets can be looked at and changed where they lie.
    ///
    /// # Safety
    /// The producer keeps to the protocol: it writes to a slot in its own turn only. A client may say so
    /// of the daemon; the daemon must not say so of a client. There is no second consumer, and nothing but
    /// the two ends reaches into the queue's memory.
    #[must_use]
    pub unsafe fn trust(self) -> Trusting {
        Trusting { consumer: self }
    }
}

/// A consumer whose producer keeps to the protocol.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct Trusting {
    consumer: Consumer,
}

#[cfg(not(loom))]
impl Trusting {
    /// The packet's bytes, where they lie: of its slot `place`, 0 being the first. `None` beyond the last,
    /// or for a packet of another queue.
    #[inline]
    #[must_use]
    pub fn bytes(&self, taken: &Taken, place: u32) -> Option<&[u8]> {
        let (position, length) = self.piece(taken, place)?;
        // SAFETY: `Consumer::trust` says that the producer waits for its turn, which `taken` holds back.
        Some(unsafe { self.consumer.slots.bytes(position, length) })
    }

    /// The same, to change.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self, taken: &mut Taken, place: u32) -> Option<&mut [u8]> {
        let (position, length) = self.piece(taken, place)?;
        // SAFETY: as above, and no other borrow lives: this one is of the whole consumer.
        Some(unsafe { self.consumer.slots.bytes_mut(position, length) })
    }

    fn piece(&self, taken: &Taken, place: u32) -> Option<(u32, usize)> {
        if taken.queue != self.consumer.id || place >= taken.count {
            return None;
        }
        let before = place as usize * self.consumer.slots.capacity();
        let length = (taken.length() - before).min(self.consumer.slots.capacity());
        Some((taken.position.wrapping_add(place), length))
    }
}

#[cfg(not(loom))]
impl std::ops::Deref for Trusting {
    type Target = Consumer;

    fn deref(&self) -> &Consumer {
        &self.consumer
    }
}

#[cfg(not(loom))]
impl std::ops::DerefMut for Trusting {
    fn deref_mut(&mut self) -> &mut Consumer {
        &mut self.consumer
    }
}
