//! Lists, queues and arrays that grow by a page: however much one holds, one entry more allocates and moves no more than
//! that. A `Vec` that doubles would make one packet wait while all of it is copied.
//!
//! - [`PagedList`]: in order, with changes in the middle, found by search.
//! - [`PagedQueue`]: in at one end, out at the other.
//! - [`PagedArray`]: by index; pages come when something is put there.

mod array;
mod list;
mod queue;
mod tiers;

pub use array::PagedArray;
pub use list::{PagedList, Place};
pub use queue::PagedQueue;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Entries of a page: a power of two, as is the room of a page that grows.
const fn entries<T>() -> usize {
    let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    if size >= PAGE { 1 } else { 1 << (PAGE / size).ilog2() }
}
