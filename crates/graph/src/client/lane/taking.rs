//! What a client with a dedicated queue says in the ring to the worker.

use dpdk::{Buffer, BufferPool, SharedBuffer};
use shm::attach::{REFERENCE, RETURNS, Reference, flag, places};
use shm::{Meta, Taken};

use super::super::runt::{is_runt, padded};
use super::{LaneClient, LaneContext};
use crate::PortId;

/// Sends what a client says.
pub(super) struct LaneSender<'a, 'b> {
    copies: &'a BufferPool,
    held: &'a mut Vec<Option<SharedBuffer>>,
    outgoing: &'a mut Vec<Option<SharedBuffer>>,
    /// The port of what is in `outgoing`.
    egress: PortId,
    pub(super) context: &'a mut LaneContext<'b>,
}

impl<'a, 'b> LaneSender<'a, 'b> {
    pub(super) fn new(
        copies: &'a BufferPool,
        held: &'a mut Vec<Option<SharedBuffer>>,
        outgoing: &'a mut Vec<Option<SharedBuffer>>,
        context: &'a mut LaneContext<'b>,
    ) -> Self {
        Self { copies, held, outgoing, egress: PortId::NONE, context }
    }

    /// A packet that is the client's no more. `None`: it was not the client's.
    fn claim(&mut self, place: u32) -> Option<SharedBuffer> {
        self.held.get_mut(place as usize)?.take()
    }

    /// To a port, from where it lies.
    fn put(&mut self, buffer: SharedBuffer, port: PortId) {
        if port != self.egress {
            self.leave();
        }
        self.egress = port;
        self.outgoing.push(Some(buffer));
    }

    /// Sends what was put.
    pub(super) fn leave(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let LaneContext { exits, now, pool, .. } = self.context;
        let port = (self.egress, pool.is_mapped());
        exits.transmit_shared(self.outgoing, port, self.copies, *now);
        // What was not sent, or was sent as a copy.
        self.outgoing.drain(..).flatten().for_each(|buffer| pool.take_back(buffer));
    }
}

impl LaneClient {
    /// Does what one slot of the ring says. Gives a packet for the graph.
    pub(super) fn take(&mut self, taken: Taken, sender: &mut LaneSender<'_, '_>) -> Option<Buffer> {
        let meta = taken.meta();
        let entering = if meta.flags & flag::RETURN != 0 {
            self.take_returns(&taken, sender);
            None
        } else if meta.flags & flag::REFERENCE != 0 {
            self.take_reference(&taken, meta, sender)
        } else {
            self.take_bytes(&taken, meta, sender)
        };
        self.channel.finish(taken);
        entering
    }

    fn take_returns(&self, taken: &Taken, sender: &mut LaneSender<'_, '_>) {
        let mut bytes = [0; 4 * RETURNS];
        let copied = self.channel.read(taken, &mut bytes);
        if copied != taken.length() || copied % 4 != 0 {
            self.counters.malformed.add(1);
        }
        for place in places(bytes.get(..copied).unwrap_or_default()) {
            match sender.claim(place) {
                Some(buffer) => sender.context.pool.take_back(buffer),
                None => self.counters.malformed.add(1),
            }
        }
    }

    fn take_reference(
        &self,
        taken: &Taken,
        meta: Meta,
        sender: &mut LaneSender<'_, '_>,
    ) -> Option<Buffer> {
        let mut bytes = [0; REFERENCE];
        let copied = self.channel.read(taken, &mut bytes);
        let reference = Reference::decode(&bytes).filter(|_| copied == taken.length());
        let claimed = reference.and_then(|to| Some((to, sender.claim(to.place)?)));
        let Some((Reference { offset, length, .. }, mut buffer)) = claimed else {
            self.counters.malformed.add(1);
            return None;
        };
        if !buffer.set_span(offset as usize, length as usize) {
            self.counters.malformed.add(1);
            sender.context.pool.take_back(buffer);
            return None;
        }
        let Some(port) = self.sends.admit(meta.port, buffer.len()) else {
            self.counters.refused.add(1);
            sender.context.pool.take_back(buffer);
            return None;
        };
        self.counters.sent.add(1);
        self.counters.sent_bytes.add(buffer.len() as u64);
        let enters = meta.flags & flag::GRAPH != 0;
        if !enters && !is_runt(buffer.len()) {
            sender.put(buffer, port);
            return None;
        }
        // The graph reads packets, so they must be ours alone; what is padded must be, too, as behind it the client's
        // bytes lie.
        let copy = buffer.copy(sender.copies);
        sender.context.pool.take_back(buffer);
        if copy.is_none() {
            self.counters.no_buffer.add(1);
        }
        if !enters {
            // In the order in which they were sent.
            sender.leave();
            sender.context.exits.transmit(padded(copy?)?, port, sender.context.now);
            return None;
        }
        copy.map(|mut copy| {
            port.mark(&mut copy);
            copy
        })
    }

    fn take_bytes(
        &self,
        taken: &Taken,
        meta: Meta,
        sender: &mut LaneSender<'_, '_>,
    ) -> Option<Buffer> {
        let (mut buffer, port) =
            self.channel.admit(taken, &self.sends, sender.copies, &self.counters)?;
        if meta.flags & flag::GRAPH != 0 {
            port.mark(&mut buffer);
            return Some(buffer);
        }
        // In the order in which they were sent.
        sender.leave();
        sender.context.exits.transmit(buffer, port, sender.context.now);
        None
    }
}
