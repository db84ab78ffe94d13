//! Chunks, and who has them.

#[cfg(loom)]
pub use super::model_tests::Arena;
#[cfg(not(loom))]
pub use mapped::Arena;

/// The chunks of one direction that no FIFO has: the writing side's own account.
#[derive(Debug)]
pub struct Chunks {
    free: Vec<u32>,
}

impl Chunks {
    /// All of so many.
    #[must_use]
    pub fn new(count: u32) -> Self {
        // The first ones go first.
        Self { free: (0..count).rev().collect() }
    }

    /// Chunks that no FIFO has.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// The one given back last: it may be in the cache yet.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    pub(super) fn give(&mut self, chunk: u32) {
        self.free.push(chunk);
    }
}

#[cfg(not(loom))]
mod mapped {
    use crate::copy::{read_shared, write_shared};
    use crate::fifo::CHUNK;
    use crate::segment::Region;

    /// The memory of all chunks of one direction. How many there are is this side's own knowledge.
    #[derive(Debug, Clone)]
    pub struct Arena {
        region: Region,
        count: u32,
    }

    impl Arena {
        /// `None`: the region is shorter than so many chunks.
        #[must_use]
        pub fn new(region: Region, count: u32) -> Option<Self> {
            let fits = region.length() >= Self::bytes(count);
            fits.then_some(Self { region, count })
        }

        /// Bytes of so many chunks.
        #[must_use]
        pub const fn bytes(count: u32) -> usize {
            count as usize * CHUNK as usize
        }

        fn offset(&self, chunk: u32, from: u32, length: usize) -> Option<usize> {
            let fits = chunk < self.count && from as usize + length <= CHUNK as usize;
            fits.then(|| chunk as usize * CHUNK as usize + from as usize)
        }

        /// Copies bytes to a chunk. `false`: it has no such bytes.
        #[inline]
        pub(in crate::fifo) fn write(&self, chunk: u32, from: u32, bytes: &[u8]) -> bool {
            let Some(offset) = self.offset(chunk, from, bytes.len()) else { return false };
            // SAFETY: within the chunk, which lies within the region, as just checked; the compiler does not see the copy.
            unsafe { write_shared(bytes, self.region.base().as_ptr().add(offset)) };
            true
        }

        /// Copies bytes of a chunk. `false`: it has no such bytes.
        #[inline]
        pub(in crate::fifo) fn read(&self, chunk: u32, from: u32, target: &mut [u8]) -> bool {
            let Some(offset) = self.offset(chunk, from, target.len()) else { return false };
            // SAFETY: as above.
            unsafe { read_shared(self.region.base().as_ptr().add(offset), target) };
            true
        }
    }
}
