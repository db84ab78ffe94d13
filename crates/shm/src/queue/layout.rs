//! How large a queue is, and where its parts lie.

use super::mark::LONGEST;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes of the mark ahead of a packet.
pub(super) const MARK: usize = 4;
/// Where the consumer says that it sleeps, and where the producer does: each in a line of its own.
#[cfg(not(loom))]
pub(super) const CONSUMER_SLEEPS: usize = 0;
#[cfg(not(loom))]
pub(super) const PRODUCER_SLEEPS: usize = LINE;
/// The slots begin behind both.
pub(super) const SLOTS: usize = 2 * LINE;
/// Most slots of a ring.
const MOST: u32 = 1 << 20;

/// Why a layout is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Not a power of two in the range.
    #[error("{0} slots: it must be a power of two from 2 to {MOST}")]
    Slots(u32),
    /// Too little for a frame of minimum size, or too much for a mark.
    #[error("slots of {0} bytes: it must be 60 to {LONGEST}")]
    Capacity(u32),
    /// The memory is shorter than the layout says.
    #[error("the queue needs {needed} bytes of memory and has {given}")]
    Memory {
        /// Bytes.
        needed: usize,
        /// Bytes.
        given: usize,
    },
}

/// The size of a packet queue; both sides know it from elsewhere, it does not stand in the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    slots: u32,
    capacity: u32,
}

impl Layout {
    /// A ring of `slots`, each for up to `capacity` bytes of packet. Longer packets take several.
    ///
    /// # Errors
    /// Slots no power of two from 2 to 1,048,576; capacity not from 60 to 16,383.
    pub fn new(slots: u32, capacity: u32) -> Result<Self, LayoutError> {
        if !slots.is_power_of_two() || !(2..=MOST).contains(&slots) {
            return Err(LayoutError::Slots(slots));
        }
        if !(60..=LONGEST).contains(&capacity) {
            return Err(LayoutError::Capacity(capacity));
        }
        Ok(Self { slots, capacity })
    }

    /// Slots.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of a packet that one slot holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Longest packet: bytes. Half of the ring at most, so that one is not all.
    #[must_use]
    pub fn longest(&self) -> u32 {
        (self.slots / 2 * self.capacity).min(u32::from(u16::MAX))
    }

    /// From slot to slot: bytes. An odd number of cache lines: with an even one the marks, which are what
    /// both sides look at, would fall into few sets of the cache (37 instead of 25 cycles a packet were
    /// measured where slots lay 2,048 bytes apart).
    pub(super) fn stride(&self) -> usize {
        let lines = (MARK + self.capacity as usize).div_ceil(LINE);
        (lines | 1) * LINE
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        SLOTS + self.slots as usize * self.stride()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn only_sound_sizes_are_taken() {
        assert_eq!(Layout::new(3, 2048), Err(LayoutError::Slots(3)));
        assert_eq!(Layout::new(1, 2048), Err(LayoutError::Slots(1)));
        assert_eq!(Layout::new(1 << 21, 2048), Err(LayoutError::Slots(1 << 21)));
        assert_eq!(Layout::new(8, 59), Err(LayoutError::Capacity(59)));
        assert_eq!(Layout::new(8, 16_384), Err(LayoutError::Capacity(16_384)));
        let layout = Layout::new(8, 60).unwrap();
        assert_eq!((layout.stride(), layout.bytes()), (64, 128 + 8 * 64));
        assert_eq!(Layout::new(8, 2048).unwrap().stride(), 33 * 64);
        assert_eq!(Layout::new(1024, 2048).unwrap().longest(), 65_535);
    }
}
