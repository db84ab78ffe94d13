//! Self-described packets on words: the mark says whose turn the slot is and how long the packet is. It is
//! the `shm` crate's layout; `docs/build.md` has it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::words::{LINE, Packet, WORD, Words, copy_in, copy_out};
use super::{CAPACITY, Empty, Fill, SLOTS};

/// Words of a slot: the mark and a packet, an odd number of cache lines.
const STRIDE: usize = ((CAPACITY / WORD + 1).div_ceil(LINE) | 1) * LINE;

/// One end: where it stands, laps included.
#[derive(Debug)]
pub(super) struct End {
    words: Arc<Words>,
    position: usize,
}

/// Both ends.
pub(super) fn ring() -> (End, End) {
    let words = Arc::new(Words::new(SLOTS * STRIDE));
    let end = |words| End { words, position: 0 };
    (end(Arc::clone(&words)), end(words))
}

impl End {
    /// The turn in which the slot at the position may be filled.
    #[inline(always)]
    fn turn(&self) -> u32 {
        (self.position / SLOTS * 2 % 4) as u32
    }
}

impl Fill for End {
    #[inline(always)]
    fn push(&mut self, packet: &Packet) -> bool {
        let slot = self.words.part(self.position % SLOTS * STRIDE, STRIDE);
        let Some((mark, data)) = slot.split_first() else { return false };
        if mark.load(Ordering::Acquire) % 4 != self.turn() {
            return false;
        }
        copy_in(data, packet);
        mark.store((packet.length as u32) << 2 | (self.turn() + 1), Ordering::Release);
        self.position += 1;
        true
    }

    fn flush(&mut self) {}
}

impl Empty for End {
    #[inline(always)]
    fn take(&mut self, into: &mut Packet) -> Option<u32> {
        let slot = self.words.part(self.position % SLOTS * STRIDE, STRIDE);
        let (mark, data) = slot.split_first()?;
        let word = mark.load(Ordering::Acquire);
        if word % 4 != self.turn() + 1 {
            return None;
        }
        let first = copy_out(data, (word >> 2) as usize, into);
        mark.store(self.turn() ^ 2, Ordering::Release);
        self.position += 1;
        Some(first)
    }
}
