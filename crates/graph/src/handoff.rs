//! Packets on their way from one thread to another.
//!
//! A worker hands packets to the control thread ([`Punt`]), the control thread to a worker ([`Entry`]), a worker to another
//! (software RSS; transmit queues that another worker owns): there the ring says all that is to be known, and buffers are
//! enough. The rings have one producer and one consumer and a fixed size; a full ring is a counted drop.

use std::sync::Arc;

use dpdk::Buffer;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::{Doorbell, IcmpError, InterfaceId, NodeId, StackId};

/// A packet with what is known of it.
#[derive(Debug)]
pub struct Handoff {
    /// The packet.
    pub buffer: Buffer,
    /// Interface that it came in on.
    pub interface: InterfaceId,
    /// Interface that it leaves by, where that is known.
    pub egress: InterfaceId,
    /// VRF in whose routes it is looked up, where a node does that which looks up in any.
    pub vrf: u16,
    /// Offset of its network header: bytes.
    pub network: u16,
    /// Its next hop, where that is known.
    pub next_hop: u32,
    /// What its sender is to be told, where the packet is refused.
    pub icmp_error: IcmpError,
    /// The stack that has sent it.
    pub stack: Option<StackId>,
}

impl Handoff {
    /// A packet of which nothing is known.
    #[must_use]
    pub fn of(buffer: Buffer) -> Self {
        Self {
            buffer,
            interface: InterfaceId::NONE,
            egress: InterfaceId::NONE,
            vrf: 0,
            network: 0,
            next_hop: 0,
            icmp_error: IcmpError::default(),
            stack: None,
        }
    }
}

/// A packet that enters a worker's graph.
#[derive(Debug)]
pub struct Entry {
    /// The node where it enters.
    pub node: NodeId,
    /// The packet.
    pub packet: Handoff,
}

impl Entry {
    /// A packet of which nothing is known, at `node`.
    #[must_use]
    pub fn of(buffer: Buffer, node: NodeId) -> Self {
        Self { node, packet: Handoff::of(buffer) }
    }
}

/// A packet that a worker hands to the control thread.
#[derive(Debug)]
pub struct Punt {
    /// Why, as numbered by the nodes.
    pub cause: u16,
    /// The packet.
    pub packet: Handoff,
}

/// The sending end of a ring of packets, with the doorbell of the thread at the other end.
#[derive(Debug)]
pub struct HandoffSender<T> {
    ring: Producer<T>,
    doorbell: Arc<Doorbell>,
    unannounced: bool,
}

impl<T> HandoffSender<T> {
    /// Puts a packet into the ring; gives it back when the ring is full. [`Self::notify`] comes
    /// after, once for any number of packets.
    #[inline]
    pub fn push(&mut self, packet: T) -> Result<(), T> {
        self.unannounced = true;
        self.ring.push(packet).map_err(|PushError::Full(packet)| packet)
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

impl HandoffSender<Buffer> {
    /// Moves packets from the front of `slots` into the ring, until one slot is empty or the ring is full; returns how many.
    pub fn extend(&mut self, slots: &mut [Option<Buffer>]) -> usize {
        let room = self.ring.slots().min(slots.len());
        self.unannounced |= room > 0;
        let packets = slots.iter_mut().take(room).map_while(Option::take);
        self.ring.write_chunk_uninit(room).map_or(0, |chunk| chunk.fill_from_iter(packets))
    }
}

/// The receiving end of a ring of packets.
pub type HandoffReceiver<T> = Consumer<T>;

/// Both ends of a ring that holds `capacity` packets. `doorbell` is the receiving thread's.
#[must_use]
pub fn ring<T>(capacity: usize, doorbell: Arc<Doorbell>) -> (HandoffSender<T>, HandoffReceiver<T>) {
    let (ring, receiver) = RingBuffer::new(capacity);
    (HandoffSender { ring, doorbell, unannounced: false }, receiver)
}
