//! Packets that are handed from one stack to the other, in memory that is used again.

use transport::{Departure, Packet, Sink};

/// Bytes for a packet.
const ROOM: usize = 2048;

/// Packets of one batch.
#[derive(Debug, Default)]
pub(super) struct Wire {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl Wire {
    pub(super) fn clear(&mut self) {
        self.lengths.clear();
    }

    pub(super) fn packets(&self) -> Vec<Packet<'_>> {
        let rooms = self.bytes.chunks(ROOM).zip(&self.lengths);
        rooms.filter_map(|(room, length)| Some(Packet::new(room.get(..*length)?))).collect()
    }
}

impl Sink for Wire {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        let start = self.lengths.len() * ROOM;
        if self.bytes.len() < start + ROOM {
            self.bytes.resize(start + ROOM, 0);
        }
        self.bytes.get_mut(start..start + length.min(ROOM))
    }

    fn send(&mut self, departure: Departure) {
        self.lengths.push(departure.length);
    }
}
