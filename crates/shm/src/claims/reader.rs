//! The side that looks flows up: a worker of the daemon.

use super::Memory;
use super::memory::{lines_of, written};
use crate::sync::Ordering;

/// Looks into a stack's claims.
#[derive(Debug)]
pub struct ClaimsReader {
    memory: Memory,
}

impl ClaimsReader {
    /// Of a table with `places` places in this region.
    ///
    /// # Errors
    /// [`ClaimsError`](super::ClaimsError) when that is no size for a table, or more than the region holds.
    #[cfg(not(loom))]
    pub fn new(region: crate::Region, places: u32) -> Result<Self, super::ClaimsError> {
        Ok(Self { memory: Memory::new(region, places)? })
    }

    #[cfg(loom)]
    pub(super) fn with(memory: Memory) -> Self {
        Self { memory }
    }

    /// Whether the stack claims the flow of that tag. Looks at three cache lines at most, each word once.
    #[inline]
    #[must_use]
    pub fn contains(&self, tag: u64) -> bool {
        if self.memory.count().load(Ordering::Relaxed) == 0 {
            return false;
        }
        let tag = written(tag);
        let lines = lines_of(tag, self.memory.lines()).into_iter();
        lines
            .flat_map(|line| self.memory.line(line))
            .any(|place| place.load(Ordering::Relaxed) == tag)
    }
}
