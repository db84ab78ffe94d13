//! A connection's data: a ring that has memory only while it holds something. An idle session has none; a busy
//! one gets back what was in the cache a moment ago, whichever session had it then. Growth moves 16 KiB at most, however
//! much there is.

use std::mem::take;

use transport::ByteFifo;
use transport::fifo::{PIECE, Pieces};
use wire::checksum::Sum;

use pool::Pooled;
pub use pool::held_bytes;
pub(crate) use pool::{borrow, give};

mod pool;

/// A ring of bytes.
#[derive(Debug)]
pub(crate) struct Fifo {
    memory: Memory,
    /// Where what is read begins; less than a piece.
    head: u32,
    /// Bytes that can be read.
    length: u32,
    /// The same with what was written beyond them.
    extent: u32,
    capacity: u32,
}

/// Where the bytes lie.
#[derive(Debug)]
enum Memory {
    /// While a piece is enough: in a circle of a power of two, or nothing.
    Circle(Box<[u8]>),
    /// Beyond that.
    Pieces(Box<Pieces<Pooled>>),
}

impl Default for Memory {
    fn default() -> Self {
        Self::Circle(Box::default())
    }
}

/// Both parts of `count` bytes of a circle from `start` on; mostly the second is empty.
#[inline]
fn parts(circle: &[u8], start: usize, count: usize) -> (&[u8], &[u8]) {
    let first = count.min(circle.len() - start);
    let front = circle.get(start..start + first).unwrap_or(&[]);
    (front, circle.get(..count - first).unwrap_or(&[]))
}

/// A place in a circle.
#[inline]
fn around(circle: &[u8], at: usize) -> usize {
    at & circle.len().wrapping_sub(1)
}

/// Writes to a circle that has room for all of it.
#[inline]
fn write_around(circle: &mut [u8], at: usize, bytes: &[u8]) {
    let start = around(circle, at);
    if let Some(place) = circle.get_mut(start..start + bytes.len()) {
        return place.copy_from_slice(bytes);
    }
    let (front, back) = bytes.split_at(bytes.len().min(circle.len() - start));
    if let Some(place) = circle.get_mut(start..) {
        place.copy_from_slice(front);
    }
    if let Some(place) = circle.get_mut(..back.len()) {
        place.copy_from_slice(back);
    }
}

impl Fifo {
    /// An empty one for so many bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.min(1 << 30) as u32;
        Self { memory: Memory::default(), head: 0, length: 0, extent: 0, capacity }
    }

    /// Makes sure that so many bytes from the head on have memory, or get it when they are written.
    #[cold]
    fn grow(&mut self, needed: usize) {
        let Memory::Circle(circle) = &mut self.memory else { return };
        let mut larger = borrow(needed.min(PIECE));
        let start = around(circle, self.head as usize);
        let (front, back) = parts(circle, start, self.extent as usize);
        if let Some((one, two)) = larger.split_at_mut_checked(front.len()) {
            one.copy_from_slice(front);
            two.iter_mut().zip(back).for_each(|(place, byte)| *place = *byte);
        }
        let old = take(circle);
        if !old.is_empty() {
            give(old);
        }
        self.head = 0;
        self.memory = match needed {
            0..=PIECE => Memory::Circle(larger),
            _ => Memory::Pieces(Pieces::new(larger).into()),
        };
    }

    #[inline]
    fn release(&mut self) {
        self.head = 0;
        let Memory::Circle(circle) = &mut self.memory else { return self.release_pieces() };
        let circle = take(circle);
        if !circle.is_empty() {
            give(circle);
        }
    }

    #[cold]
    fn release_pieces(&mut self) {
        if let Memory::Pieces(pieces) = take(&mut self.memory) {
            pieces.release();
        }
    }

    /// Puts bytes in front of what is there, whatever the capacity.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        let mut rest = vec![0; self.extent as usize];
        self.copy(0, &mut rest, self.extent);
        let whole = bytes.len() + rest.len();
        let mut larger = Self::new(whole.max(self.capacity as usize));
        larger.write_at(0, bytes);
        larger.write_at(bytes.len(), &rest);
        larger.commit(bytes.len() + self.len());
        *self = larger;
    }

    /// Adds bytes behind what is there, whatever the capacity.
    pub(crate) fn overfill(&mut self, bytes: &[u8]) {
        self.resize((self.len() + bytes.len()).max(self.capacity as usize));
        self.append(bytes);
    }

    /// Writes what no circle that is there has memory for, `at` behind the head.
    #[cold]
    fn write_far(&mut self, at: usize, bytes: &[u8]) {
        self.grow(at + bytes.len());
        let at = self.head as usize + at;
        match &mut self.memory {
            Memory::Circle(circle) => write_around(circle, at, bytes),
            Memory::Pieces(pieces) => pieces.write(at, bytes),
        }
    }

    #[inline]
    fn copy(&self, offset: usize, target: &mut [u8], end: u32) -> usize {
        let count = target.len().min((end as usize).saturating_sub(offset));
        if count == 0 {
            return 0;
        }
        let at = self.head as usize + offset;
        let circle = match &self.memory {
            Memory::Circle(circle) => circle,
            Memory::Pieces(pieces) => {
                pieces.read(at, target.get_mut(..count).unwrap_or_default());
                return count;
            }
        };
        let (front, back) = parts(circle, around(circle, at), count);
        let (one, two) = target.split_at_mut(front.len());
        one.copy_from_slice(front);
        if let (false, Some(two)) = (back.is_empty(), two.get_mut(..back.len())) {
            two.copy_from_slice(back);
        }
        count
    }
}

impl ByteFifo for Fifo {
    #[inline]
    fn len(&self) -> usize {
        self.length as usize
    }

    #[inline]
    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.length) as usize
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity as usize
    }

    #[inline]
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room().saturating_sub(offset));
        let bytes = bytes.get(..count).unwrap_or(&[]);
        if count == 0 {
            return 0;
        }
        let at = self.len() + offset;
        let end = at + count;
        match &mut self.memory {
            Memory::Circle(circle) if end <= circle.len() => {
                write_around(circle, self.head as usize + at, bytes);
            }
            Memory::Circle(circle) if circle.is_empty() && end <= PIECE => {
                let mut piece = borrow(end);
                if let Some(place) = piece.get_mut(at..end) {
                    place.copy_from_slice(bytes);
                }
                *circle = piece;
            }
            _ => self.write_far(at, bytes),
        }
        self.extent = self.extent.max(end as u32);
        count
    }

    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize {
        self.copy(self.len() + offset, target, self.extent)
    }

    #[inline]
    fn commit(&mut self, count: usize) {
        self.length += (count.min(1 << 30) as u32).min(self.extent - self.length);
    }

    #[inline]
    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        self.copy(offset, target, self.length)
    }

    #[inline]
    fn peek_summed(&self, offset: usize, target: &mut [u8]) -> (usize, Sum) {
        let count = target.len().min(self.len().saturating_sub(offset));
        if count == 0 {
            return (0, Sum::new());
        }
        let at = self.head as usize + offset;
        let circle = match &self.memory {
            Memory::Circle(circle) => circle,
            Memory::Pieces(pieces) => {
                return (
                    count,
                    pieces.read_summed(at, target.get_mut(..count).unwrap_or_default()),
                );
            }
        };
        let (front, back) = parts(circle, around(circle, at), count);
        let (one, two) = target.split_at_mut(front.len());
        let sum = Sum::new().copy(front, one);
        if back.is_empty() {
            return (count, sum);
        }
        (count, sum.join(Sum::new().copy(back, two), front.len()))
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        let count = count.min(self.len());
        self.length -= count as u32;
        self.extent -= count as u32;
        if self.extent == 0 {
            return self.release();
        }
        let head = self.head as usize + count;
        self.head = match &mut self.memory {
            Memory::Circle(circle) => around(circle, head) as u32,
            Memory::Pieces(pieces) => pieces.advance(head) as u32,
        };
    }

    fn resize(&mut self, capacity: usize) -> usize {
        // What is there stays, out of order too.
        self.capacity = (capacity.min(1 << 30) as u32).max(self.extent);
        self.capacity as usize
    }

    #[inline]
    fn prefetch(&self) {
        for offset in [0, self.len()] {
            let at = self.head as usize + offset;
            let byte = match &self.memory {
                Memory::Circle(circle) => circle.get(around(circle, at)),
                Memory::Pieces(pieces) => pieces.first(at),
            };
            if let Some(byte) = byte {
                tables::prefetch(byte);
            }
        }
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests;
