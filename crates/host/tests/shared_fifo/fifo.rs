//! FIFOs in shared memory, careful or credulous.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use shm::{Region, Segment};
use transport::{Buffers, ByteFifo, ConnectionId, Grant, Opening, Pair};

use crate::liar::Liar;

/// Bytes of a FIFO, a power of two.
pub(crate) const CAPACITY: usize = 1 << 15;
/// Its words: bytes read and written since the beginning; then its bytes.
pub(crate) const READ: usize = 0;
pub(crate) const WRITTEN: usize = 64;
pub(crate) const BYTES: usize = 128;
pub(crate) const PLACE: usize = BYTES + CAPACITY;

/// Which end of a FIFO is the stack's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reads,
    Writes,
}

/// A ring in shared memory.
#[derive(Debug)]
pub(crate) struct Shared {
    region: Region,
    end: End,
    /// The index of its own end, which it need not read back; `None`: it believes even that of the shared memory, and
    /// says of lengths what it finds there.
    own: Cell<Option<u32>>,
    held: Rc<Cell<usize>>,
    /// Lies before each word is read, besides the thread that does: a seed's lies come again.
    liar: Option<RefCell<Liar>>,
}

impl Shared {
    fn word(&self, offset: usize, end: End) -> u32 {
        self.liar.iter().for_each(|liar| liar.borrow_mut().lie());
        let own = self.own.get().filter(|_| self.end == end);
        own.or_else(|| self.region.load(offset)).unwrap_or(0)
    }

    fn set(&self, offset: usize, end: End, value: u32) {
        self.region.store(offset, value);
        if self.end == end {
            self.own.set(self.own.get().map(|_| value));
        }
    }

    /// Where the readable bytes begin, and how many there are.
    fn span(&self) -> (u32, usize) {
        let (read, written) = (self.word(READ, End::Reads), self.word(WRITTEN, End::Writes));
        let length = written.wrapping_sub(read) as usize;
        // The careful one knows what it may have.
        (read, if self.own.get().is_some() { length.min(CAPACITY) } else { length })
    }

    fn around(start: u32, count: usize) -> (usize, usize) {
        let at = start as usize % CAPACITY;
        (at, count.min(CAPACITY - at))
    }

    fn copy_out(&self, start: u32, target: &mut [u8]) -> usize {
        let (at, first) = Self::around(start, target.len());
        let (front, back) = target.split_at_mut(first);
        let back_length = back.len().min(CAPACITY - first);
        self.region.read(BYTES + at, front) + self.region.read(BYTES, &mut back[..back_length])
    }

    fn copy_in(&self, start: u32, bytes: &[u8]) -> usize {
        let bytes = &bytes[..bytes.len().min(CAPACITY)];
        let (at, first) = Self::around(start, bytes.len());
        let (front, back) = bytes.split_at(first);
        self.region.write(BYTES + at, front) + self.region.write(BYTES, back)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.held.set(self.held.get() - 1);
    }
}

impl ByteFifo for Shared {
    fn len(&self) -> usize {
        self.span().1
    }

    fn room(&self) -> usize {
        CAPACITY.saturating_sub(self.span().1)
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let (start, length) = self.span();
        let room = CAPACITY.saturating_sub(length).saturating_sub(offset);
        let start = start.wrapping_add(length as u32).wrapping_add(offset as u32);
        self.copy_in(start, &bytes[..bytes.len().min(room)])
    }

    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize {
        let (start, length) = self.span();
        self.copy_out(start.wrapping_add(length as u32).wrapping_add(offset as u32), target)
    }

    fn commit(&mut self, count: usize) {
        let count = count.min(self.room()) as u32;
        self.set(WRITTEN, End::Writes, self.word(WRITTEN, End::Writes).wrapping_add(count));
    }

    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        let (start, length) = self.span();
        let count = target.len().min(length.saturating_sub(offset));
        self.copy_out(start.wrapping_add(offset as u32), &mut target[..count])
    }

    fn consume(&mut self, count: usize) {
        let (start, length) = self.span();
        self.set(READ, End::Reads, start.wrapping_add(count.min(length) as u32));
    }

    fn resize(&mut self, _: usize) -> usize {
        CAPACITY
    }
}

/// Gives each connection a pair of places; the first of a stack's connections has those that somebody else writes, too.
pub(crate) struct Segments {
    pub(crate) segment: Arc<Segment>,
    opened: usize,
    careful: bool,
    /// Of the liar, if there is one.
    seed: Option<u64>,
    pub(crate) held: Rc<Cell<usize>>,
}

pub(crate) const CONNECTIONS: usize = 2;

impl Segments {
    pub(crate) fn new(careful: bool, seed: Option<u64>) -> Self {
        let segment = Segment::create("fifos", 2 * CONNECTIONS * PLACE).unwrap();
        let (segment, held) = (Arc::new(segment), Rc::default());
        Self { segment, opened: 0, careful, seed, held }
    }
}

impl Buffers for Segments {
    type Fifo = Shared;

    fn open(&mut self, _: &Opening) -> Grant<Shared> {
        if self.opened == CONNECTIONS {
            return Grant::Refused;
        }
        let fifo = |place: usize, end| {
            let region = self.segment.region((2 * self.opened + place) * PLACE, PLACE).unwrap();
            self.held.set(self.held.get() + 1);
            let own = Cell::new((self.careful || self.opened > 0).then_some(0));
            let seed = self.seed.filter(|_| self.opened == 0);
            let liar = seed.map(|seed| RefCell::new(Liar::new(region.clone(), seed)));
            Shared { region, end, own, held: Rc::clone(&self.held), liar }
        };
        let pair = Pair { receive: fifo(0, End::Writes), transmit: fifo(1, End::Reads) };
        self.opened += 1;
        Grant::Given(pair)
    }

    fn close(&mut self, _: ConnectionId, _: Pair<Shared>) {}
}
