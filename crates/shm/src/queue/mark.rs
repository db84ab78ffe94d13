//! The mark ahead of a packet: one word that publishes it.
//!
//! ```text
//!  31            24 23            16 15                       2 1  0
//! +----------------+----------------+--------------------------+----+
//! |     flags      |      port      |      length in bytes     |turn|
//! +----------------+----------------+--------------------------+----+
//! ```
//! The turn counts filling and returning, modulo 4: with each lap of the ring it advances by two.

/// Longest packet in a slot that the length field can say: bytes.
pub(super) const LONGEST: u32 = (1 << 14) - 1;
/// The packet goes on in the next slot.
const MORE: u8 = 1;

/// What travels with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meta {
    /// The port where it came in, or is to go out.
    pub port: u8,
    /// Facts about it, as both sides agree; seven bits.
    pub flags: u8,
}

/// What a mark says of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) length: u32,
    pub(super) more: bool,
    pub(super) meta: Meta,
}

impl Mark {
    #[inline(always)]
    pub(super) fn encode(self, turn: u32) -> u32 {
        let flags = u32::from(self.meta.flags) << 1 & 0xff | u32::from(MORE) * u32::from(self.more);
        turn | self.length << 2 | u32::from(self.meta.port) << 16 | flags << 24
    }

    #[inline(always)]
    pub(super) fn decode(word: u32) -> Self {
        let flags = (word >> 24) as u8;
        Self {
            length: word >> 2 & LONGEST,
            more: flags & MORE != 0,
            meta: Meta { port: (word >> 16) as u8, flags: flags >> 1 },
        }
    }
}

/// Whose turn the slot at a position is. Positions count slots, laps included, and wrap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    shift: u32,
}

impl Turns {
    /// For a ring of `slots`, a power of two of at least 2.
    pub(super) fn new(slots: u32) -> Self {
        Self { shift: slots.trailing_zeros() - 1 }
    }

    /// The turn in which the producer may fill the slot.
    #[inline(always)]
    pub(super) fn empty(self, position: u32) -> u32 {
        // The lap's lowest bit, twice.
        position >> self.shift & 2
    }

    /// The turn in which the consumer may look.
    #[inline(always)]
    pub(super) fn full(self, position: u32) -> u32 {
        self.empty(position) + 1
    }

    /// The turn after that: the producer's of the next lap.
    #[inline(always)]
    pub(super) fn returned(self, position: u32) -> u32 {
        self.empty(position) ^ 2
    }
}

/// The turn that a word says.
#[inline(always)]
pub(super) fn turn(word: u32) -> u32 {
    word & 3
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn turns_alternate_over_laps_and_the_wrap() {
        let turns = Turns::new(4);
        let of =
            |position: u32| (turns.empty(position), turns.full(position), turns.returned(position));
        assert_eq!((of(0), of(3)), ((0, 1, 2), (0, 1, 2)));
        assert_eq!((of(4), of(7)), ((2, 3, 0), (2, 3, 0)));
        assert_eq!(of(8), of(0));
        assert_eq!(turns.returned(u32::MAX), turns.empty(u32::MAX.wrapping_add(4)));
    }

    proptest! {
        #[test]
        fn says_what_it_was_told(length in 0..=LONGEST, more: bool, port: u8, flags in 0..128u8, at in 0..4u32) {
            let mark = Mark { length, more, meta: Meta { port, flags } };
            let word = mark.encode(at);
            prop_assert_eq!(Mark::decode(word), mark);
            prop_assert_eq!(turn(word), at);
        }
    }
}
