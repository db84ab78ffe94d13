//! Exact match of fixed-size keys to 32-bit values: cuckoo hashing into buckets of cache lines.
//!
//! A key lies in one of two buckets that its keyed hash names. A bucket holds keys, values and a
//! header side by side, so that a hit in the first bucket costs one cache miss (16-byte keys: 3
//! entries in 64 bytes; 40-byte keys: 4 entries in 192 bytes). Tables are sized for 3/4 of their
//! slots in use, where about 7 of 8 keys lie in their first bucket.
//!
//! Readers never wait for the writer, and no memory is ever given back, so no epoch is needed:
//!
//! - The header of a bucket has a bit for each slot in use and a version that counts slots given
//!   up. An entry is complete before its bit is set. A slot is given up (bit cleared, version
//!   raised) before it is written again. A reader takes a match only if the version after is the
//!   version before: then neither key nor value belongs to another entry, and it was not torn.
//! - A displaced entry is copied to its other bucket, then the table's count of moves is raised,
//!   then the old slot is given up. A reader that finds nothing, and sees that the count of moves
//!   has changed since it began, looks again: an entry cannot slip past it from the bucket that
//!   it has yet to read to the one that it has read.
//! - The value of an entry is one atomic word, changed in place.
//!
//! Measured by `examples/cycles.rs` at 33,554,432 entries of 16 bytes in random order: 28.4 bytes an
//! entry, 64.5 TSC cycles a hit in batches of 256, where fetching one random line of as much memory
//! costs 38 to 40. Spending 35.6 bytes an entry (3/5 of the slots in use), choosing slots without
//! branches, and asking for one bucket as another is compared were each no faster.
//!
//! Versions have 28 bits: a reader would have to sleep through a multiple of 2^28 removals in one
//! bucket, in the middle of one look-up, to be fooled.

mod bucket;
mod growing;
#[cfg(all(test, loom))]
mod model;
mod reader;
mod writer;

pub use bucket::NO_FLOW;
pub use growing::GrowingFlowTable;
pub use reader::FlowReader;
pub use writer::{FlowError, FlowTable, Refused};
