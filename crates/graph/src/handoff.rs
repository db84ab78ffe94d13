//! Packets on their way from one thread to another.
//!
//! One form serves all of them: a worker to the control thread (punt), the control thread to a
//! worker (inject), a worker to a worker (software RSS; transmit queues that another worker owns).
//! The rings have one producer and one consumer and a fixed size; a full ring is a counted drop.

use dpdk::Buffer;

use crate::{InterfaceId, NodeId};

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
    /// Interface that it leaves by, where that is known.
    pub egress: InterfaceId,
    /// Offset of its network header: bytes.
    pub network: u16,
    /// Its next hop, where that is known.
    pub next_hop: u32,
}

impl Handoff {
    /// A packet that enters a worker's graph at `node`, all else zero.
    #[must_use]
    pub fn to_node(buffer: Buffer, node: NodeId) -> Self {
        Self { buffer, entry: node.0, interface: 0, egress: 0, network: 0, next_hop: 0 }
    }
}

/// The sending end of a ring of handoffs.
pub type HandoffSender = rtrb::Producer<Handoff>;

/// The receiving end of a ring of handoffs.
pub type HandoffReceiver = rtrb::Consumer<Handoff>;

/// Both ends of a ring that holds `capacity` packets.
#[must_use]
pub fn ring(capacity: usize) -> (HandoffSender, HandoffReceiver) {
    rtrb::RingBuffer::new(capacity)
}
