//! The side that fills a FIFO.

use std::collections::VecDeque;

use super::{Arena, Broken, CAPACITY, CHUNK, Chunks, Place};
use crate::sync::Ordering;

/// The filling side. What it knows stands in its own memory.
#[derive(Debug, Default)]
pub struct Writer {
    tail: u32,
    /// The reader's counter, as it was seen last.
    head: u32,
    /// Chunks that hold something, in order.
    held: VecDeque<u32>,
    /// Position of the first byte of the first of them.
    first: u32,
}

impl Writer {
    /// Looks how far the reader is, and takes chunks back that it is through with.
    ///
    /// # Errors
    /// [`Broken`]: it has read more than was written, or has gone back.
    #[inline]
    pub fn look(&mut self, place: &Place<'_>, chunks: &mut Chunks) -> Result<(), Broken> {
        // Acquire: what the reader did with the bytes is over.
        let head = place.head.load(Ordering::Acquire);
        if head.wrapping_sub(self.head) > self.tail.wrapping_sub(self.head) {
            return Err(Broken);
        }
        self.head = head;
        let is_empty = head == self.tail;
        while !self.held.is_empty() && (is_empty || head.wrapping_sub(self.first) >= CHUNK) {
            self.held.pop_front().into_iter().for_each(|chunk| chunks.give(chunk));
            self.first = self.first.wrapping_add(CHUNK);
        }
        Ok(())
    }

    /// Bytes that the reader has not read, as far as is known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    /// These bytes.
    #[must_use]
    pub fn unread(&self, arena: &Arena) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        let (mut position, mut rest) = (self.head, &mut bytes[..]);
        while !rest.is_empty() {
            let from = position % CHUNK;
            let number = (position - from).wrapping_sub(self.first) / CHUNK;
            let (piece, left) = rest.split_at_mut(rest.len().min((CHUNK - from) as usize));
            // It is held as long as something in it was not read.
            self.held.get(number as usize).iter().for_each(|chunk| {
                arena.read(**chunk, from, piece);
            });
            position = position.wrapping_add(piece.len() as u32);
            rest = left;
        }
        bytes
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Whether it has chunks.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Bytes for which there is room, as far as is known, if there are chunks.
    #[must_use]
    pub fn room(&self) -> usize {
        // A stretch shares its word of the table with the one a lap ahead.
        let begin = self.head - self.head % CHUNK;
        begin.wrapping_add(CAPACITY).wrapping_sub(self.tail) as usize
    }

    /// Bytes that it takes at the moment: as there is room, and as there are chunks.
    #[must_use]
    pub fn takes(&self, chunks: &Chunks) -> usize {
        let end = self.first.wrapping_add(self.held.len() as u32 * CHUNK);
        let begun = if self.held.is_empty() { 0 } else { end.wrapping_sub(self.tail) as usize };
        // Without one, the next byte may lie in the middle of a chunk.
        let lost = if begun == 0 { (self.tail % CHUNK) as usize } else { 0 };
        (begun + chunks.free() * CHUNK as usize).saturating_sub(lost).min(self.room())
    }

    /// Writes as many of `bytes` as there is room for and chunks; gives how many. [`look`](Self::look) comes first.
    pub fn write(
        &mut self,
        place: &Place<'_>,
        memory: (&Arena, &mut Chunks),
        bytes: &[u8],
    ) -> usize {
        let written = self.put(place, memory, bytes);
        self.show(place);
        written
    }

    /// The same, but the reader sees nothing of it before [`show`](Self::show): what belongs together comes together.
    pub fn put(
        &mut self,
        place: &Place<'_>,
        (arena, chunks): (&Arena, &mut Chunks),
        bytes: &[u8],
    ) -> usize {
        let mut rest = bytes.get(..bytes.len().min(self.room())).unwrap_or_default();
        let mut written = 0;
        while !rest.is_empty() {
            let from = self.tail % CHUNK;
            let Some(chunk) = self.chunk(place, chunks) else { break };
            let (piece, left) = rest.split_at(rest.len().min((CHUNK - from) as usize));
            if !arena.write(chunk, from, piece) {
                break;
            }
            rest = left;
            written += piece.len();
            self.tail = self.tail.wrapping_add(piece.len() as u32);
        }
        written
    }

    /// The reader sees what was written.
    pub fn show(&self, place: &Place<'_>) {
        // Release: who sees the counter sees the bytes, and the numbers of their chunks.
        place.tail.store(self.tail, Ordering::Release);
    }

    /// The chunk for the next byte.
    fn chunk(&mut self, place: &Place<'_>, chunks: &mut Chunks) -> Option<u32> {
        let begin = self.tail - self.tail % CHUNK;
        if self.held.is_empty() {
            self.first = begin;
        }
        let number = (begin.wrapping_sub(self.first) / CHUNK) as usize;
        if let Some(chunk) = self.held.get(number) {
            return Some(*chunk);
        }
        let chunk = chunks.take()?;
        self.held.push_back(chunk);
        place.chunk(begin).store(chunk, Ordering::Relaxed);
        Some(chunk)
    }

    /// The session is over: its chunks are free. Whoever reads meanwhile reads another session's bytes of the same process.
    pub fn end(&mut self, chunks: &mut Chunks) {
        self.held.drain(..).for_each(|chunk| chunks.give(chunk));
    }
}
