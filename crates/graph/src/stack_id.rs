//! Names of stacks.

use std::fmt;
use std::num::NonZeroU32;

/// A stack: its place in the tables of workers, which others have after it, and its number, which no other has. A name that is
/// out of date leads nowhere. People are told the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId {
    place: u16,
    number: NonZeroU32,
}

impl StackId {
    /// The stack of this number, from 1, at a place. `None`: 0 is no stack's.
    #[must_use]
    pub const fn new(place: u16, number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self { place, number }),
            None => None,
        }
    }

    /// Its place.
    #[must_use]
    pub fn place(self) -> u16 {
        self.place
    }

    /// Its number, never 0.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number.get()
    }

    /// As one word, never 0.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        u64::from(self.number.get()) << 16 | u64::from(self.place)
    }

    /// Of such a word. `None`: it is none.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        Self::new(bits as u16, u32::try_from(bits >> 16).ok()?)
    }
}

impl fmt::Display for StackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
