//! A connection's data: a ring that has memory only while it holds something. An idle session has none; a busy
//! one gets back what was in the cache a moment ago, whichever session had it then.

use std::cell::RefCell;

use transport::ByteFifo;
use wire::checksum::Sum;

/// Smallest piece of memory: 2^10 bytes.
const LEAST: u32 = 10;
/// Sizes of pieces that are kept: up to 2^22 bytes.
const SIZES: usize = 13;
/// Bytes that a thread keeps at most.
const KEPT: usize = 16 << 20;

/// Memory that waits to be used again, by size; each thread has its own.
#[derive(Debug)]
struct Pool {
    free: [Vec<Box<[u8]>>; SIZES],
    bytes: usize,
}

thread_local! {
    static POOL: RefCell<Pool> =
        const { RefCell::new(Pool { free: [const { Vec::new() }; SIZES], bytes: 0 }) };
}

/// A piece of at least so many bytes; its length is a power of two. What it holds means nothing.
fn take(needed: usize) -> Box<[u8]> {
    let size = needed.next_power_of_two().max(1 << LEAST);
    let place = (size.trailing_zeros() - LEAST) as usize;
    let kept = POOL.try_with(|pool| {
        let mut pool = pool.try_borrow_mut().ok()?;
        let piece = pool.free.get_mut(place)?.pop()?;
        pool.bytes -= piece.len();
        Some(piece)
    });
    kept.ok().flatten().unwrap_or_else(|| vec![0; size].into_boxed_slice())
}

/// Gives it back. When the thread ends, or keeps enough, it is freed.
fn give(piece: Box<[u8]>) {
    let place = piece.len().trailing_zeros().wrapping_sub(LEAST) as usize;
    let _ = POOL.try_with(|pool| {
        let Ok(mut pool) = pool.try_borrow_mut() else { return };
        if pool.bytes + piece.len() > KEPT {
            return;
        }
        let length = piece.len();
        if let Some(free) = pool.free.get_mut(place) {
            free.push(piece);
            pool.bytes += length;
        }
    });
}

/// A ring of bytes.
#[derive(Debug)]
pub(crate) struct Fifo {
    /// A power of two, or nothing.
    bytes: Box<[u8]>,
    head: u32,
    /// Bytes that can be read.
    length: u32,
    /// The same with what was written beyond them.
    extent: u32,
    capacity: u32,
}

impl Fifo {
    /// An empty one for so many bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.min(1 << 30) as u32;
        Self { bytes: Box::default(), head: 0, length: 0, extent: 0, capacity }
    }

    #[inline]
    fn place(&self, offset: usize) -> usize {
        (self.head as usize + offset) & (self.bytes.len() - 1)
    }

    /// Both parts of `count` bytes from `offset` on, which have memory; mostly the second is empty.
    #[inline]
    fn parts(&self, offset: usize, count: usize) -> (&[u8], &[u8]) {
        if count == 0 {
            return (&[], &[]);
        }
        let start = self.place(offset);
        let first = count.min(self.bytes.len() - start);
        let front = self.bytes.get(start..start + first).unwrap_or(&[]);
        (front, self.bytes.get(..count - first).unwrap_or(&[]))
    }

    /// Makes sure that so many bytes from the head on have memory.
    #[cold]
    fn grow(&mut self, needed: usize) {
        let mut larger = take(needed);
        let extent = self.extent as usize;
        let (front, back) = self.parts(0, extent);
        if let Some((one, two)) = larger.split_at_mut_checked(front.len()) {
            one.copy_from_slice(front);
            two.iter_mut().zip(back).for_each(|(place, byte)| *place = *byte);
        }
        let old = std::mem::replace(&mut self.bytes, larger);
        if !old.is_empty() {
            give(old);
        }
        self.head = 0;
    }

    fn release(&mut self) {
        let piece = std::mem::take(&mut self.bytes);
        if !piece.is_empty() {
            give(piece);
        }
        self.head = 0;
    }

    #[inline]
    fn copy(&self, offset: usize, target: &mut [u8], end: u32) -> usize {
        let count = target.len().min((end as usize).saturating_sub(offset));
        let (front, back) = self.parts(offset, count);
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
        if at + count > self.bytes.len() {
            if self.bytes.is_empty() {
                self.bytes = take(at + count);
            } else {
                self.grow(at + count);
            }
        }
        let start = self.place(at);
        self.extent = self.extent.max((at + count) as u32);
        if let Some(place) = self.bytes.get_mut(start..start + count) {
            place.copy_from_slice(bytes);
            return count;
        }
        let (front, back) = bytes.split_at(count.min(self.bytes.len() - start));
        if let Some(place) = self.bytes.get_mut(start..start + front.len()) {
            place.copy_from_slice(front);
        }
        if let Some(place) = self.bytes.get_mut(..back.len()) {
            place.copy_from_slice(back);
        }
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
        let (front, back) = self.parts(offset, count);
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
            self.release();
        } else {
            self.head = self.place(count) as u32;
        }
    }

    fn resize(&mut self, capacity: usize) -> usize {
        // What is there stays, out of order too.
        self.capacity = (capacity.min(1 << 30) as u32).max(self.extent);
        self.capacity as usize
    }

    #[inline]
    fn prefetch(&self) {
        if self.bytes.is_empty() {
            return;
        }
        for offset in [0, self.len()] {
            if let Some(byte) = self.bytes.get(self.place(offset)) {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_one_has_no_memory_and_it_is_used_again() {
        let mut fifo = Fifo::new(65_536);
        assert_eq!(fifo.append(&[1; 3000]), 3000);
        let place = fifo.bytes.as_ptr();
        assert_eq!(fifo.bytes.len(), 4096);
        fifo.consume(3000);
        assert!(fifo.bytes.is_empty());
        let mut other = Fifo::new(65_536);
        other.append(&[2; 4000]);
        assert_eq!(other.bytes.as_ptr(), place);
        // What came out of order keeps it.
        other.consume(3999);
        other.write_at(5, b"x");
        other.consume(1);
        assert!(other.len() == 0 && !other.bytes.is_empty());
        assert_eq!(size_of::<Fifo>(), 32);
    }

    #[test]
    fn a_thread_keeps_only_so_much() {
        let mut all: Vec<Fifo> = (0..40).map(|_| Fifo::new(1 << 20)).collect();
        all.iter_mut().for_each(|fifo| assert_eq!(fifo.append(&[1; 1 << 20]), 1 << 20));
        drop(all);
        POOL.with_borrow(|pool| {
            let kept: usize = pool.free.iter().flatten().map(|piece| piece.len()).sum();
            assert_eq!((kept, kept), (pool.bytes, KEPT));
        });
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(usize, usize),
        Commit(usize),
        Consume(usize),
        Peek(usize, usize),
        Resize(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..3000usize, 0..3000usize).prop_map(|(offset, count)| Step::Write(offset, count)),
            (0..2000usize).prop_map(|count| Step::Write(0, count)),
            (0..3000usize).prop_map(Step::Commit),
            (0..3000usize).prop_map(Step::Consume),
            (0..3000usize, 0..3000usize).prop_map(|(offset, count)| Step::Peek(offset, count)),
            (0..6000usize).prop_map(Step::Resize),
        ]
    }

    proptest! {
        /// The model: all bytes from the head on, `None` where nothing was written.
        #[test]
        fn it_is_a_queue_with_room_beyond(steps in proptest::collection::vec(step(), 0..150)) {
            let (mut fifo, mut next) = (Fifo::new(4000), 0u8);
            let (mut model, mut length, mut capacity) = (Vec::<Option<u8>>::new(), 0usize, 4000usize);
            for step in steps {
                match step {
                    Step::Write(offset, count) => {
                        let bytes: Vec<u8> = (0..count).map(|i| next.wrapping_add(i as u8)).collect();
                        next = next.wrapping_add(count as u8 | 1);
                        let most = (capacity - length.min(capacity)).saturating_sub(offset).min(count);
                        prop_assert_eq!(fifo.write_at(offset, &bytes), most);
                        if most > 0 {
                            let at = length + offset;
                            model.resize(model.len().max(at + most), None);
                            for (place, byte) in model[at..].iter_mut().zip(&bytes[..most]) {
                                *place = Some(*byte);
                            }
                        }
                    }
                    Step::Commit(count) => {
                        fifo.commit(count);
                        length = (length + count).min(model.len());
                    }
                    Step::Consume(count) => {
                        fifo.consume(count);
                        let count = count.min(length);
                        model.drain(..count);
                        length -= count;
                    }
                    Step::Peek(offset, count) => {
                        let mut target = vec![0; count];
                        let (got, sum) = fifo.peek_summed(offset, &mut target);
                        prop_assert_eq!(got, count.min(length.saturating_sub(offset)));
                        prop_assert_eq!(sum.finish(), wire::checksum::of(&target[..got]));
                        let mut beyond = vec![0; count];
                        let more = fifo.peek_beyond(offset, &mut beyond);
                        prop_assert_eq!(more, count.min((model.len() - length).saturating_sub(offset)));
                        for (at, byte) in target[..got].iter().enumerate().map(|(i, b)| (offset + i, b))
                            .chain(beyond[..more].iter().enumerate().map(|(i, b)| (length + offset + i, b)))
                        {
                            if let Some(known) = model[at] {
                                prop_assert_eq!(known, *byte);
                            }
                        }
                    }
                    Step::Resize(wanted) => {
                        capacity = wanted.max(model.len());
                        prop_assert_eq!(fifo.resize(wanted), capacity);
                    }
                }
                prop_assert_eq!((fifo.len(), fifo.capacity()), (length, capacity));
                prop_assert_eq!(fifo.bytes.is_empty(), fifo.extent == 0);
            }
        }
    }
}
