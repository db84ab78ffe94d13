//! Where the tags lie.

/// Places of a line: as many tags as a cache line holds.
pub(super) const LINE: usize = 8;
/// A place without a tag.
pub(super) const EMPTY: u64 = 0;

/// The two lines in which a tag may lie, of a number of lines that is a power of two, and at least two.
#[inline]
pub(super) fn lines_of(tag: u64, lines: usize) -> [usize; 2] {
    let mask = lines.wrapping_sub(1);
    let first = tag as usize & mask;
    let second = (tag >> 32) as usize & mask;
    // Two different ones in any case.
    [first, if second == first { second ^ 1 } else { second }]
}

/// The tag as it is written: not that of an empty place.
#[inline]
pub(super) fn written(tag: u64) -> u64 {
    if tag == EMPTY { !EMPTY } else { tag }
}

#[cfg(not(loom))]
pub(super) use mapped::Memory;
#[cfg(not(loom))]
pub use mapped::{ClaimsError, bytes};

#[cfg(not(loom))]
mod mapped {
    use super::LINE;
    use crate::segment::Region;
    use crate::sync::{AtomicU32, AtomicU64};

    /// Bytes of the line with the number of tags.
    const HEADER: usize = 64;
    /// Fewest and most places.
    const FEWEST: u32 = 16;
    const MOST: u32 = 1 << 24;

    /// Why a table of claims is refused.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    pub enum ClaimsError {
        /// Not a power of two in the range.
        #[error("{0} places for claims: it must be a power of two from {FEWEST} to {MOST}")]
        Places(u32),
        /// The memory is shorter than that.
        #[error("the claims need {needed} bytes of memory and have {given}")]
        Memory {
            /// Bytes.
            needed: usize,
            /// Bytes.
            given: usize,
        },
    }

    /// Bytes of a table with `places` places.
    ///
    /// # Errors
    /// [`ClaimsError::Places`] when that is no power of two from 16 to 16,777,216.
    pub fn bytes(places: u32) -> Result<usize, ClaimsError> {
        if !places.is_power_of_two() || !(FEWEST..=MOST).contains(&places) {
            return Err(ClaimsError::Places(places));
        }
        Ok(HEADER + places as usize * size_of::<u64>())
    }

    /// The memory of a table. How many places it has is this side's own knowledge.
    #[derive(Debug)]
    pub(in crate::claims) struct Memory {
        region: Region,
        lines: usize,
    }

    impl Memory {
        pub(in crate::claims) fn new(region: Region, places: u32) -> Result<Self, ClaimsError> {
            let (needed, given) = (bytes(places)?, region.length());
            if given < needed {
                return Err(ClaimsError::Memory { needed, given });
            }
            Ok(Self { region, lines: places as usize / LINE })
        }

        #[inline]
        pub(in crate::claims) fn lines(&self) -> usize {
            self.lines
        }

        /// How many tags there are.
        #[inline]
        pub(in crate::claims) fn count(&self) -> &AtomicU32 {
            // SAFETY: a region begins at a cache line, and `new` saw room for one; it is only ever seen as an atomic.
            unsafe { self.region.base().cast::<AtomicU32>().as_ref() }
        }

        /// The places of a line; what is beyond the last one wraps.
        #[inline]
        pub(in crate::claims) fn line(&self, number: usize) -> &[AtomicU64; LINE] {
            let offset = HEADER + (number & (self.lines - 1)) * LINE * size_of::<u64>();
            // SAFETY: the masked number is less than that of the lines, for which `new` saw room behind the header;
            // lines are aligned as the region is, and only ever seen as atomics.
            unsafe { self.region.base().add(offset).cast::<[AtomicU64; LINE]>().as_ref() }
        }
    }
}
