//! Packets to and from client processes: a packet function with a pair of rings for each of the client's
//! channels.
//!
//! Nothing that a client does reaches further than its own queues. Full rings cost it packets, garbage in
//! them is counted and dropped, and what it may send, by which port, how long and how much, is looked up here for each
//! packet, before it is copied. One doorbell of a client is rung at most every 20 us, whatever it writes into its sleep
//! words.

mod bells;
mod channel;
mod counters;
mod lane;
mod ports;
mod share;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use dpdk::{Buffer, BufferPool};
use shm::attach::{Spread, Take, flag};
use shm::{Doorbell, Meta};

use crate::flow_hash::flow_hash;
use crate::function::{Function, Outgoing};
use crate::{CAPACITY, Exits, Filter, PortId, Reason};

use bells::Bells;
pub use channel::ClientChannel;
pub use counters::ClientCounters;
pub(crate) use lane::Around;
pub use lane::{Lane, LaneClient};
pub use ports::ClientPorts;
pub(crate) use share::SPARE;
use share::Share;

/// Channels of a client that are looked at in one round: each look may wait for a line from the client's core.
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
    pub wake: Doorbell,
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
}

impl ClientQueues {
    /// Ready to be added to its worker.
    #[must_use]
    pub fn new(setup: ClientSetup) -> Self {
        let taken = Vec::with_capacity(CAPACITY);
        let chosen = setup.channels.iter().map(|_| Vec::with_capacity(CAPACITY)).collect();
        Self {
            setup,
            chosen,
            taken,
            scratch: Vec::new(),
            turn: 0,
            first: 0,
            looks_at_all: false,
            share: Share::default(),
            bells: Bells::new(),
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

    /// Gives a channel its packets of a burst; those that are diverted are taken out of it, and dropped when they find
    /// no room.
    fn deliver(
        &mut self,
        at: usize,
        packets: &mut [Option<Buffer>],
        meta: Meta,
        exits: &mut Exits,
    ) {
        let Self { setup, chosen, taken, scratch, .. } = self;
        let (Some(channel), Some(list)) = (setup.channels.get_mut(at), chosen.get_mut(at)) else {
            return;
        };
        let diverts = setup.take == Take::Divert;
        let counters = &setup.counters;
        let mut rest = list.as_slice();
        while !rest.is_empty() {
            let went = channel.push_burst(rest.len(), |number| {
                let place = rest.get(number).and_then(|at| packets.get(usize::from(*at)));
                let buffer = place.and_then(Option::as_ref).filter(|buffer| !buffer.is_chained());
                // A packet without bytes ends a burst.
                (buffer.map(Buffer::data).unwrap_or_default(), meta)
            });
            let (sent, after) = rest.split_at(went);
            for at in sent {
                let Some(place) = packets.get_mut(usize::from(*at)) else { continue };
                counters.delivered.add(1);
                counters.delivered_bytes.add(place.as_ref().map_or(0, Buffer::len) as u64);
                taken.extend(place.take_if(|_| diverts).map(Some));
            }
            // The next one lies in pieces, finds no room or never goes.
            let Some((next, after)) = after.split_first() else { break };
            rest = after;
            let Some(place) = packets.get_mut(usize::from(*next)) else { continue };
            let Some(buffer) = place else { continue };
            if buffer.is_chained() && channel.push(whole(buffer, scratch), meta) {
                counters.delivered.add(1);
                counters.delivered_bytes.add(buffer.len() as u64);
                taken.extend(place.take_if(|_| diverts).map(Some));
                continue;
            }
            counters.full.add(1);
            if let Some(buffer) = place.take_if(|_| diverts) {
                exits.drop(buffer, Reason::ClientFull);
            }
        }
        list.clear();
    }
}

/// A packet's bytes in one piece.
fn whole<'a>(buffer: &Buffer, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    for segment in buffer.segments() {
        let room = LONGEST - scratch.len().min(LONGEST);
        scratch.extend_from_slice(segment.data.get(..room).unwrap_or(segment.data));
    }
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
        if self.setup.take == Take::Nothing {
            return;
        }
        let Some(number) = self.setup.receives.number(port) else { return };
        let flags = if self.setup.take == Take::Divert { 0 } else { flag::COPY };
        for (at, place) in packets.iter().enumerate() {
            let Some(buffer) = place else { continue };
            if self.setup.filter.matches(port, buffer.data()) {
                let channel = self.channel_of(buffer, number);
                if let Some(list) = self.chosen.get_mut(channel) {
                    list.push(at as u16);
                }
            }
        }
        for channel in 0..self.chosen.len() {
            self.deliver(channel, packets, Meta { port: number, flags }, exits);
        }
        self.share.earn(self.taken.len());
        dpdk::free_bulk(&mut self.taken);
        self.taken.clear();
        self.bells.ring_due(&mut self.setup.channels, now);
    }

    fn send(&mut self, outgoing: &mut Outgoing, now: u64) -> usize {
        let Self { setup, first, looks_at_all, share, bells, .. } = self;
        let ClientSetup { channels, sends, pool, counters, .. } = setup;
        let mut found = 0;
        let count = channels.len().max(1);
        let mut left = share.allowance(&mut outgoing.spare);
        let looks = if std::mem::take(looks_at_all) { count } else { count.min(LOOKS) };
        for turn in 0..looks {
            let Some(channel) = channels.get_mut((*first + turn) % count) else { break };
            let before = channel.passed();
            let mut used = 0;
            while used < left {
                let taken = channel.next();
                used = channel.passed().wrapping_sub(before) as i32;
                let Some(taken) = taken else { break };
                found += 1;
                let meta = taken.meta();
                let admitted = sends.admit(meta.port, taken.length());
                let buffer = admitted.and_then(|_| channel.copy(&taken, pool, counters));
                channel.finish(taken);
                let Some(port) = admitted else {
                    counters.refused.add(1);
                    continue;
                };
                let Some(buffer) = buffer else { continue };
                counters.sent.add(1);
                counters.sent_bytes.add(buffer.len() as u64);
                if meta.flags & flag::GRAPH != 0 {
                    outgoing.enter(buffer, port);
                } else {
                    outgoing.transmit(buffer, port);
                }
            }
            left -= used;
            share.spend(used, &mut outgoing.spare);
            channel.settle(counters);
        }
        *first = (*first + looks) % count;
        bells.ring_due(channels, now);
        // The worker does not sleep before all is paid.
        found + usize::from(share.is_in_debt())
    }

    fn arm(&mut self) -> bool {
        self.looks_at_all = true;
        for channel in &mut self.setup.channels {
            channel.arm();
        }
        true
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.setup.wake.as_fd())
    }

    fn disarm(&mut self) {
        for channel in &mut self.setup.channels {
            channel.disarm();
        }
        self.setup.wake.clear();
    }
}

#[cfg(test)]
mod tests;
