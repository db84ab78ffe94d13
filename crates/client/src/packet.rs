//! A packet that was received.

use shm::Taken;
use shm::attach::flag;

/// A packet in a channel's memory. It holds its slots until the channel that received it gets it back: by
/// [`send`](crate::Channel::send), [`return_to_graph`](crate::Channel::return_to_graph) or
/// [`release`](crate::Channel::release). Its bytes are seen through that channel.
#[derive(Debug)]
#[must_use = "its slots stay taken until it is sent, returned or released"]
pub struct Packet {
    pub(crate) taken: Taken,
    pub(crate) worker: usize,
    port: u8,
}

impl Packet {
    pub(crate) fn new(taken: Taken, worker: usize) -> Self {
        let port = taken.meta().port;
        Self { taken, worker, port }
    }

    /// Bytes, 1 to 65,535.
    #[must_use]
    pub fn length(&self) -> usize {
        self.taken.length()
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
        self.taken.meta().flags & flag::COPY != 0
    }

    /// Pieces in which it lies: one, unless it is longer than a slot.
    #[must_use]
    pub fn pieces(&self) -> u32 {
        self.taken.slots()
    }
}
