//! Datagrams on their way out. They wait for the next turn, and longer while the way out is full: as in
//! Linux, a socket may have only so many bytes there (`SO_SNDBUF`), and is told when there is room again.

use tables::{PagedArray, PagedList, PagedQueue};
use transport::fifo::PIECE;
use transport::{Departure, Sink};
use wire::{Protocol, ipv4, ipv6, udp};

use crate::fifo::{borrow, give};
use crate::session::Id;

/// What a datagram counts beyond its bytes, as Linux counts the memory of its buffer.
const COST: usize = 512;

/// A packet, in pieces of memory of its own: it is never moved.
#[derive(Debug)]
struct Waiting {
    length: usize,
    /// Whose it is; `None`: nobody's any more.
    owner: Option<Id>,
    first: Box<[u8]>,
    /// Of a packet that is longer than a piece; four at most.
    rest: Vec<Box<[u8]>>,
}

/// Packets in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    packets: PagedList<Waiting>,
    /// Of the packet that is being written.
    first: Box<[u8]>,
    rest: Vec<Box<[u8]>>,
    /// Bytes that wait, by session.
    used: PagedArray<usize>,
    /// Who sends now.
    sender: Option<Id>,
    /// Sessions that were refused.
    starved: PagedQueue<Id>,
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
        if !self.starved.iter().any(|starved| *starved == id) {
            self.starved.push_back(id);
        }
    }

    /// What a closed session has sent leaves, but is nobody's.
    pub(crate) fn forget(&mut self, id: Id) {
        if let Some(used) = self.used.get_mut(id.0 as usize) {
            *used = 0;
        }
        self.starved.retain(|starved| *starved != id);
        for packet in self.packets.iter_mut().filter(|packet| packet.owner == Some(id)) {
            packet.owner = None;
        }
    }

    fn free(&mut self, owner: Option<Id>, bytes: usize) {
        if let Some(used) = owner.and_then(|id| self.used.get_mut(id.0 as usize)) {
            *used = used.saturating_sub(bytes);
        }
    }

    /// A session that was refused.
    pub(crate) fn next_starved(&mut self) -> Option<Id> {
        self.starved.pop_front()
    }

    /// Moves what it can. Gives whether all has left.
    pub(crate) fn drain<S: Sink + ?Sized>(&mut self, sink: &mut S) -> bool {
        while let Some(packet) = self.packets.front() {
            if copy(packet, sink).is_none() {
                return false;
            }
            let (length, owner) = (packet.length, packet.owner);
            let header_length = headers(&packet.first);
            sink.send(Departure { length, segment_size: 0, header_length });
            if let Some(packet) = self.packets.pop_front() {
                give(packet.first);
                packet.rest.into_iter().for_each(give);
            }
            self.free(owner, length + COST);
        }
        true
    }

    /// Gives back what a packet that was not sent has written.
    fn begin(&mut self) {
        let first = std::mem::take(&mut self.first);
        self.rest.drain(..).chain([first]).filter(|piece| !piece.is_empty()).for_each(give);
    }
}

/// Bytes of a datagram's headers.
fn headers(packet: &[u8]) -> u16 {
    let ip = match ipv6::Header::peek(packet) {
        None => ipv4::HEADER_LENGTH,
        Some(header) if header.next_header() == Protocol::FRAGMENT => {
            ipv6::HEADER_LENGTH + ipv6::Fragment::HEADER_LENGTH
        }
        Some(_) => ipv6::HEADER_LENGTH,
    };
    (ip + udp::HEADER_LENGTH) as u16
}

/// Copies a packet into a buffer, or into a chain of them. `None`: there was no room.
fn copy<S: Sink + ?Sized>(packet: &Waiting, sink: &mut S) -> Option<()> {
    let mut left = packet.length;
    let mut target = sink.buffer(left)?;
    for piece in [&packet.first].into_iter().chain(&packet.rest) {
        let mut run = piece.get(..piece.len().min(left)).unwrap_or(&[]);
        while !run.is_empty() {
            if target.is_empty() {
                target = sink.extend(left).filter(|piece| !piece.is_empty())?;
            }
            let (now, later) = run.split_at(run.len().min(target.len()));
            let (place, free) = std::mem::take(&mut target).split_at_mut(now.len());
            place.copy_from_slice(now);
            (run, target, left) = (later, free, left - now.len());
        }
    }
    Some(())
}

impl Sink for Outbox {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.begin();
        let length = length.min(PIECE);
        self.first = borrow(length);
        self.first.get_mut(..length)
    }

    fn extend(&mut self, left: usize) -> Option<&mut [u8]> {
        let length = left.min(PIECE);
        self.rest.push(borrow(length));
        self.rest.last_mut()?.get_mut(..length)
    }

    fn head(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.first)
    }

    fn send(&mut self, departure: Departure) {
        let Some(id) = self.sender else { return };
        let (first, rest) = (std::mem::take(&mut self.first), std::mem::take(&mut self.rest));
        let length = departure.length;
        self.packets.push_back(Waiting { length, owner: Some(id), first, rest });
        let used = self.bytes_of(id) + length + COST;
        self.used.put(id.0 as usize, used);
    }
}
