//! Longest-prefix match for IPv4 and IPv6.
//!
//! A multibit trie of 32-bit entries: a root array, then blocks of `2^stride` entries that exist
//! only below prefixes longer than their level. An entry is a value, or the number of a block with
//! the top bit set. Values are pushed down to the entries that they hold for, so a look-up reads
//! one entry per level and never goes back. The writer alone knows, in a parallel array, how long
//! the prefix behind each entry is.
//!
//! A change stores single entries in place. A new block is filled before the one store that links
//! it; an unlinked block is used again when all readers have passed (see [`crate::Epoch`]).
//! So a reader sees each address before or after the change, and nothing else.
//!
//! # Why these levels
//!
//! Measured by `examples/cycles.rs` on a full Internet table, random hits, batches of 256, least
//! TSC cycles a look-up (2.6 GHz TSC, 2 MiB second-level cache):
//!
//! | levels | cycles | trie |
//! | --- | --- | --- |
//! | IPv4, 901,899 routes: 24, 32 | 9.0 | 67.6 MB |
//! | 20, 24, 28, 32 | 9.5 | 13.3 MB |
//! | 18, 24, 28, 32 | 9.1 | 17.8 MB |
//! | **16, 24, 28, 32** | 7.8 | 26.3 MB |
//! | IPv6, 160,147 routes: 16, 28, then every 4 | 47.2 | 7.1 MB |
//! | 16, 28, 32, 40, 48 | 35.2 | 33.2 MB |
//! | 20, 28, 32, 40, 48 | 33.0 | 36.8 MB |
//! | **16, 28, 34, 40, 48** | 34.8 | 29.0 MB |
//!
//! What counts is how many cache lines beyond the second-level cache a look-up touches: with a
//! root of 16 bits that is one. Below bit 48 (IPv6) and 24 (IPv4) blocks are one cache line each,
//! which keeps scattered host routes small. Prefetching past the first-level cache was no faster.

mod address;
mod arena;
mod rules;
mod trie;
mod writer;

pub use address::{Address, Prefix, PrefixError};
pub use trie::{LpmReader, LpmRoot, MAX_VALUE, MISS};
pub use writer::{Lpm, LpmCapacity, LpmError};

/// IPv4 routes: the writer half. Addresses are in host byte order.
pub type Lpm4 = Lpm<u32>;
/// IPv6 routes: the writer half. Addresses are in host byte order.
pub type Lpm6 = Lpm<u128>;
/// IPv4 routes: a reader half.
pub type Lpm4Reader = LpmReader<u32>;
/// IPv6 routes: a reader half.
pub type Lpm6Reader = LpmReader<u128>;
