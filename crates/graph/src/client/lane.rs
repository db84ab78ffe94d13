//! A receive queue that can be a client's own. Its packets stay where the device has put them, in buffers that lie
//! in the client's segment, and go over by reference: none is copied.
//!
//! A buffer is the daemon's or the client's, never both: what was referred to in the ring to the client is the
//! client's until the client names it in the ring from it, to be sent or to be taken back. A client that names what
//! is not its own is counted; one that keeps everything starves its own queue.

mod taking;

use std::sync::Arc;

use dpdk::{Buffer, BufferPool, DeviceMemory, NoPlace, SharedBuffer, SharedPool};
use shm::Meta;
use shm::attach::flag;

use super::{
    Bells, ClientChannel, ClientCounters, ClientPace, ClientPorts, ClientWake, LONGEST, Share,
    whole,
};
use crate::function::spare;
use crate::{Exits, PortId, Reason, Vector};

use taking::LaneSender;

/// Buffers of a client that is gone which are freed in one round.
const LEAVING: usize = 64;

/// What a client needs to have a dedicated receive queue.
#[derive(Debug)]
pub struct LaneClient {
    /// The caller's number, to find it again.
    pub token: u64,
    /// The port's number in packets' marks.
    pub number: u8,
    /// The ports by which it may send.
    pub sends: Arc<ClientPorts>,
    /// Its rings.
    pub channel: ClientChannel,
    /// Rung by the client when the worker sleeps.
    pub wake: ClientWake,
    /// How often its user is rung by this worker.
    pub pace: ClientPace,
    /// Counted for it.
    pub counters: Arc<ClientCounters>,
}

/// What belongs to a receive queue that can be a client's own.
#[derive(Debug)]
pub struct Lane {
    /// Where copies get their buffers.
    copies: BufferPool,
    client: Option<LaneClient>,
    share: Share,
    bells: Bells,
    /// Packets that are the client's, by place.
    held: Vec<Option<SharedBuffer>>,
    /// Packets of a client that is gone.
    leaving: Vec<SharedBuffer>,
    /// Packets on their way to a port.
    outgoing: Vec<Option<SharedBuffer>>,
    /// A packet of several segments in one piece.
    scratch: Vec<u8>,
}

/// What of the worker a lane works with.
pub(crate) struct LaneContext<'a> {
    pub(crate) port: PortId,
    pub(crate) pool: &'a mut SharedPool,
    pub(crate) exits: &'a mut Exits,
    pub(crate) now: u64,
}

impl Lane {
    /// Nobody's yet. Copies get their buffers from `copies`.
    pub(crate) fn new(copies: BufferPool) -> Self {
        Self {
            copies,
            client: None,
            share: Share::default(),
            bells: Bells::new(ClientPace::default()),
            held: Vec::new(),
            leaving: Vec::new(),
            outgoing: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Gives the queue to a client in whose segment `memory` lies.
    pub(crate) fn give(
        &mut self,
        client: LaneClient,
        memory: &DeviceMemory,
        pool: &mut SharedPool,
    ) -> Result<(), NoPlace> {
        pool.lend(memory)?;
        self.held.resize_with(pool.capacity() as usize, || None);
        self.bells = Bells::new(client.pace.clone());
        (self.client, self.share) = (Some(client), Share::default());
        Ok(())
    }

    /// Takes the queue back from the client of that token.
    pub(crate) fn take_client(&mut self, token: u64, pool: &mut SharedPool) -> Option<LaneClient> {
        let client = self.client.take_if(|client| client.token == token)?;
        pool.withdraw();
        self.leaving.extend(self.held.drain(..).flatten());
        Some(client)
    }

    pub(crate) fn client(&self) -> Option<&LaneClient> {
        self.client.as_ref()
    }

    pub(crate) fn client_mut(&mut self) -> Option<&mut LaneClient> {
        self.client.as_mut()
    }

    /// Moves some buffers to where they belong. Gives whether there may be more.
    pub(crate) fn tend(&mut self, pool: &mut SharedPool) -> bool {
        let rest = self.leaving.len().saturating_sub(LEAVING);
        self.leaving.drain(rest..).for_each(|buffer| pool.take_back(buffer));
        // Not one or the other: what was freed has its memory moved already.
        pool.sweep() | (rest > 0)
    }

    /// Delivers a burst: `private` are packets whose memory had not been lent yet. Without a client what lies in lent
    /// memory is copied to the end of `private`, whose first `got` places are filled. Gives how many are left there.
    pub(crate) fn receive(
        &mut self,
        private: &mut [Option<Buffer>],
        got: usize,
        context: &mut LaneContext<'_>,
    ) -> usize {
        let mut received = std::mem::take(context.pool.received());
        let left = if self.client.is_some() {
            for buffer in private.iter_mut().filter_map(Option::take) {
                self.push_copy(&buffer, context);
                context.pool.free(buffer);
            }
            received.drain(..).for_each(|buffer| self.push(buffer, context));
            self.ring(context);
            0
        } else {
            self.copy_back(&mut received, private, got, context)
        };
        // Its memory serves the next burst.
        *context.pool.received() = received;
        left
    }

    /// Packets that a client's memory still caught after it was gone go on as copies.
    fn copy_back(
        &self,
        received: &mut Vec<SharedBuffer>,
        private: &mut [Option<Buffer>],
        got: usize,
        context: &mut LaneContext<'_>,
    ) -> usize {
        let mut left = got;
        for buffer in received.drain(..) {
            let copy = buffer.copy(&self.copies);
            context.pool.take_back(buffer);
            match (copy, private.get_mut(left)) {
                (Some(copy), Some(place)) => {
                    *place = Some(copy);
                    left += 1;
                }
                _ => context.exits.counters.drops[Reason::NoBuffer as usize].add(1),
            }
        }
        left
    }

    /// Counts what a burst left in lent memory as received, and shows it to a capture.
    pub(crate) fn count(&mut self, context: &mut LaneContext<'_>) {
        let LaneContext { port, pool, exits, .. } = context;
        if let Some(count) = exits.counters.ports.get(port.number()) {
            let received = pool.received();
            count.rx_packets.add(received.len() as u64);
            count.rx_bytes.add(received.iter().map(|buffer| buffer.len() as u64).sum());
        }
        let Some(tap) = &mut exits.output.tap else { return };
        for buffer in pool.received().iter() {
            self.scratch.clear();
            buffer.copy_into(&mut self.scratch, LONGEST);
            tap.bytes(&self.scratch, *port);
        }
    }

    fn ring(&mut self, context: &LaneContext<'_>) {
        if let Some(client) = &mut self.client {
            let channels = std::slice::from_mut(&mut client.channel);
            self.bells.ring_due(channels, context.now, context.exits.busy);
        }
    }

    /// To the client by reference, if it can be.
    fn push(&mut self, buffer: SharedBuffer, context: &mut LaneContext<'_>) {
        let Some(client) = &mut self.client else { return context.pool.take_back(buffer) };
        let length = buffer.len();
        let reference = context.pool.reference(&buffer);
        let place = reference.and_then(|to| self.held.get_mut(to.place as usize));
        let meta = |flags| Meta { port: client.number, flags };
        let sent = match (reference, place) {
            (Some(reference), Some(place)) => {
                let meta = meta(flag::REFERENCE);
                let sent = client.channel.push(&reference.encode(), meta);
                if sent {
                    *place = Some(buffer);
                } else {
                    context.pool.take_back(buffer);
                }
                sent
            }
            // In pieces, or in memory of a client before.
            _ => {
                self.scratch.clear();
                buffer.copy_into(&mut self.scratch, LONGEST);
                context.pool.take_back(buffer);
                client.channel.push(&self.scratch, meta(0))
            }
        };
        client.count(sent, length, context.exits);
        self.share.earn(usize::from(sent));
    }

    fn push_copy(&mut self, buffer: &Buffer, context: &mut LaneContext<'_>) {
        let Some(client) = &mut self.client else { return };
        let bytes = whole(buffer, &mut self.scratch);
        let sent = client.channel.push(bytes, Meta { port: client.number, flags: 0 });
        client.count(sent, buffer.len(), context.exits);
        self.share.earn(usize::from(sent));
    }

    /// Takes what the client has sent, a burst at most; what is for the graph goes into `vector`. Gives how much there
    /// was.
    pub(crate) fn send(&mut self, vector: &mut Vector, context: &mut LaneContext<'_>) -> usize {
        let Self { copies, client: Some(client), share, bells, held, outgoing, .. } = self else {
            return 0;
        };
        let busy = context.exits.busy;
        let (mut found, mut used, mut spare) = (0, 0, spare(busy));
        let mut sender = LaneSender::new(copies, held, outgoing, context);
        let allowance = share.allowance(&mut spare);
        let before = client.channel.passed();
        while used < allowance && !vector.free_slots().is_empty() {
            let taken = client.channel.next();
            used = client.channel.passed().wrapping_sub(before) as i32;
            let Some(taken) = taken else { break };
            found += 1;
            let entering = client.take(taken, &mut sender);
            // There is room, as was just seen.
            let _ = entering.map(|buffer| vector.push(buffer));
        }
        sender.leave();
        share.spend(used, &mut spare);
        client.channel.settle(&client.counters);
        bells.ring_due(std::slice::from_mut(&mut client.channel), context.now, busy);
        // The worker does not sleep before all is paid.
        found + usize::from(share.is_in_debt())
    }
}

impl LaneClient {
    fn count(&self, sent: bool, length: usize, exits: &Exits) {
        if sent {
            self.counters.delivered.add(1);
            self.counters.delivered_bytes.add(length as u64);
        } else {
            self.counters.full.add(1);
            exits.counters.drops[Reason::ClientFull as usize].add(1);
        }
    }
}

#[cfg(test)]
mod tests;
