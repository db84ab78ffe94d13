//! A plain ring in this process's memory, for tests, benches and applications within one process.

use wire::checksum::Sum;

use super::{Buffers, ByteFifo, Grant, Opening, Pair};
use crate::handle::ConnectionId;

/// A ring of bytes. It takes memory only as far as it was written.
#[derive(Debug, Default)]
pub struct Ring {
    bytes: Vec<u8>,
    head: usize,
    length: usize,
    capacity: usize,
}

impl Ring {
    /// An empty ring for `capacity` bytes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { bytes: Vec::new(), head: 0, length: 0, capacity }
    }

    /// Reads and takes off the front. Returns bytes read.
    pub fn read(&mut self, target: &mut [u8]) -> usize {
        let count = self.peek(0, target);
        self.consume(count);
        count
    }

    /// Makes sure that `needed` bytes from the head on have memory; the data is straightened out.
    #[cold]
    fn reserve(&mut self, needed: usize) {
        let size = needed.next_power_of_two().min(self.capacity).max(needed);
        self.bytes.rotate_left(self.head);
        self.head = 0;
        self.bytes.resize(size, 0);
    }

    #[inline(always)]
    fn place(&self, offset: usize) -> usize {
        let place = self.head + offset;
        if place >= self.bytes.len() { place - self.bytes.len() } else { place }
    }

    /// Both parts of `count` bytes from `offset` on, which have memory; mostly the second is empty.
    #[inline(always)]
    fn parts(&self, offset: usize, count: usize) -> (&[u8], &[u8]) {
        let start = self.place(offset);
        let first = count.min(self.bytes.len() - start);
        let front = self.bytes.get(start..start + first).unwrap_or(&[]);
        (front, self.bytes.get(..count - first).unwrap_or(&[]))
    }
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

    #[inline]
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room().saturating_sub(offset));
        if count == 0 {
            return 0;
        }
        let bytes = bytes.get(..count).unwrap_or(&[]);
        let at = self.length + offset;
        if at + count > self.bytes.len() {
            self.reserve(at + count);
        }
        let start = self.place(at);
        if let Some(target) = self.bytes.get_mut(start..start + count) {
            target.copy_from_slice(bytes);
            return count;
        }
        let (front, back) = bytes.split_at(count.min(self.bytes.len() - start));
        if let Some(target) = self.bytes.get_mut(start..) {
            target.copy_from_slice(front);
        }
        if let Some(target) = self.bytes.get_mut(..back.len()) {
            target.copy_from_slice(back);
        }
        count
    }

    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize {
        let at = self.length + offset;
        let count = target.len().min(self.bytes.len().saturating_sub(at));
        if count == 0 {
            return 0;
        }
        let (front, back) = self.parts(at, count);
        let (first, rest) = target.split_at_mut(front.len());
        first.copy_from_slice(front);
        rest.iter_mut().zip(back).for_each(|(byte, value)| *byte = *value);
        count
    }

    #[inline]
    fn commit(&mut self, count: usize) {
        self.length += count.min(self.bytes.len() - self.length);
    }

    #[inline]
    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        let count = target.len().min(self.length.saturating_sub(offset));
        if count == 0 {
            return 0;
        }
        let (front, back) = self.parts(offset, count);
        let (first, second) = target.split_at_mut(front.len());
        first.copy_from_slice(front);
        if let (false, Some(second)) = (back.is_empty(), second.get_mut(..back.len())) {
            second.copy_from_slice(back);
        }
        count
    }

    #[inline]
    fn peek_summed(&self, offset: usize, target: &mut [u8]) -> (usize, Sum) {
        let count = target.len().min(self.length.saturating_sub(offset));
        if count == 0 {
            return (0, Sum::new());
        }
        let (front, back) = self.parts(offset, count);
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
        self.head = if self.bytes.is_empty() { 0 } else { self.place(count) };
        self.length -= count;
    }

    #[inline]
    fn prefetch(&self) {
        for offset in [0, self.length] {
            if let Some(byte) = self.bytes.get(self.place(offset)) {
                tables::prefetch(byte);
            }
        }
    }

    fn resize(&mut self, capacity: usize) -> usize {
        // What was written out of order lies beyond the readable end, so memory is never taken away.
        self.capacity = capacity.max(self.bytes.len());
        self.capacity
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holds_what_comes_out_of_order() {
        let mut ring = Ring::new(8);
        assert_eq!(ring.append(b"abc"), 3);
        assert_eq!(ring.write_at(2, b"fgh"), 3);
        assert_eq!(ring.write_at(0, b"de"), 2);
        assert_eq!(ring.write_at(5, b"i"), 0);
        ring.commit(5);
        let mut all = [0; 8];
        assert_eq!(ring.peek(0, &mut all), 8);
        assert_eq!(&all, b"abcdefgh");
    }

    proptest! {
        #[test]
        fn a_summed_copy_is_the_copy(head in 0..64usize, count in 0..64usize, offset in 0..64usize, length in 0..80usize) {
            let mut ring = Ring::new(64);
            ring.append(&[0; 64]);
            ring.consume(64 - head);
            ring.consume(head);
            ring.append(&(0..count as u8).map(|byte| byte ^ 0xa5).collect::<Vec<_>>());
            let (mut plain, mut summed) = (vec![0; length], vec![0; length]);
            let copied = ring.peek(offset, &mut plain);
            let (also, sum) = ring.peek_summed(offset, &mut summed);
            prop_assert_eq!((copied, &plain), (also, &summed));
            prop_assert_eq!(sum.finish(), wire::checksum::of(&plain[..copied]));
        }

        #[test]
        fn is_a_queue(steps in proptest::collection::vec((any::<bool>(), 0..40usize), 0..200)) {
            let (mut ring, mut model, mut next) = (Ring::new(64), Vec::new(), 0u8);
            for (write, count) in steps {
                if write {
                    let bytes: Vec<u8> = (0..count).map(|i| next.wrapping_add(i as u8)).collect();
                    let taken = ring.append(&bytes);
                    prop_assert_eq!(taken, count.min(64 - model.len()));
                    next = next.wrapping_add(taken as u8);
                    model.extend(&bytes[..taken]);
                } else {
                    let mut target = vec![0; count];
                    let read = ring.read(&mut target);
                    prop_assert_eq!(read, count.min(model.len()));
                    let expected: Vec<u8> = model.drain(..read).collect();
                    prop_assert_eq!(&target[..read], &expected[..]);
                }
                prop_assert_eq!(ring.len(), model.len());
            }
        }
    }
}
