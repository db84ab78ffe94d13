//! The side whose connections they are: a stack.

use super::mark;
use super::place::{ANSWERED, ASKED, ConnectionsError, Count, Memory, USED, USED_SOCKETS};
use super::record::Record;
use super::socket::SocketRecord;
use crate::Region;
use crate::sync::Ordering;

/// Says which connections and UDP sockets a stack has.
#[derive(Debug)]
pub struct ConnectionsWriter {
    memory: Memory,
    /// Places that are or were used: of connections, of UDP sockets.
    used: u32,
    used_sockets: u32,
}

impl ConnectionsWriter {
    /// Of an empty table with `places` places in this region, whose only writer it is.
    ///
    /// # Errors
    /// [`ConnectionsError`] when that is no size for a table, or more than the region holds.
    pub fn new(region: Region, places: u32) -> Result<Self, ConnectionsError> {
        Ok(Self { memory: Memory::new(region, places)?, used: 0, used_sockets: 0 })
    }

    /// Places for connections.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.memory.places()
    }

    /// Places for UDP sockets.
    #[must_use]
    pub fn sockets(&self) -> u32 {
        self.memory.sockets()
    }

    /// Writes a connection's record at a place. `false`: there is no such place.
    pub fn write(&mut self, place: u32, record: &Record) -> bool {
        let Some((head, words)) = self.memory.place(place) else { return false };
        mark::write(head, words, &record.encode());
        reach(&self.memory, USED, &mut self.used, place);
        true
    }

    /// Writes a UDP socket's record at a place of its own kind. `false`: there is no such place.
    pub fn write_socket(&mut self, place: u32, record: &SocketRecord) -> bool {
        let Some((head, words)) = self.memory.socket(place) else { return false };
        mark::write(head, words, &record.encode());
        reach(&self.memory, USED_SOCKETS, &mut self.used_sockets, place);
        true
    }

    /// The connection at a place is gone.
    pub fn clear(&mut self, place: u32) {
        if place >= self.used {
            return;
        }
        if let Some((head, _)) = self.memory.place(place) {
            mark::clear(head);
        }
    }

    /// The UDP socket at a place is gone.
    pub fn clear_socket(&mut self, place: u32) {
        if place >= self.used_sockets {
            return;
        }
        if let Some((head, _)) = self.memory.socket(place) {
            mark::clear(head);
        }
    }

    /// Says what was counted.
    pub fn count(&mut self, count: Count, value: u64) {
        self.memory.head(count.word()).store(value, Ordering::Relaxed);
    }

    /// The number of the daemon's latest wish to look that was not [fulfilled](Self::answer) yet.
    #[must_use]
    pub fn asked(&self) -> Option<u64> {
        let asked = self.memory.head(ASKED).load(Ordering::Relaxed);
        (asked != self.memory.head(ANSWERED).load(Ordering::Relaxed)).then_some(asked)
    }

    /// All records are up to date, for that wish.
    pub fn answer(&mut self, asked: u64) {
        self.memory.head(ANSWERED).store(asked, Ordering::Release);
    }
}

/// A place is used: a word of the header says how many are or were.
fn reach(memory: &Memory, word: usize, used: &mut u32, place: u32) {
    if place >= *used {
        *used = place + 1;
        memory.head(word).store((*used).into(), Ordering::Release);
    }
}
