//! Packets on their way from one thread to another.
//!
//! One form serves all of them: a worker to the control thread (punt), the control thread to a
//! worker (inject), a worker to a worker (software RSS; transmit queues that another worker owns).
//! The rings have one producer and one consumer and a fixed size; a full ring is a counted drop.

use std::sync::Arc;

use dpdk::Buffer;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::{Doorbell, InterfaceId, NodeId};

/// A packet with what the receiving thread must know of it.
#[derive(Debug)]
pub struct Handoff {
    /// The packet.
    pub buffer: Buffer,
    /// To a worker: the node where it enters the graph. From a worker: why it was punted, as
    /// numbered by the punting node.
    pub entry: u16,
    /// Interface that it came in on (`InterfaceId`).
    pub interface: InterfaceId,
    /// Interface that it leaves by, where that is known; in a ring for transmission: the port.
    pub egress: InterfaceId,
    /// Offset of its network header: bytes.
    pub network: u16,
    /// Its next hop, where that is known.
    pub next_hop: u32,
    /// Detail for the node where it enters (`Vector::word`).
    pub word: u32,
}

impl Handoff {
    /// A packet of which nothing is known.
    #[must_use]
    pub fn of(buffer: Buffer) -> Self {
        Self { buffer, entry: 0, interface: 0, egress: 0, network: 0, next_hop: 0, word: 0 }
    }

    /// A packet that enters a worker's graph at `node`, all else zero.
    #[must_use]
    pub fn to_node(buffer: Buffer, node: NodeId) -> Self {
        Self { entry: node.0, ..Self::of(buffer) }
    }
}

/// The sending end of a ring of handoffs, with the doorbell of the thread at the other end.
#[derive(Debug)]
pub struct HandoffSender {
    ring: Producer<Handoff>,
    doorbell: Arc<Doorbell>,
    unannounced: bool,
}

impl HandoffSender {
    /// Puts a packet into the ring; gives it back when the ring is full. [`Self::notify`] comes
    /// after, once for any number of packets.
    #[inline]
    pub fn push(&mut self, packet: Handoff) -> Result<(), Handoff> {
        self.unannounced = true;
        self.ring.push(packet).map_err(|PushError::Full(packet)| packet)
    }

    /// Moves packets from the front of `slots` into the ring, each as `make` says, until one slot is
    /// empty or the ring is full; returns how many.
    pub fn extend(
        &mut self,
        slots: &mut [Option<Buffer>],
        make: impl FnMut(Buffer) -> Handoff,
    ) -> usize {
        let room = self.ring.slots().min(slots.len());
        self.unannounced |= room > 0;
        let packets = slots.iter_mut().take(room).map_while(Option::take).map(make);
        self.ring.write_chunk_uninit(room).map_or(0, |chunk| chunk.fill_from_iter(packets))
    }

    /// Wakes the thread at the other end if it sleeps and packets were pushed since the last call.
    #[inline]
    pub fn notify(&mut self) {
        if self.unannounced {
            self.unannounced = false;
            self.doorbell.ring();
        }
    }

    /// Whether the other end is gone: nobody will take packets out any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }
}

/// The receiving end of a ring of handoffs.
pub type HandoffReceiver = Consumer<Handoff>;

/// Both ends of a ring that holds `capacity` packets. `doorbell` is the receiving thread's.
#[must_use]
pub fn ring(capacity: usize, doorbell: Arc<Doorbell>) -> (HandoffSender, HandoffReceiver) {
    let (ring, receiver) = RingBuffer::new(capacity);
    (HandoffSender { ring, doorbell, unannounced: false }, receiver)
}
