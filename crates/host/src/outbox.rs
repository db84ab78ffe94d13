//! Datagrams on their way out. They wait for the next turn, and longer while the way out is full: as in
//! Linux, a socket may have only so many bytes there (`SO_SNDBUF`), and is told when there is room again.

use std::collections::VecDeque;

use transport::{Departure, Sink};

use crate::session::Id;

/// What a datagram counts beyond its bytes, as Linux counts the memory of its buffer.
const COST: usize = 512;

/// Packets in order, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// The packets are in `bytes[head..tail]`.
    head: usize,
    tail: usize,
    packets: VecDeque<(u32, Id)>,
    /// Bytes that wait, by session.
    used: Vec<usize>,
    /// Who sends now.
    sender: Option<Id>,
    /// Sessions that were refused.
    starved: Vec<Id>,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes of a session that wait.
    pub(crate) fn bytes_of(&self, id: Id) -> usize {
        self.used.get(id.0 as usize).copied().unwrap_or(0)
    }

    /// The sink for datagrams of a session.
    pub(crate) fn of(&mut self, id: Id) -> &mut Self {
        self.sender = Some(id);
        self
    }

    /// A session was refused: it is woken when all is sent.
    pub(crate) fn starve(&mut self, id: Id) {
        if !self.starved.contains(&id) {
            self.starved.push(id);
        }
    }

    /// What a closed session has sent leaves, but is nobody's.
    pub(crate) fn forget(&mut self, id: Id) {
        if let Some(used) = self.used.get_mut(id.0 as usize) {
            *used = 0;
        }
        self.starved.retain(|starved| *starved != id);
        for (_, owner) in self.packets.iter_mut().filter(|(_, owner)| *owner == id) {
            *owner = Id(u32::MAX);
        }
    }

    fn free(&mut self, id: Id, bytes: usize) {
        if let Some(used) = self.used.get_mut(id.0 as usize) {
            *used = used.saturating_sub(bytes);
        }
    }

    /// The sessions that were refused.
    pub(crate) fn take_starved(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.starved)
    }

    /// Moves what it can. Gives whether all has left.
    pub(crate) fn drain<S: Sink + ?Sized>(&mut self, sink: &mut S) -> bool {
        while let Some((length, id)) = self.packets.front().copied() {
            let length = length as usize;
            let packet = self.bytes.get(self.head..self.head + length).unwrap_or(&[]);
            if !copy(packet, sink) {
                return false;
            }
            let header_length =
                if packet.first().is_some_and(|first| first >> 4 == 4) { 28 } else { 48 };
            sink.send(Departure { length, segment_size: 0, header_length });
            self.packets.pop_front();
            self.head += length;
            self.free(id, length + COST);
        }
        (self.head, self.tail) = (0, 0);
        true
    }
}

/// Copies a packet into a buffer, or into a chain of them. Gives whether there was room.
fn copy<S: Sink + ?Sized>(packet: &[u8], sink: &mut S) -> bool {
    let Some(buffer) = sink.buffer(packet.len()) else { return false };
    let (now, mut rest) = packet.split_at(buffer.len().min(packet.len()));
    if let Some(place) = buffer.get_mut(..now.len()) {
        place.copy_from_slice(now);
    }
    while !rest.is_empty() {
        let Some(piece) = sink.extend(rest.len()).filter(|piece| !piece.is_empty()) else {
            return false;
        };
        let (now, later) = rest.split_at(piece.len().min(rest.len()));
        if let Some(place) = piece.get_mut(..now.len()) {
            place.copy_from_slice(now);
        }
        rest = later;
    }
    true
}

impl Sink for Outbox {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.tail + length > self.bytes.len() {
            self.bytes.copy_within(self.head..self.tail, 0);
            (self.head, self.tail) = (0, self.tail - self.head);
            let needed = self.tail + length;
            if needed > self.bytes.len() {
                self.bytes.resize(needed.next_power_of_two(), 0);
            }
        }
        self.bytes.get_mut(self.tail..self.tail + length)
    }

    fn send(&mut self, departure: Departure) {
        let Some(id) = self.sender else { return };
        self.tail += departure.length;
        self.packets.push_back((departure.length as u32, id));
        let place = id.0 as usize;
        if place >= self.used.len() {
            self.used.resize(place + 1, 0);
        }
        if let Some(used) = self.used.get_mut(place) {
            *used += departure.length + COST;
        }
    }
}
