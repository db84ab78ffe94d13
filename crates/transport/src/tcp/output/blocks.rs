//! SACK blocks on segments that carry data (RFC 2018 4).

use crate::emit::OptionBytes;
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::tcp::Tcb;
use crate::tcp::hot::flag;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// How many a segment with data carries. They cost half of its data at most.
    fn carried_blocks(&self) -> usize {
        if !self.hot.has(flag::SACK) || !self.cold.gaps.has_news() {
            return 0;
        }
        let fit = if self.hot.has(flag::TIMESTAMPS) { 3 } else { 4 };
        let half = usize::from(self.hot.mss / 2);
        self.cold.gaps.count().min(fit).min(half.saturating_sub(4) / 8)
    }

    /// Bytes of data of a full segment now: blocks that there are to tell take their room (RFC 6691).
    #[inline]
    pub(crate) fn full_size(&self) -> u32 {
        u32::from(self.hot.mss) - length(self.carried_blocks()) as u32
    }

    /// Adds what there is to tell, when a segment with so many bytes of data has room for it. Gives whether
    /// nothing is left untold.
    pub(super) fn add_blocks(&self, options: &mut OptionBytes, data: usize) -> bool {
        let count = self.carried_blocks();
        if count == 0 || data + length(count) > usize::from(self.hot.mss) {
            return count == 0;
        }
        let (blocks, _) = self.cold.gaps.blocks();
        options.sack(blocks.get(..count).unwrap_or(&[]));
        true
    }
}

/// Bytes of the option with so many blocks, aligned.
fn length(blocks: usize) -> usize {
    if blocks == 0 { 0 } else { 4 + 8 * blocks }
}
