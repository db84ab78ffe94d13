//! Names of stacks.

use std::fmt;

use crate::{Slot, Vector};

/// A stack: a place in the tables of workers, and which of the stacks that had the place one after another. A name that is
/// out of date leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId {
    place: u16,
    generation: u32,
}

impl StackId {
    /// The stack that is the `generation`th, from 1, at a place. `None`: there is no such generation.
    #[must_use]
    pub fn new(place: u16, generation: u32) -> Option<Self> {
        (generation != 0).then_some(Self { place, generation })
    }

    /// Its place.
    #[must_use]
    pub fn place(self) -> u16 {
        self.place
    }

    /// As one word, never 0.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        u64::from(self.generation) << 16 | u64::from(self.place)
    }

    /// Of such a word. `None`: it is none.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        Self::new(bits as u16, u32::try_from(bits >> 16).ok()?)
    }

    /// The stack that a packet in a vector came from.
    #[inline]
    #[must_use]
    pub fn of(vector: &Vector, slot: Slot) -> Option<Self> {
        let at = usize::from(slot);
        Self::new(vector.next_hop[at] as u16, vector.word[at])
    }

    /// The two words that say so in a handoff: `next_hop` and `word`.
    #[inline]
    pub(crate) fn words(self) -> (u32, u32) {
        (self.place.into(), self.generation)
    }
}

impl fmt::Display for StackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.place, self.generation)
    }
}
