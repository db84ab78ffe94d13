//! A plain ring in this process's memory, for tests, benches and applications within one process.

use std::mem::take;

use wire::checksum::Sum;

use super::{Buffers, ByteFifo, Grant, Opening, Pair};
use crate::handle::ConnectionId;

use pieces::{PIECE, Pieces};

mod pieces;

/// A ring of bytes. It takes memory only as far as it was written, and growth moves 16 KiB at most, however much the
/// ring holds.
#[derive(Debug, Default)]
pub struct Ring {
    memory: Memory,
    head: usize,
    length: usize,
    capacity: usize,
}

/// Where the bytes of a ring lie.
#[derive(Debug)]
enum Memory {
    /// While a piece is enough: in a circle, which doubles.
    Circle(Vec<u8>),
    /// Beyond that.
    Pieces(Box<Pieces>),
}

impl Default for Memory {
    fn default() -> Self {
        Self::Circle(Vec::new())
    }
}

impl Ring {
    /// An empty ring for `capacity` bytes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { memory: Memory::default(), head: 0, length: 0, capacity }
    }

    /// Reads and takes off the front. Returns bytes read.
    pub fn read(&mut self, target: &mut [u8]) -> usize {
        let count = self.peek(0, target);
        self.consume(count);
        count
    }

    /// Bytes from the head on that have a place.
    #[inline(always)]
    fn reach(&self) -> usize {
        match &self.memory {
            Memory::Circle(bytes) => bytes.len(),
            Memory::Pieces(pieces) => pieces.len() - self.head,
        }
    }

    /// Makes sure that `needed` bytes from the head on have a place.
    #[cold]
    fn reserve(&mut self, needed: usize) {
        let bytes = match &mut self.memory {
            Memory::Pieces(pieces) => return pieces.reserve(self.head + needed),
            Memory::Circle(bytes) => bytes,
        };
        // The data is straightened out.
        bytes.rotate_left(self.head);
        self.head = 0;
        if needed <= PIECE {
            let size = needed.next_power_of_two().min(self.capacity).max(needed);
            return bytes.resize(size, 0);
        }
        bytes.resize(PIECE, 0);
        let mut pieces = Pieces::new(take(bytes), self.capacity);
        pieces.reserve(needed);
        self.memory = Memory::Pieces(Box::new(pieces));
    }
}

/// Both parts of `count` bytes from `at` on in a circle; mostly the second is empty.
#[inline(always)]
fn parts(bytes: &[u8], at: usize, count: usize) -> (&[u8], &[u8]) {
    let start = around(at, bytes.len());
    let first = count.min(bytes.len() - start);
    let front = bytes.get(start..start + first).unwrap_or(&[]);
    (front, bytes.get(..count - first).unwrap_or(&[]))
}

/// A place in a circle of `length` bytes that is passed once at most.
#[inline(always)]
fn around(at: usize, length: usize) -> usize {
    if at >= length { at - length } else { at }
}

impl ByteFifo for Ring {
    #[inline]
    fn len(&self) -> usize {
        self.length
    }

    #[inline]
    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.length)
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline(always)]
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room().saturating_sub(offset));
        if count == 0 {
            return 0;
        }
        let bytes = bytes.get(..count).unwrap_or(&[]);
        let at = self.length + offset;
        if at + count > self.reach() {
            self.reserve(at + count);
        }
        let at = self.head + at;
        let circle = match &mut self.memory {
            Memory::Circle(circle) => circle,
            Memory::Pieces(pieces) => {
                pieces.write(at, bytes);
                return count;
            }
        };
        let start = around(at, circle.len());
        if let Some(target) = circle.get_mut(start..start + count) {
            target.copy_from_slice(bytes);
            return count;
        }
        let (front, back) = bytes.split_at(count.min(circle.len() - start));
        if let Some(target) = circle.get_mut(start..) {
            target.copy_from_slice(front);
        }
        if let Some(target) = circle.get_mut(..back.len()) {
            target.copy_from_slice(back);
        }
        count
    }

    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize {
        let at = self.length + offset;
        let count = target.len().min(self.reach().saturating_sub(at));
        self.copy(at, count, target)
    }

    #[inline]
    fn commit(&mut self, count: usize) {
        self.length += count.min(self.room()).min(self.reach() - self.length);
    }

    #[inline]
    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        let count = target.len().min(self.length.saturating_sub(offset));
        self.copy(offset, count, target)
    }

    #[inline]
    fn peek_summed(&self, offset: usize, target: &mut [u8]) -> (usize, Sum) {
        let count = target.len().min(self.length.saturating_sub(offset));
        let at = self.head + offset;
        let target = target.get_mut(..count).unwrap_or_default();
        if count == 0 {
            return (0, Sum::new());
        }
        let (front, back) = match &self.memory {
            Memory::Circle(bytes) => parts(bytes, at, count),
            Memory::Pieces(pieces) => return pieces.read_summed(at, target),
        };
        let (first, second) = target.split_at_mut(front.len());
        let sum = Sum::new().copy(front, first);
        if back.is_empty() {
            return (count, sum);
        }
        (count, sum.join(Sum::new().copy(back, second), front.len()))
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        let count = count.min(self.length);
        self.length -= count;
        self.head = match &mut self.memory {
            Memory::Circle(bytes) => around(self.head + count, bytes.len()),
            Memory::Pieces(pieces) => pieces.advance(self.head + count),
        };
    }

    #[inline]
    fn prefetch(&self) {
        for offset in [0, self.length] {
            let at = self.head + offset;
            let byte = match &self.memory {
                Memory::Circle(bytes) => bytes.get(around(at, bytes.len())),
                Memory::Pieces(pieces) => pieces.first(at),
            };
            if let Some(byte) = byte {
                tables::prefetch(byte);
            }
        }
    }

    fn resize(&mut self, capacity: usize) -> usize {
        // What was written out of order lies beyond the readable end, so memory is never taken away.
        self.capacity = capacity.max(self.reach().min(self.capacity));
        self.capacity
    }
}

impl Ring {
    /// Copies `count` bytes, `offset` behind the head, which have places. Gives bytes copied.
    #[inline(always)]
    fn copy(&self, offset: usize, count: usize, target: &mut [u8]) -> usize {
        let at = self.head + offset;
        let target = target.get_mut(..count).unwrap_or_default();
        if count == 0 {
            return 0;
        }
        let (front, back) = match &self.memory {
            Memory::Circle(bytes) => parts(bytes, at, count),
            Memory::Pieces(pieces) => return pieces.read(at, target),
        };
        let (first, second) = target.split_at_mut(front.len());
        first.copy_from_slice(front);
        if !back.is_empty() {
            second.copy_from_slice(back);
        }
        count
    }
}

/// Gives every connection a pair of [`Ring`]s.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rings;

impl Buffers for Rings {
    type Fifo = Ring;

    fn open(&mut self, opening: &Opening) -> Grant<Ring> {
        let (receive, transmit) = (Ring::new(opening.receive), Ring::new(opening.transmit));
        Grant::Given(Pair { receive, transmit })
    }

    fn close(&mut self, _: ConnectionId, _: Pair<Ring>) {}
}

#[cfg(test)]
mod tests;
