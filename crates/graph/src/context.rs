//! What a node may do with a slot.

use std::marker::PhantomData;
use std::ops::Range;

use dpdk::Buffer;

use crate::deliveries::Packet;
use crate::pending::Pending;
use crate::{Edge, Entry, Exits, Handoff, NodeId, PortId, Punt, Reason, Slot, StackId, Vector};

/// Handed to a node with each list of slots.
pub struct Context<'a, N: Edge> {
    /// The packets.
    pub vector: &'a mut Vector,
    /// Time at the start of this round: TSC cycles.
    pub now: u64,
    /// A trace follows packets of the vector. A node that can do the work of those behind it leaves it to them then, so
    /// that the trace tells what each decides.
    pub traced: bool,
    /// Ways out of the graph.
    pub exits: &'a mut Exits,
    pending: &'a mut Pending,
    targets: &'a [NodeId],
    edges: PhantomData<N>,
}

impl<'a, N: Edge> Context<'a, N> {
    pub(crate) fn new(
        vector: &'a mut Vector,
        (now, traced): (u64, bool),
        exits: &'a mut Exits,
        pending: &'a mut Pending,
        targets: &'a [NodeId],
    ) -> Self {
        Self { vector, now, traced, exits, pending, targets, edges: PhantomData }
    }

    /// Sends one slot to a next node.
    #[inline(always)]
    pub fn send(&mut self, slot: Slot, next: N) {
        self.pending.push(self.targets[next.index()], slot);
    }

    /// Sends a list of slots to a next node: cheaper than one by one.
    #[inline]
    pub fn send_all(&mut self, slots: &[Slot], next: N) {
        self.pending.extend(self.targets[next.index()], slots);
    }

    /// Sends a slot to `first`, the start of a feature arc; behind its last feature the packet goes on at `then`
    /// ([`Self::resume`]).
    pub fn detour(&mut self, slot: Slot, first: N, then: N) {
        self.vector.resume[usize::from(slot)] = self.targets[then.index()];
        self.send(slot, first);
    }

    /// Sends a slot to where it goes on behind the arc that it is on.
    #[inline]
    pub fn resume(&mut self, slot: Slot) {
        self.pending.push(self.vector.resume[usize::from(slot)], slot);
    }

    /// Puts the packet into the transmit buffer of `port`.
    #[inline(always)]
    pub fn transmit(&mut self, slot: Slot, port: PortId) {
        if let Some(buffer) = self.vector.buffers[usize::from(slot)].take() {
            self.exits.transmit(buffer, port, self.now);
        }
    }

    /// The same of the packets in a row of slots.
    #[inline]
    pub fn transmit_all(&mut self, slots: Range<usize>, port: PortId) {
        if let Some(burst) = self.vector.buffers.get_mut(slots) {
            self.exits.transmit_all(burst, port, self.now);
        }
    }

    /// The same of the packets in the slots from `start` on, each by its port.
    #[inline]
    pub fn transmit_each(&mut self, start: usize, ports: &[PortId]) {
        if let Some(burst) = self.vector.buffers.get_mut(start..start + ports.len()) {
            self.exits.transmit_each(burst, ports, self.now);
        }
    }

    /// Drops the packet and counts why.
    #[inline]
    pub fn drop(&mut self, slot: Slot, reason: Reason) {
        if let Some(buffer) = self.vector.buffers[usize::from(slot)].take() {
            self.exits.drop(buffer, reason);
        }
    }

    /// Frees a packet whose drop is counted already ([`Exits::refuse`]).
    pub fn free(&mut self, slot: Slot) {
        if let Some(buffer) = self.vector.buffers[usize::from(slot)].take() {
            self.exits.free(buffer);
        }
    }

    /// Gives the packet to a stack, from its network header on. `flags`: for [`Meta`](shm::Meta).
    pub fn deliver(&mut self, slot: Slot, id: StackId, flags: u8) {
        let at = usize::from(slot);
        if let Some(buffer) = self.vector.buffers[at].take() {
            let from = self.vector.stack[at].filter(|_| self.exits.deliveries.of_stacks);
            let packet = Packet::Buffer(buffer, self.vector.network[at]);
            self.exits.deliver_of(from, id, packet, flags);
        }
    }

    /// Drops a packet that a stack has sent and must not send, and counts why, for the stack too.
    pub fn refuse_of(&mut self, slot: Slot, id: StackId, reason: Reason) {
        let at = usize::from(slot);
        if let Some(buffer) = self.vector.buffers[at].take() {
            let bytes = buffer.len().saturating_sub(usize::from(self.vector.network[at]));
            self.exits.refuse_of(id, buffer, bytes, reason);
        }
    }

    /// Hands the packet to the control thread. `cause` is the node's own numbering.
    pub fn punt(&mut self, slot: Slot, cause: u16) {
        let at = usize::from(slot);
        if let Some(buffer) = self.vector.buffers[at].take() {
            let packet = Handoff {
                interface: self.vector.interface[at],
                egress: self.vector.egress[at],
                network: self.vector.network[at],
                next_hop: self.vector.next_hop[at],
                ..Handoff::of(buffer)
            };
            self.exits.punt(Punt { cause, packet });
        }
    }

    /// Takes the packet out of its slot, to be put back or to be made into others.
    pub fn take(&mut self, slot: Slot) -> Option<Buffer> {
        self.vector.buffers[usize::from(slot)].take()
    }

    /// Sends a packet that this node made into the graph at `next`, later in the same round.
    pub fn originate(&mut self, packet: Handoff, next: N) {
        self.exits.originate(Entry { node: self.targets[next.index()], packet });
    }
}
