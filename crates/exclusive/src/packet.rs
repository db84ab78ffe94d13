//! A packet that was received.

use dpdk::Buffer;

/// A packet in a buffer of the devices' pool. Its buffer goes back when the packet is sent, released or dropped.
#[derive(Debug)]
pub struct Packet {
    pub(crate) buffer: Buffer,
    port: u8,
}

impl Packet {
    pub(crate) fn new(buffer: Buffer, port: u8) -> Self {
        Self { buffer, port }
    }

    /// Bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.buffer.len()
    }

    /// The port where it came in, or what [`set_port`](Self::set_port) said.
    #[must_use]
    pub fn port(&self) -> u8 {
        self.port
    }

    /// The port by which [`send_burst`](crate::Queue::send_burst) sends it.
    pub fn set_port(&mut self, port: u8) {
        self.port = port;
    }

    /// Pieces in which it lies: one, unless it is longer than a buffer.
    #[must_use]
    pub fn pieces(&self) -> usize {
        usize::from(self.buffer.segment_count())
    }
}
