//! Where what lies.

use crate::segment::Region;
use crate::sync::AtomicU64;

/// Words of a record, the mark not counted: three cache lines with it.
pub(super) const WORDS: usize = 23;
/// Bytes of a record with its mark.
const RECORD: usize = (WORDS + 1) * size_of::<u64>();
/// Bytes ahead of the first record.
pub(super) const HEADER: usize = 256;
/// Words of the header.
pub(super) const HEAD_WORDS: usize = HEADER / size_of::<u64>();
/// Fewest and most records.
const FEWEST: u32 = 1;
const MOST: u32 = 1 << 22;

/// The header's word of places that are or were used: those beyond have never held a record.
pub(super) const USED: usize = 0;
/// The header's word that the daemon changes when it is about to look.
pub(super) const ASKED: usize = 1;
/// The header's word in which the stack repeats the one before, once all records are up to date.
pub(super) const ANSWERED: usize = 2;
/// The header's first word of those that count.
const COUNTS: usize = 8;

/// What a stack counts, beside what is about single connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Count {
    /// Connections that there are.
    Connections,
    /// Connections that have left nothing but their TIME-WAIT; they are not in the table.
    TimeWaits,
    /// Connections for which the table has no place, at least.
    Unlisted,
    /// Connections that became established.
    Established,
    /// Segments sent again.
    Retransmissions,
    /// Retransmission time-outs.
    Timeouts,
    /// Resets sent.
    Resets,
    /// SYNs and handshakes that found the queue of connections to accept full.
    AcceptQueue,
    /// SYNs that found too many half-open connections, and were answered by a cookie.
    SynQueue,
    /// SYNs that were dropped because the table of connections was full.
    NoSlot,
    /// Segments that were not taken for any reason.
    Dropped,
    /// Packets that came over links from where their senders may not send.
    LinkRefused,
}

impl Count {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Connections,
        Self::TimeWaits,
        Self::Unlisted,
        Self::Established,
        Self::Retransmissions,
        Self::Timeouts,
        Self::Resets,
        Self::AcceptQueue,
        Self::SynQueue,
        Self::NoSlot,
        Self::Dropped,
        Self::LinkRefused,
    ];

    pub(super) fn word(self) -> usize {
        COUNTS + self as usize
    }
}

/// Why a table of connections is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionsError {
    /// Not within the range.
    #[error("{0} places for connections: it must be {FEWEST} to {MOST}")]
    Places(u32),
    /// The memory is shorter than that.
    #[error("the table of connections needs {needed} bytes of memory and has {given}")]
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
/// [`ConnectionsError::Places`] when it is not 1 to 4,194,304.
pub fn bytes(places: u32) -> Result<usize, ConnectionsError> {
    if !(FEWEST..=MOST).contains(&places) {
        return Err(ConnectionsError::Places(places));
    }
    Ok(HEADER + places as usize * RECORD)
}

/// The memory of a table. How many places it has is this side's own knowledge.
#[derive(Debug)]
pub(super) struct Memory {
    region: Region,
    places: u32,
}

impl Memory {
    pub(super) fn new(region: Region, places: u32) -> Result<Self, ConnectionsError> {
        let (needed, given) = (bytes(places)?, region.length());
        if given < needed {
            return Err(ConnectionsError::Memory { needed, given });
        }
        Ok(Self { region, places })
    }

    pub(super) fn places(&self) -> u32 {
        self.places
    }

    /// A word of the header; one beyond the last is the last.
    pub(super) fn head(&self, word: usize) -> &AtomicU64 {
        let offset = word.min(HEAD_WORDS - 1) * size_of::<u64>();
        // SAFETY: within the header, for which `new` saw room; a region begins at a cache line, so the word is aligned; it
        // is only ever seen as an atomic.
        unsafe { self.region.base().add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// A place: its mark, and its words. `None`: there is no such place.
    pub(super) fn place(&self, place: u32) -> Option<(&AtomicU64, &[AtomicU64])> {
        if place >= self.places {
            return None;
        }
        let offset = HEADER + place as usize * RECORD;
        // SAFETY: the place is less than their number, for which `new` saw room behind the header; records are aligned to
        // words as the region is, and only ever seen as atomics.
        let words =
            unsafe { self.region.base().add(offset).cast::<[AtomicU64; WORDS + 1]>().as_ref() };
        words.split_first()
    }
}
