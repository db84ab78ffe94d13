//! Byte FIFOs between two processes: one for each direction of a session. Each grows by chunks of memory while it holds
//! something, and has none while it is empty.
//!
//! The side that writes hands out the chunks of its direction and keeps account of them in its own memory; in the shared memory
//! stand only two counters of bytes and the numbers of the chunks. Whatever the other side writes there, what comes
//! out are bytes of the arena, or [`Broken`].

mod arena;
mod reader;
mod writer;

use crate::sync::AtomicU32;

pub use arena::{Arena, Chunks};
pub use reader::Reader;
pub use writer::Writer;

/// Bytes of a chunk: a page.
pub const CHUNK: u32 = if cfg!(loom) { 2 } else { 4096 };
/// Chunks that a FIFO has at most.
pub const CHUNKS: usize = if cfg!(loom) { 2 } else { 32 };
/// Bytes that a FIFO holds at most; up to a chunk less when its first one is partly read.
pub const CAPACITY: u32 = CHUNK * CHUNKS as u32;

/// The other side has written what no side of ours writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other side does not keep to the protocol of byte FIFOs")]
pub struct Broken;

/// Where a FIFO's words lie. Counters of bytes wrap.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Bytes that were read so far: written by the reader.
    pub head: &'a AtomicU32,
    /// Bytes that were written so far: written by the writer.
    pub tail: &'a AtomicU32,
    /// The chunk of each stretch of [`CHUNK`] bytes, in turn: written by the writer.
    pub table: &'a [AtomicU32; CHUNKS],
}

impl<'a> Place<'a> {
    /// The word with the chunk of the byte at a position.
    fn chunk(&self, position: u32) -> &'a AtomicU32 {
        let place = (position / CHUNK) as usize % CHUNKS;
        #[expect(clippy::indexing_slicing, reason = "less than the length of the array")]
        &self.table[place]
    }
}

#[cfg(test)]
#[cfg(loom)]
mod model_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
