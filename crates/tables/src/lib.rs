//! Longest-prefix match and exact-match flows: pure data structures, read without locks while one
//! writer changes them; and lists of one owner that grow by pages.
//!
//! - [`Lpm4`], [`Lpm6`]: routes. The writer half is changed through `&mut self`, reader halves
//!   ([`Lpm4Reader`], [`Lpm6Reader`]) are cloned to as many threads as like.
//! - [`FlowTable`]: exact match of 16- or 40-byte keys, likewise. [`GrowingFlowTable`]: the same for one thread,
//!   which takes memory as entries come.
//! - [`Epoch`]: tells writers when memory that was unlinked is seen by no reader any more. All
//!   tables that a worker reads share one; each reading thread holds a [`ReaderSlot`].
//! - [`PagedList`], [`PagedQueue`], [`PagedArray`]: one entry more never allocates or moves more than a page.
//! - [`prefetch()`]: asks the cache for what a batch will need.

mod epoch;
mod flow;
mod hash;
mod lpm;
mod memory;
mod paged;
mod prefetch;
mod sync;

pub use epoch::{Epoch, MAX_READERS, ReaderSlot, TooManyReaders};
pub use flow::{FlowError, FlowReader, FlowTable, GrowingFlowTable, NO_FLOW, Refused};
pub use lpm::{
    Address, Lpm, Lpm4, Lpm4Reader, Lpm6, Lpm6Reader, LpmCapacity, LpmError, LpmReader, LpmRoot,
    MAX_VALUE, MISS, Prefix, PrefixError,
};
pub use memory::OutOfMemory;
pub use paged::{PagedArray, PagedList, PagedQueue, Place};
pub use prefetch::prefetch;
