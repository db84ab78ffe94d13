//! The ways in which packets leave the graph, and where nodes put packets that they made.

use std::collections::VecDeque;
use std::sync::Arc;

use dpdk::Buffer;

use crate::{
    CAPACITY, Counters, Handoff, HandoffSender, Output, PortId, Reason, Slot, TransmitPath,
};

/// Packets made by nodes that wait to enter the graph: a bound, so that a node can't flood itself.
const ORIGINATED_LIMIT: usize = 4096;

/// Transmit buffers, the ring to the control thread, drops and originated packets of one worker.
pub struct Exits {
    /// Per-port transmit buffers.
    pub output: Output,
    /// This worker's counters.
    pub counters: Arc<Counters>,
    punts: HandoffSender,
    originated: VecDeque<Handoff>,
    dropped: Box<[Option<Buffer>; CAPACITY]>,
    dropped_len: usize,
}

impl Exits {
    /// Exits with no transmit path yet; packets for the control thread go to `punts`.
    #[must_use]
    pub fn new(output: Output, counters: Arc<Counters>, punts: HandoffSender) -> Self {
        Self {
            output,
            counters,
            punts,
            originated: VecDeque::new(),
            dropped: Box::new([const { None }; CAPACITY]),
            dropped_len: 0,
        }
    }

    /// Gives the port a transmit path, or takes it away (`None`); buffered packets are sent first.
    pub fn set_path(&mut self, port: PortId, path: Option<TransmitPath>) -> Option<TransmitPath> {
        self.output.set_path(port, path, &self.counters)
    }

    #[inline(always)]
    pub(crate) fn transmit(&mut self, buffer: Buffer, _slot: Slot, port: PortId, now: u64) {
        if let Err(buffer) = self.output.push(port, buffer, now, &self.counters) {
            self.drop(buffer, Some(_slot), Reason::PortDown);
        }
    }

    /// Frees a packet, later and in bulk, and counts why.
    pub fn drop(&mut self, buffer: Buffer, _slot: Option<Slot>, reason: Reason) {
        self.counters.drops[reason as usize].add(1);
        if self.dropped_len == CAPACITY {
            self.free_dropped();
        }
        self.dropped[self.dropped_len] = Some(buffer);
        self.dropped_len += 1;
    }

    pub(crate) fn punt(&mut self, handoff: Handoff, slot: Slot) {
        if let Err(rtrb::PushError::Full(handoff)) = self.punts.push(handoff) {
            self.drop(handoff.buffer, Some(slot), Reason::PuntFull);
        }
    }

    pub(crate) fn originate(&mut self, packet: Handoff) {
        if self.originated.len() < ORIGINATED_LIMIT {
            self.originated.push_back(packet);
        } else {
            self.drop(packet.buffer, None, Reason::NoRoom);
        }
    }

    pub(crate) fn next_originated(&mut self) -> Option<Handoff> {
        self.originated.pop_front()
    }

    pub(crate) fn has_originated(&self) -> bool {
        !self.originated.is_empty()
    }

    pub(crate) fn free_dropped(&mut self) {
        if self.dropped_len > 0 {
            dpdk::free_bulk(&mut self.dropped[..self.dropped_len]);
            self.dropped_len = 0;
        }
    }

    /// Whether packets wait in the ring to the control thread.
    #[must_use]
    pub fn punted(&self) -> bool {
        self.punts.slots() < self.punts.buffer().capacity()
    }
}
