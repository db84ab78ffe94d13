//! The side that empties a FIFO.

use super::{Arena, Broken, CAPACITY, CHUNK, Place};
use crate::sync::Ordering;

/// The emptying side. What it knows stands in its own memory.
#[derive(Debug, Default)]
pub struct Reader {
    head: u32,
}

impl Reader {
    /// Bytes that can be read.
    ///
    /// # Errors
    /// [`Broken`]: the writer says that there are more than a FIFO holds.
    #[inline]
    pub fn len(&self, place: &Place<'_>) -> Result<usize, Broken> {
        // Acquire: with the counter come the bytes.
        let length = place.tail.load(Ordering::Acquire).wrapping_sub(self.head);
        if length > CAPACITY { Err(Broken) } else { Ok(length as usize) }
    }

    /// Copies bytes from `offset` on, as many as there are and fit; gives how many.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn peek(
        &self,
        place: &Place<'_>,
        arena: &Arena,
        offset: usize,
        target: &mut [u8],
    ) -> Result<usize, Broken> {
        let count = self.len(place)?.saturating_sub(offset).min(target.len());
        let mut position = self.head.wrapping_add(offset as u32);
        let mut rest = target.get_mut(..count).unwrap_or_default();
        while !rest.is_empty() {
            let from = position % CHUNK;
            let (piece, left) = rest.split_at_mut(rest.len().min((CHUNK - from) as usize));
            // Relaxed: it came with the counter. Loaded once, checked by the arena.
            let chunk = place.chunk(position).load(Ordering::Relaxed);
            if !arena.read(chunk, from, piece) {
                return Err(Broken);
            }
            position = position.wrapping_add(piece.len() as u32);
            rest = left;
        }
        Ok(count)
    }

    /// Takes so many bytes out: no more than [`len`](Self::len) said.
    #[inline]
    pub fn consume(&mut self, place: &Place<'_>, count: usize) {
        self.head = self.head.wrapping_add(count as u32);
        // Release: what was done with the bytes is over.
        place.head.store(self.head, Ordering::Release);
    }
}
