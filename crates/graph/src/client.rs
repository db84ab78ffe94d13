//! Packets to and from client processes: a packet function with a pair of rings for each of the client's
//! channels.
//!
//! Nothing that a client does reaches further than its own queues. Full rings cost it packets, garbage in
//! them is counted and dropped, and what it may send, by which port, how long and how much, is looked up here for each
//! packet, before it is copied. One doorbell of a user is rung at most every 20 us, whatever its clients write into their
//! sleep words, and by a thread of that user's own.

mod bells;
mod channel;
mod counters;
mod delivery;
mod lane;
mod ports;
mod runt;
mod share;
mod wake;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use dpdk::{Buffer, BufferPool};
use shm::Meta;
use shm::attach::{Spread, Take, flag};

use crate::flow_hash::flow_hash;
use crate::function::{Function, Outgoing, Wants};
use crate::{CAPACITY, Exits, Filter, PortId, Reason};

pub(crate) use bells::Bells;
pub use bells::ClientPace;
pub use channel::ClientChannel;
pub use counters::ClientCounters;
pub(crate) use delivery::Delivery;
pub(crate) use lane::LaneContext;
pub use lane::{Lane, LaneClient};
pub use ports::ClientPorts;
pub(crate) use share::Share;
pub use wake::{ClientWake, Errand};

/// Channels of one client's queues that are looked at in one round: each look may wait for a line from the client's
/// core.
const LOOKS: usize = 8;
/// Longest packet that is put together from several segments: bytes. A ring takes no longer one.
const LONGEST: usize = 65_535;

/// What a client asked for, on one worker.
pub struct ClientSetup {
    /// What becomes of packets.
    pub take: Take,
    /// How they are spread over channels.
    pub spread: Spread,
    /// Which ones.
    pub filter: Filter,
    /// The ports whose packets it gets.
    pub receives: Arc<ClientPorts>,
    /// The ports by which it may send.
    pub sends: Arc<ClientPorts>,
    /// Its channels.
    pub channels: Vec<ClientChannel>,
    /// Rung by the client when this worker sleeps.
    pub wake: ClientWake,
    /// How often its user is rung by this worker.
    pub pace: ClientPace,
    /// Where its packets get their buffers.
    pub pool: BufferPool,
    /// Counted for it, on this worker.
    pub counters: Arc<ClientCounters>,
}

/// The rings of a client on one worker.
pub struct ClientQueues {
    setup: ClientSetup,
    /// Packets of a burst for each channel, by their places.
    chosen: Vec<Vec<u16>>,
    /// Packets that were diverted, to be freed together.
    taken: Vec<Option<Buffer>>,
    /// A packet of several segments in one piece.
    scratch: Vec<u8>,
    /// The next channel for round-robin.
    turn: usize,
    /// The channel that may send first, and the one whose bell may ring first.
    first: usize,
    /// The worker is about to sleep.
    looks_at_all: bool,
    share: Share,
    bells: Bells,
    /// Something was pushed or released, and not all channels were looked at since.
    is_due: bool,
}

impl ClientQueues {
    /// Ready to be added to its worker.
    #[must_use]
    pub fn new(setup: ClientSetup) -> Self {
        let taken = Vec::with_capacity(CAPACITY);
        let chosen = setup.channels.iter().map(|_| Vec::with_capacity(CAPACITY)).collect();
        let bells = Bells::new(setup.pace.clone());
        Self {
            setup,
            chosen,
            taken,
            scratch: Vec::new(),
            turn: 0,
            first: 0,
            looks_at_all: false,
            share: Share::default(),
            bells,
            is_due: false,
        }
    }

    fn channel_of(&mut self, buffer: &Buffer, number: u8) -> usize {
        let count = self.setup.channels.len().max(1);
        if count == 1 {
            return 0;
        }
        match self.setup.spread {
            Spread::RoundRobin => {
                self.turn = if self.turn + 1 >= count { 0 } else { self.turn + 1 };
                self.turn
            }
            Spread::Port => usize::from(number) % count,
            Spread::Flow => ((u64::from(flow_hash(buffer)) * count as u64) >> 32) as usize,
        }
    }
}

/// A packet's bytes in one piece.
pub(crate) fn whole<'a>(buffer: &Buffer, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    buffer.copy_into(scratch, LONGEST);
    scratch
}

impl Function for ClientQueues {
    fn receive(
        &mut self,
        port: PortId,
        packets: &mut [Option<Buffer>],
        exits: &mut Exits,
        now: u64,
    ) {
        let all: Vec<u16> = (0..packets.len() as u16).collect();
        self.receive_chosen(port, packets, &all, exits, now);
    }

    fn wants(&self) -> Wants<'_> {
        match self.setup.take {
            Take::Nothing => Wants::Nothing,
            Take::Copy => Wants::Copies(&self.setup.filter),
            Take::Divert => Wants::Matching(&self.setup.filter),
        }
    }

    fn receive_chosen(
        &mut self,
        port: PortId,
        packets: &mut [Option<Buffer>],
        chosen: &[u16],
        exits: &mut Exits,
        now: u64,
    ) {
        let Some(number) = self.setup.receives.number(port) else { return };
        let (diverts, flags) = match self.setup.take {
            Take::Divert => (true, 0),
            Take::Copy => (false, flag::COPY),
            Take::Nothing => return,
        };
        // Whatever is found, it can only be counted.
        let is_full = !diverts && !self.setup.channels.iter().any(ClientChannel::has_room);
        let mut full = 0;
        for at in chosen {
            let Some(Some(buffer)) = packets.get(usize::from(*at)) else { continue };
            if !self.setup.filter.matches(port, buffer.data()) {
                continue;
            }
            if is_full {
                full += 1;
                continue;
            }
            let channel = self.channel_of(buffer, number);
            if let Some(list) = self.chosen.get_mut(channel) {
                list.push(*at);
            }
        }
        self.setup.counters.full.add(full);
        let Self { setup, chosen, taken, scratch, .. } = self;
        let full = Reason::ClientFull;
        let counters = &setup.counters;
        let mut delivery =
            Delivery { counters, full, taken: diverts.then_some(taken), exits, scratch };
        for (channel, list) in setup.channels.iter_mut().zip(chosen) {
            if !list.is_empty() {
                delivery.run(channel, packets, list, |_| (0, Meta { port: number, flags }));
                self.is_due = true;
                list.clear();
            }
        }
        self.share.earn(self.taken.len());
        dpdk::free_bulk(&mut self.taken);
        self.taken.clear();
        let channels = &mut self.setup.channels;
        self.is_due = self.is_due && self.bells.ring_due(channels, now, exits.busy);
    }

    fn skip(&mut self, port: PortId, packets: usize) {
        if self.setup.receives.number(port).is_some() {
            self.setup.counters.skipped.add(packets as u64);
        }
    }

    fn send(&mut self, outgoing: &mut Outgoing, now: u64) -> usize {
        let Self { setup, first, looks_at_all, share, bells, is_due, .. } = self;
        if outgoing.looks == 0 && !*looks_at_all && !share.is_in_debt() {
            // Others have had all looks of this round.
            *is_due = *is_due && bells.ring_due(&mut setup.channels, now, outgoing.busy);
            return 0;
        }
        let ClientSetup { channels, sends, pool, counters, .. } = setup;
        let mut found = 0;
        let count = channels.len().max(1);
        let mut left = share.allowance(&mut outgoing.spare);
        let looks =
            if std::mem::take(looks_at_all) { count } else { count.min(LOOKS).min(outgoing.looks) };
        outgoing.looks = outgoing.looks.saturating_sub(looks);
        for turn in 0..looks {
            let Some(channel) = channels.get_mut((*first + turn) % count) else { break };
            let (packets, used) = channel.drain(left, |channel, taken| {
                let enters = taken.meta().flags & flag::GRAPH != 0;
                match channel.admit(taken, sends, pool, counters) {
                    Some((buffer, port)) if enters => outgoing.enter(buffer, port),
                    Some((buffer, port)) => outgoing.transmit(buffer, port),
                    None => {}
                }
            });
            found += packets;
            left -= used;
            share.spend(used, &mut outgoing.spare);
            channel.settle(counters);
            *is_due |= packets > 0;
        }
        *first = (*first + looks) % count;
        *is_due = *is_due && bells.ring_due(channels, now, outgoing.busy);
        // The worker does not sleep before all is paid.
        found + usize::from(share.is_in_debt())
    }

    fn arm(&mut self) -> bool {
        self.looks_at_all = true;
        for channel in &mut self.setup.channels {
            channel.arm();
        }
        self.setup.wake.arm(dpdk::tsc())
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        self.setup.wake.event()
    }

    fn disarm(&mut self) {
        for channel in &mut self.setup.channels {
            channel.disarm();
        }
        self.setup.wake.clear(dpdk::tsc());
    }
}

#[cfg(test)]
mod tests;
