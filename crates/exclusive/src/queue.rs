//! The queues of one thread: receiving and looking.

use std::sync::Arc;

use dpdk::{Buffer, BufferPool, RxQueue, TxQueue};

use crate::Packet;
use crate::transmit::Transmit;

/// Packets that a device is asked for at one time.
const BURST: usize = 64;

/// What a queue has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets received.
    pub received: u64,
    /// Packets that a device took to send.
    pub sent: u64,
    /// Packets that were not sent because the device took no more: once for each try.
    pub full: u64,
}

/// Packets for one thread: receive queues of the devices, and a transmit queue to each port. `Send`: open several,
/// move each to its thread, and call [`register_thread`](crate::register_thread) there first: buffers then come
/// from a cache of the thread's own.
#[derive(Debug)]
pub struct Queue {
    receive: Vec<(u8, RxQueue)>,
    /// The receive queue whose turn it is to be asked first.
    first: usize,
    /// By the number of the port.
    pub(crate) transmit: Vec<Transmit>,
    /// In use as long as the queue is there.
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) counters: Counters,
    /// Empty between two calls.
    slots: Vec<Option<Buffer>>,
}

impl Queue {
    pub(crate) fn new(pool: Arc<BufferPool>) -> Self {
        Self {
            receive: Vec::new(),
            first: 0,
            transmit: Vec::new(),
            pool,
            counters: Counters::default(),
            slots: std::iter::repeat_with(|| None).take(BURST).collect(),
        }
    }

    pub(crate) fn receive_from(&mut self, port: u8, queue: RxQueue) {
        self.receive.push((port, queue));
    }

    /// To the next port.
    pub(crate) fn send_to(&mut self, queue: TxQueue) {
        self.transmit.push(Transmit::new(queue));
    }

    /// Takes up to `limit` packets from the devices and appends them to `packets`; gives how many. It never waits.
    #[inline]
    pub fn receive(&mut self, packets: &mut Vec<Packet>, limit: usize) -> usize {
        let mut taken = 0;
        for turn in 0..self.receive.len() {
            let at = (self.first + turn) % self.receive.len();
            let Some((port, queue)) = self.receive.get_mut(at) else { break };
            while taken < limit {
                let room = (limit - taken).min(BURST);
                let Some(slots) = self.slots.get_mut(..room) else { break };
                let got = queue.burst(slots);
                let buffers = slots.iter_mut().take(got).filter_map(Option::take);
                packets.extend(buffers.map(|buffer| Packet::new(buffer, *port)));
                taken += got;
                if got < room {
                    break;
                }
            }
        }
        if taken > 0 {
            self.counters.received += taken as u64;
            self.first = (self.first + 1).checked_rem(self.receive.len()).unwrap_or(0);
        }
        taken
    }

    /// A packet's bytes where they lie: all of them, or the first piece of one that has several.
    #[inline]
    #[must_use]
    pub fn bytes<'a>(&self, packet: &'a Packet) -> &'a [u8] {
        packet.buffer.data()
    }

    /// The same, to change.
    #[inline]
    #[must_use]
    pub fn bytes_mut<'a>(&mut self, packet: &'a mut Packet) -> &'a mut [u8] {
        packet.buffer.data_mut()
    }

    /// A piece of a long packet, 0 being the first. `None` beyond the last.
    #[must_use]
    pub fn piece<'a>(&self, packet: &'a Packet, piece: usize) -> Option<&'a [u8]> {
        packet.buffer.segments().nth(piece).map(|segment| segment.data)
    }

    /// Copies a packet, however many pieces it has, as much as fits; gives bytes copied.
    pub fn copy(&self, packet: &Packet, target: &mut [u8]) -> usize {
        let mut copied = 0;
        for segment in packet.buffer.segments() {
            let room = target.get_mut(copied..).unwrap_or_default();
            let length = segment.data.len().min(room.len());
            if let (Some(to), Some(from)) = (room.get_mut(..length), segment.data.get(..length)) {
                to.copy_from_slice(from);
            }
            copied += length;
        }
        copied
    }

    /// Drops a packet: its buffer goes back to the pool.
    #[inline]
    pub fn release(&mut self, packet: Packet) {
        drop(packet);
    }

    /// Drops all of them.
    pub fn release_burst(&mut self, packets: &mut Vec<Packet>) {
        let mut packets = packets.drain(..);
        while packets.len() > 0 {
            for (slot, packet) in self.slots.iter_mut().zip(&mut packets) {
                *slot = Some(packet.buffer);
            }
            dpdk::free_bulk(&mut self.slots);
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
