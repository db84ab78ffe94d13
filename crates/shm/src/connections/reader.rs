//! The side that looks: the daemon.

use super::mark::{self, Found};
use super::place::{ANSWERED, ASKED, ConnectionsError, Count, Memory, USED, WORDS};
use super::record::Record;
use crate::Region;
use crate::sync::Ordering;

/// Looks at a stack's connections.
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
        let used = self.memory.head(USED).load(Ordering::Acquire);
        let used = u32::try_from(used).unwrap_or(u32::MAX).min(self.memory.places());
        (0..used).filter_map(|place| self.record(place))
    }

    fn record(&self, place: u32) -> Option<Record> {
        let (head, words) = self.memory.place(place)?;
        let mut values = [0; WORDS];
        match mark::read(head, words, &mut values) {
            Found::Whole => Record::decode(&values),
            Found::Nothing | Found::Changing => None,
        }
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
