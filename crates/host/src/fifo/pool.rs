//! Memory of FIFOs that waits to be used again; each thread has its own.

use std::cell::RefCell;
use std::mem::take;

use transport::fifo::{PIECE, PieceMemory};

/// Smallest piece of memory: 2^10 bytes.
const LEAST: u32 = 10;
/// Sizes of pieces.
const SIZES: usize = 5;
const _: () = assert!(1 << (LEAST as usize + SIZES - 1) == PIECE, "the largest size");
/// Bytes that a thread keeps at most.
pub(super) const KEPT: usize = 16 << 20;
/// Pieces of a list: it never takes more than a page.
const LISTED: usize = 4096 / size_of::<Box<[u8]>>();

/// Pieces of one size, in lists, so that one more never moves all the others.
#[derive(Debug)]
struct Free {
    last: Vec<Box<[u8]>>,
    full: Vec<Vec<Box<[u8]>>>,
}

impl Free {
    const NONE: Self = Self { last: Vec::new(), full: Vec::new() };

    #[inline]
    fn push(&mut self, piece: Box<[u8]>) {
        if self.last.len() == LISTED {
            self.turn();
        }
        self.last.push(piece);
    }

    #[cold]
    fn turn(&mut self) {
        self.full.push(take(&mut self.last));
    }

    #[inline]
    fn pop(&mut self) -> Option<Box<[u8]>> {
        self.last.pop().or_else(|| self.pop_far())
    }

    #[cold]
    fn pop_far(&mut self) -> Option<Box<[u8]>> {
        self.last = self.full.pop()?;
        self.last.pop()
    }
}

/// Pieces by size.
#[derive(Debug)]
struct Pool {
    free: [Free; SIZES],
    bytes: usize,
    /// Bytes of pieces in use.
    lent: usize,
}

thread_local! {
    static POOL: RefCell<Pool> =
        const { RefCell::new(Pool { free: [const { Free::NONE }; SIZES], bytes: 0, lent: 0 }) };
}

/// A piece of at least `needed` bytes, which are [`PIECE`] at most; its length is a power of two. What it holds means
/// nothing.
pub(crate) fn borrow(needed: usize) -> Box<[u8]> {
    let size = needed.next_power_of_two().max(1 << LEAST);
    let place = (size.trailing_zeros() - LEAST) as usize;
    let kept = POOL.try_with(|pool| {
        let mut pool = pool.try_borrow_mut().ok()?;
        pool.lent = pool.lent.wrapping_add(size);
        let piece = pool.free.get_mut(place)?.pop()?;
        pool.bytes -= piece.len();
        Some(piece)
    });
    kept.ok().flatten().unwrap_or_else(|| vec![0; size].into_boxed_slice())
}

/// Gives it back. When the thread ends, or keeps enough, it is freed.
pub(crate) fn give(piece: Box<[u8]>) {
    let place = piece.len().trailing_zeros().wrapping_sub(LEAST) as usize;
    let _ = POOL.try_with(|pool| {
        let Ok(mut pool) = pool.try_borrow_mut() else { return };
        pool.lent = pool.lent.wrapping_sub(piece.len());
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

/// Large FIFOs have their pieces from here.
#[derive(Debug)]
pub(super) struct Pooled;

impl PieceMemory for Pooled {
    fn borrow() -> Box<[u8]> {
        borrow(PIECE)
    }

    fn give(piece: Box<[u8]>) {
        give(piece);
    }
}

/// Bytes of data that the stacks of this thread hold, in pieces as they were taken.
#[must_use]
pub fn held_bytes() -> usize {
    POOL.try_with(|pool| pool.try_borrow().map_or(0, |pool| pool.lent)).unwrap_or(0)
}

/// Bytes that this thread keeps, counted and noted, and the longest list of its pieces: bytes.
#[cfg(test)]
pub(super) fn kept() -> (usize, usize, usize) {
    POOL.with_borrow(|pool| {
        let lists = || pool.free.iter().flat_map(|free| free.full.iter().chain([&free.last]));
        let bytes = lists().flatten().map(|piece| piece.len()).sum();
        let longest = lists().map(Vec::capacity).max().unwrap_or(0) * size_of::<Box<[u8]>>();
        (bytes, pool.bytes, longest)
    })
}
