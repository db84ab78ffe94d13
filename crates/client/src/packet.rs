//! A packet that was received.

use shm::attach::{REFERENCE, flag};
use shm::{Lent, Taken};

/// A packet in a channel's memory. It holds its slots, or its buffer, until the channel that received it gets it back: by
/// [`send`](crate::Channel::send), [`return_to_graph`](crate::Channel::return_to_graph) or
/// [`release`](crate::Channel::release). Its bytes are seen through that channel.
#[derive(Debug)]
#[must_use = "its memory stays taken until it is sent, returned or released"]
pub struct Packet {
    pub(crate) place: Place,
    pub(crate) worker: usize,
    port: u8,
}

/// Where a packet lies.
#[derive(Debug)]
pub(crate) enum Place {
    /// In slots of the ring.
    Slots(Taken),
    /// Where the device has put it, and how the daemon is referred to it.
    Buffer(Lent, [u8; REFERENCE]),
}

impl Packet {
    pub(crate) fn new(place: Place, worker: usize, port: u8) -> Self {
        Self { place, worker, port }
    }

    /// Bytes, 1 to 65,535.
    #[must_use]
    pub fn length(&self) -> usize {
        match &self.place {
            Place::Slots(taken) => taken.length(),
            Place::Buffer(lent, _) => lent.reference().length as usize,
        }
    }

    /// The port where it came in, or what [`set_port`](Self::set_port) said.
    #[must_use]
    pub fn port(&self) -> u8 {
        self.port
    }

    /// The port by which [`send_burst`](crate::Channel::send_burst) sends it.
    pub fn set_port(&mut self, port: u8) {
        self.port = port;
    }

    /// Whether it is a copy: the packet itself went on.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        match &self.place {
            Place::Slots(taken) => taken.meta().flags & flag::COPY != 0,
            Place::Buffer(..) => false,
        }
    }

    /// Pieces in which it lies: one, unless it is longer than a slot.
    #[must_use]
    pub fn pieces(&self) -> u32 {
        match &self.place {
            Place::Slots(taken) => taken.slots(),
            Place::Buffer(..) => 1,
        }
    }
}
