//! What nodes have decided about packets to and from stacks, until the vector is done.

use dpdk::Buffer;

use crate::{Reason, StackId};

/// A packet for a stack.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Who has sent it, if a stack has.
    pub(crate) from: Option<StackId>,
    pub(crate) to: StackId,
    pub(crate) packet: Packet,
    /// For [`Meta`](shm::Meta).
    pub(crate) flags: u8,
}

/// An IP packet.
#[derive(Debug)]
pub(crate) enum Packet {
    /// In a buffer, behind so many bytes.
    Buffer(Buffer, u16),
    /// One that may be longer than a buffer.
    Long(Vec<u8>),
}

/// A packet that a stack must not send.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) from: StackId,
    pub(crate) reason: Reason,
    /// Bytes from the IP header on.
    pub(crate) bytes: usize,
}

/// Decisions in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    pub(crate) list: Vec<Delivery>,
    pub(crate) refusals: Vec<Refusal>,
    /// What runs was sent by stacks: `Vector::stack` says by which.
    pub(crate) of_stacks: bool,
    /// Packets that nodes have given to stacks so far, and the latest one's stack: for the trace.
    given: u64,
    latest: Option<StackId>,
}

impl Deliveries {
    pub(crate) fn push(&mut self, delivery: Delivery) {
        self.given += 1;
        self.latest = Some(delivery.to);
        self.list.push(delivery);
    }

    pub(crate) fn given(&self) -> (u64, Option<StackId>) {
        (self.given, self.latest)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.refusals.is_empty()
    }
}
