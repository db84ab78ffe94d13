//! The side that looks: the daemon.

use super::mark::{self, Found};
use super::place::{ANSWERED, ASKED, ConnectionsError, Count, Memory, USED, USED_SOCKETS};
use super::record::Record;
use super::socket::SocketRecord;
use crate::Region;
use crate::sync::{AtomicU64, Ordering};

/// Looks at a stack's connections and UDP sockets.
#[derive(Debug)]
pub struct ConnectionsReader {
    memory: Memory,
}

impl ConnectionsReader {
    /// Of a table with `places` places in this region.
    ///
    /// # Errors
    /// [`ConnectionsError`] when that is no size for a table, or more than the region holds.
    pub fn new(region: Region, places: u32) -> Result<Self, ConnectionsError> {
        Ok(Self { memory: Memory::new(region, places)? })
    }

    /// All connections, as the stack says. Those that change too fast to be read, and those that make no sense, are left out.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let used = self.used(USED, self.memory.places());
        (0..used).filter_map(|place| self.record(place))
    }

    /// All UDP sockets, in the same way.
    pub fn sockets(&self) -> impl Iterator<Item = SocketRecord> {
        let used = self.used(USED_SOCKETS, self.memory.sockets());
        (0..used).filter_map(|place| self.socket(place))
    }

    /// How many places are or were used, as the stack says in a word of the header.
    fn used(&self, word: usize, places: u32) -> u32 {
        let used = self.memory.head(word).load(Ordering::Acquire);
        u32::try_from(used).unwrap_or(u32::MAX).min(places)
    }

    fn record(&self, place: u32) -> Option<Record> {
        Record::decode(&whole(self.memory.place(place)?)?)
    }

    fn socket(&self, place: u32) -> Option<SocketRecord> {
        SocketRecord::decode(&whole(self.memory.socket(place)?)?)
    }

    /// What the stack has counted, as it says.
    #[must_use]
    pub fn count(&self, count: Count) -> u64 {
        self.memory.head(count.word()).load(Ordering::Relaxed)
    }

    /// Asks the stack to bring its records up to date. Gives the number of this wish.
    pub fn ask(&self) -> u64 {
        self.memory.head(ASKED).fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Whether the stack has fulfilled that wish, or a later one, as it says.
    #[must_use]
    pub fn has_answered(&self, wish: u64) -> bool {
        self.memory.head(ANSWERED).load(Ordering::Acquire).wrapping_sub(wish) <= u64::MAX / 2
    }
}

/// The words of a place, if they are a whole record.
fn whole<const N: usize>((head, words): (&AtomicU64, &[AtomicU64])) -> Option<[u64; N]> {
    let mut values = [0; N];
    match mark::read(head, words, &mut values) {
        Found::Whole => Some(values),
        Found::Nothing | Found::Changing => None,
    }
}
