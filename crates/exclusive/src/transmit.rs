//! A transmit queue and the burst that it is given.

use dpdk::{Buffer, TxQueue};

use crate::Packet;

/// A thread's way out by a port.
#[derive(Debug)]
pub(crate) struct Transmit {
    pub(crate) queue: TxQueue,
    /// Packets of the burst that is being sent; empty between two calls.
    pub(crate) burst: Vec<Option<Buffer>>,
}

impl Transmit {
    pub(crate) fn new(queue: TxQueue) -> Self {
        Self { queue, burst: Vec::new() }
    }

    /// Sends the burst; what the device did not take goes to `kept`.
    #[inline]
    pub(crate) fn flush(&mut self, port: u8, kept: &mut Vec<Packet>) {
        let mut sent = 0;
        while let Some(rest) = self.burst.get_mut(sent..).filter(|rest| !rest.is_empty()) {
            match self.queue.burst(rest).packets {
                0 => break,
                some => sent += some,
            }
        }
        kept.extend(self.burst.drain(..).flatten().map(|buffer| Packet::new(buffer, port)));
    }
}
