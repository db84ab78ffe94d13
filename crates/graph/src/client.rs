//! Packets to and from client processes: a packet function with a pair of rings for each of the client's
//! channels.
//!
//! Nothing that a client does reaches further than its own queues. Full rings cost it packets, garbage in
//! them is counted and dropped, and what it may send, by which port and how long, is looked up here for each
//! packet. A doorbell is rung at most every 20 us, whatever the client writes into its sleep words.

mod channel;
mod counters;
mod lane;
mod ports;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use dpdk::{Buffer, BufferPool};
use shm::attach::{Spread, Take, flag};
use shm::{Doorbell, Meta};

use crate::flow_hash::flow_hash;
use crate::function::{Function, Outgoing};
use crate::{CAPACITY, Exits, Filter, PortId, Reason};

pub use channel::ClientChannel;
pub use counters::ClientCounters;
pub(crate) use lane::Around;
pub use lane::{Lane, LaneClient};
pub use ports::ClientPorts;

/// Packets taken from one channel in one round at most: it shares the worker with others.
const BURST: usize = 64;
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
    /// Packets that were diverted, to be freed together.
    taken: Vec<Option<Buffer>>,
    /// A packet of several segments in one piece.
    scratch: Vec<u8>,
    /// The next channel for round-robin.
    turn: usize,
}

impl ClientQueues {
    /// Ready to be added to its worker.
    #[must_use]
    pub fn new(setup: ClientSetup) -> Self {
        let taken = Vec::with_capacity(CAPACITY);
        Self { setup, taken, scratch: Vec::new(), turn: 0 }
    }

    fn channel_of(&mut self, buffer: &Buffer, number: u8) -> usize {
        let count = self.setup.channels.len().max(1);
        match self.setup.spread {
            Spread::RoundRobin => {
                self.turn = if self.turn + 1 >= count { 0 } else { self.turn + 1 };
                self.turn
            }
            Spread::Port => usize::from(number) % count,
            Spread::Flow => ((u64::from(flow_hash(buffer)) * count as u64) >> 32) as usize,
        }
    }

    /// Gives whether it found room.
    fn push(&mut self, buffer: &Buffer, number: u8, flags: u8) -> bool {
        let at = if self.setup.channels.len() > 1 { self.channel_of(buffer, number) } else { 0 };
        let Some(channel) = self.setup.channels.get_mut(at) else { return false };
        let meta = Meta { port: number, flags };
        let sent = if buffer.is_chained() {
            self.scratch.clear();
            for segment in buffer.segments() {
                let room = LONGEST - self.scratch.len().min(LONGEST);
                self.scratch.extend_from_slice(segment.data.get(..room).unwrap_or(segment.data));
            }
            channel.push(&self.scratch, meta)
        } else {
            channel.push(buffer.data(), meta)
        };
        let counters = &self.setup.counters;
        if sent {
            counters.delivered.add(1);
            counters.delivered_bytes.add(buffer.len() as u64);
        } else {
            counters.full.add(1);
        }
        sent
    }
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
        let diverts = self.setup.take == Take::Divert;
        for place in packets {
            let Some(buffer) = place else { continue };
            if !self.setup.filter.matches(port, buffer.data()) {
                continue;
            }
            let sent = self.push(buffer, number, if diverts { 0 } else { flag::COPY });
            if !diverts {
                continue;
            }
            match place.take() {
                Some(buffer) if !sent => exits.drop(buffer, Reason::ClientFull),
                buffer => self.taken.push(buffer),
            }
        }
        dpdk::free_bulk(&mut self.taken);
        self.taken.clear();
        for channel in &mut self.setup.channels {
            channel.ring_due(now);
        }
    }

    fn send(&mut self, outgoing: &mut Outgoing, now: u64) -> usize {
        let ClientSetup { channels, sends, pool, counters, .. } = &mut self.setup;
        let mut found = 0;
        for channel in channels {
            for _ in 0..BURST {
                let Some((buffer, meta)) = channel.take(pool, counters) else { break };
                found += 1;
                let Some(buffer) = buffer else { continue };
                let Some(port) = sends.admit(meta.port, buffer.len()) else {
                    counters.refused.add(1);
                    continue;
                };
                counters.sent.add(1);
                counters.sent_bytes.add(buffer.len() as u64);
                if meta.flags & flag::GRAPH != 0 {
                    outgoing.enter(buffer, port);
                } else {
                    outgoing.transmit(buffer, port);
                }
            }
            channel.settle(counters);
            channel.ring_due(now);
        }
        found
    }

    fn arm(&mut self) -> bool {
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
