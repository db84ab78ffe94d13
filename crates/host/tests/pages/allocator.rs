//! The system's allocator, and the largest piece that it was asked for while somebody watched.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// Sizes of a FIFO's memory that are larger.
const PIECES: [usize; 2] = [8192, 16_384];

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

fn note(size: usize) {
    if WATCHED.get() && !PIECES.contains(&size) {
        LARGEST.set(LARGEST.get().max(size));
    }
}

// SAFETY: everything is the system allocator's doing; what is noted touches cells of this thread that need no memory.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Watches what this allocates.
pub(crate) fn watch<T>(run: impl FnOnce() -> T) -> T {
    WATCHED.set(true);
    let result = run();
    WATCHED.set(false);
    result
}

/// Bytes of the largest allocation that was watched on this thread, but for pieces of FIFOs.
pub(crate) fn largest() -> usize {
    LARGEST.get()
}

#[test]
fn a_list_that_doubles_is_seen() {
    let mut list: Vec<u64> = (0..400).collect();
    list.shrink_to_fit();
    watch(|| list.push(1));
    assert_eq!(largest(), 6400);
}
