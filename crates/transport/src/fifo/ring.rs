//! A plain ring in this process's memory, for tests, benches and applications within one process.

use std::mem::take;

use wire::checksum::Sum;

use super::pieces::{PIECE, PieceMemory, Pieces};
use super::{Buffers, ByteFifo, Grant, Opening, Pair};
use crate::handle::ConnectionId;

/// A ring of bytes. It takes memory only as far as it was written, and growth moves 16 KiB at most, however much the
/// ring holds.
#[derive(Debug, Default)]
pub struct Ring {
    memory: Memory,
    /// Less than a piece.
    head: u32,
    /// Bytes behind the readable end up to which something was written; `u32::MAX`: no fewer.
    beyond: u32,
    length: usize,
    capacity: usize,
}

/// Where the bytes of a ring lie.
#[derive(Debug)]
enum Memory {
    /// While a piece is enough: in a circle, which doubles.
    Circle(Vec<u8>),
    /// Beyond that.
    Pieces(Box<Pieces<Fresh>>),
}

/// Pieces from the allocator.
#[derive(Debug)]
struct Fresh;

impl PieceMemory for Fresh {
    fn borrow() -> Box<[u8]> {
        vec![0; PIECE].into()
    }

    fn give(_: Box<[u8]>) {}
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
        Self { capacity, ..Self::default() }
    }

    /// Reads and takes off the front. Returns bytes read.
    pub fn read(&mut self, target: &mut [u8]) -> usize {
        let count = self.peek(0, target);
        self.consume(count);
        count
    }

    /// Bytes of memory that it has.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.memory {
            Memory::Circle(bytes) => bytes.capacity(),
            Memory::Pieces(pieces) => pieces.memory_bytes(),
        }
    }

    /// Bytes from the head on that have a place.
    #[inline(always)]
    fn reach(&self) -> usize {
        match &self.memory {
            Memory::Circle(bytes) => bytes.len(),
            Memory::Pieces(pieces) => pieces.reach().saturating_sub(self.head as usize),
        }
    }

    /// Makes sure that `needed` bytes from the head on have a place.
    #[cold]
    fn reserve(&mut self, needed: usize) {
        // Pieces come when they are written to.
        let Memory::Circle(bytes) = &mut self.memory else { return };
        // The data is straightened out.
        bytes.rotate_left(self.head as usize);
        self.head = 0;
        if needed <= PIECE {
            let size = needed.next_power_of_two().min(self.capacity).max(needed);
            return bytes.resize(size, 0);
        }
        bytes.resize(PIECE, 0);
        self.memory = Memory::Pieces(Pieces::new(take(bytes).into()).into());
    }
}

/// Copies from `start` to the end of a circle, and on from its beginning.
#[cold]
fn copy_around(bytes: &[u8], start: usize, target: &mut [u8]) {
    let front = bytes.get(start..).unwrap_or(&[]);
    let (first, second) = target.split_at_mut(front.len().min(target.len()));
    first.iter_mut().zip(front).for_each(|(place, byte)| *place = *byte);
    second.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
}

/// The same, with the sum of what was copied.
#[cold]
fn sum_around(bytes: &[u8], start: usize, target: &mut [u8]) -> Sum {
    let front = bytes.get(start..).unwrap_or(&[]);
    let (first, second) = target.split_at_mut(front.len().min(target.len()));
    let sum = Sum::new().copy(front, first);
    sum.join(Sum::new().copy(bytes, second), front.len())
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
        self.beyond = self.beyond.max(u32::try_from(offset + count).unwrap_or(u32::MAX));
        let at = self.head as usize + at;
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
        let count = count.min(self.room()).min(self.reach() - self.length);
        self.length += count;
        if self.beyond != u32::MAX {
            self.beyond = self.beyond.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    #[inline]
    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        let count = target.len().min(self.length.saturating_sub(offset));
        self.copy(offset, count, target)
    }

    #[inline(always)]
    fn peek_summed(&self, offset: usize, target: &mut [u8]) -> (usize, Sum) {
        let count = target.len().min(self.length.saturating_sub(offset));
        let at = self.head as usize + offset;
        let target = target.get_mut(..count).unwrap_or_default();
        let bytes = match &self.memory {
            Memory::Circle(bytes) => bytes,
            Memory::Pieces(pieces) => return (count, pieces.read_summed(at, target)),
        };
        let start = around(at, bytes.len());
        match bytes.get(start..start + count) {
            Some(run) => (count, Sum::new().copy(run, target)),
            None => (count, sum_around(bytes, start, target)),
        }
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        let count = count.min(self.length);
        self.length -= count;
        let head = self.head as usize + count;
        self.head = match &mut self.memory {
            // What comes next has a run to itself, and memory that is near.
            _ if self.length == 0 && self.beyond == 0 => 0,
            Memory::Circle(bytes) => around(head, bytes.len()) as u32,
            Memory::Pieces(pieces) => pieces.advance(head) as u32,
        };
    }

    #[inline]
    fn prefetch(&self) {
        for offset in [0, self.length] {
            let at = self.head as usize + offset;
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
        let at = self.head as usize + offset;
        let target = target.get_mut(..count).unwrap_or_default();
        let bytes = match &self.memory {
            Memory::Circle(bytes) => bytes,
            Memory::Pieces(pieces) => {
                pieces.read(at, target);
                return count;
            }
        };
        let start = around(at, bytes.len());
        match bytes.get(start..start + count) {
            Some(run) => target.copy_from_slice(run),
            None => copy_around(bytes, start, target),
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
