//! A ring of descriptors on words, as memif and network cards have it: the filling side shows how far it
//! is with an index, the emptying side writes its own back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::words::{LINE, Packet, WORD, Words, copy_in, copy_out};
use super::{CAPACITY, Empty, Fill, SLOTS};

/// Words of a descriptor: the buffer's place, the length, and two that stay free.
const DESCRIPTOR: usize = 4;
/// Words from buffer to buffer: as far as slots with marks lie apart.
const STRIDE: usize = ((CAPACITY / WORD + 1).div_ceil(LINE) | 1) * LINE;

/// An index with its cache line, and that beside it, to itself.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Index(AtomicU32);

#[derive(Debug)]
struct Ring {
    /// Packets that were filled.
    filled: Index,
    /// Packets that were taken.
    taken: Index,
    descriptors: Words,
    buffers: Words,
    /// Packets after which an index is written.
    batch: u32,
}

impl Ring {
    #[inline(always)]
    fn descriptor(&self, position: u32) -> &[AtomicU32] {
        self.descriptors.part(position as usize % SLOTS * DESCRIPTOR, DESCRIPTOR)
    }
}

/// One end.
#[derive(Debug)]
pub(super) struct End {
    ring: Arc<Ring>,
    /// Where it stands, laps included.
    position: u32,
    /// The other's index as it was last seen.
    seen: u32,
}

/// The filling end and the emptying end.
pub(super) fn ring(batch: usize) -> (Filler, Emptier) {
    let ring = Arc::new(Ring {
        filled: Index::default(),
        taken: Index::default(),
        descriptors: Words::new(SLOTS * DESCRIPTOR),
        buffers: Words::new(SLOTS * STRIDE),
        batch: batch as u32,
    });
    let end = |ring| End { ring, position: 0, seen: 0 };
    (Filler(end(Arc::clone(&ring))), Emptier(end(ring)))
}

#[derive(Debug)]
pub(super) struct Filler(End);

#[derive(Debug)]
pub(super) struct Emptier(End);

impl Fill for Filler {
    #[inline(always)]
    fn push(&mut self, packet: &Packet) -> bool {
        let End { ring, position, seen } = &mut self.0;
        if position.wrapping_sub(*seen) as usize == SLOTS {
            *seen = ring.taken.0.load(Ordering::Acquire);
            if position.wrapping_sub(*seen) as usize == SLOTS {
                return false;
            }
        }
        let [place, length, ..] = ring.descriptor(*position) else { return false };
        let buffer = *position as usize % SLOTS * STRIDE;
        copy_in(ring.buffers.part(buffer, STRIDE), packet);
        place.store(buffer as u32, Ordering::Relaxed);
        length.store(packet.length as u32, Ordering::Relaxed);
        *position = position.wrapping_add(1);
        if *position % ring.batch == 0 {
            ring.filled.0.store(*position, Ordering::Release);
        }
        true
    }

    fn flush(&mut self) {
        self.0.ring.filled.0.store(self.0.position, Ordering::Release);
    }
}

impl Empty for Emptier {
    #[inline(always)]
    fn take(&mut self, into: &mut Packet) -> Option<u32> {
        let End { ring, position, seen } = &mut self.0;
        if position == seen {
            *seen = ring.filled.0.load(Ordering::Acquire);
            if position == seen {
                return None;
            }
        }
        let [place, length, ..] = ring.descriptor(*position) else { return None };
        let buffer = place.load(Ordering::Relaxed) as usize;
        let length = length.load(Ordering::Relaxed) as usize;
        let first = copy_out(ring.buffers.part(buffer, STRIDE), length, into);
        *position = position.wrapping_add(1);
        if *position % ring.batch == 0 {
            ring.taken.0.store(*position, Ordering::Release);
        }
        Some(first)
    }
}
