//! Where what lies.

use crate::segment::Region;
use crate::sync::AtomicU64;

/// Words of a record, the mark not counted: three cache lines with it.
pub(super) const WORDS: usize = 23;
/// Words of a UDP socket's record, the mark not counted.
pub(super) const SOCKET_WORDS: usize = 9;
/// Bytes ahead of the first record.
pub(super) const HEADER: usize = 256;
/// Words of the header.
pub(super) const HEAD_WORDS: usize = HEADER / size_of::<u64>();
/// Fewest and most records.
const FEWEST: u32 = 1;
const MOST: u32 = 1 << 22;
/// Most records of UDP sockets: a stack goes by all of them in one look.
const MOST_SOCKETS: u32 = 4096;

/// The header's word of places that are or were used: those beyond have never held a record.
pub(super) const USED: usize = 0;
/// The header's word that the daemon changes when it is about to look.
pub(super) const ASKED: usize = 1;
/// The header's word in which the stack repeats the one before, once all records are up to date.
pub(super) const ANSWERED: usize = 2;
/// The header's word of places for UDP sockets that are or were used.
pub(super) const USED_SOCKETS: usize = 3;
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
    /// UDP sockets for which the table has no place, at most.
    UnlistedSockets,
}

impl Count {
    /// All of them.
    pub const ALL: [Self; 13] = [
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
        Self::UnlistedSockets,
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
    let records = places as usize * (WORDS + 1) + sockets(places) as usize * (SOCKET_WORDS + 1);
    Ok(HEADER + records * size_of::<u64>())
}

/// Places for UDP sockets in a table with `places` places for connections: a quarter of them, 4,096 at most.
#[must_use]
pub fn sockets(places: u32) -> u32 {
    places.div_ceil(4).min(MOST_SOCKETS)
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

    pub(super) fn sockets(&self) -> u32 {
        sockets(self.places)
    }

    /// A word of the header; one beyond the last is the last.
    pub(super) fn head(&self, word: usize) -> &AtomicU64 {
        let offset = word.min(HEAD_WORDS - 1) * size_of::<u64>();
        // SAFETY: within the header, for which `new` saw room; a region begins at a cache line, so the word is aligned; it
        // is only ever seen as an atomic.
        unsafe { self.region.base().add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// A connection's place: its mark, and its words. `None`: there is no such place.
    pub(super) fn place(&self, place: u32) -> Option<(&AtomicU64, &[AtomicU64])> {
        let first = HEAD_WORDS + place as usize * (WORDS + 1);
        if place < self.places { self.words::<{ WORDS + 1 }>(first) } else { None }
    }

    /// A UDP socket's, behind those of connections.
    pub(super) fn socket(&self, place: u32) -> Option<(&AtomicU64, &[AtomicU64])> {
        let begin = HEAD_WORDS + self.places as usize * (WORDS + 1);
        let first = begin + place as usize * (SOCKET_WORDS + 1);
        if place < self.sockets() { self.words::<{ SOCKET_WORDS + 1 }>(first) } else { None }
    }

    /// So many words from one of the region on, the first apart. `None`: the region ends before.
    fn words<const N: usize>(&self, first: usize) -> Option<(&AtomicU64, &[AtomicU64])> {
        let offset = first * size_of::<u64>();
        if offset + N * size_of::<u64>() > self.region.length() {
            return None;
        }
        // SAFETY: they are within the region, as was checked above; a region begins at a cache line, so words are aligned; they
        // are only ever seen as atomics.
        let words = unsafe { self.region.base().add(offset).cast::<[AtomicU64; N]>().as_ref() };
        words.split_first()
    }
}
