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

mod address;
mod arena;
mod rules;
mod trie;
mod writer;

pub use address::{Address, Prefix, PrefixError};
pub use trie::{LpmReader, MAX_VALUE, MISS};
pub use writer::{Lpm, LpmCapacity, LpmError};

/// IPv4 routes: the writer half. Addresses are in host byte order.
pub type Lpm4 = Lpm<u32>;
/// IPv6 routes: the writer half. Addresses are in host byte order.
pub type Lpm6 = Lpm<u128>;
/// IPv4 routes: a reader half.
pub type Lpm4Reader = LpmReader<u32>;
/// IPv6 routes: a reader half.
pub type Lpm6Reader = LpmReader<u128>;
