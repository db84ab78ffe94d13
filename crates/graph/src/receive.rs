//! Where a worker's packets come from: receive queues and rings.

mod lane;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dpdk::{Buffer, RxQueue};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::function::Functions;
use crate::{
    Entry, Exits, HandoffReceiver, Lane, PortId, Reason, Spread, Vector, capture::Direction,
};

pub use lane::{KeptLane, LaneError};

/// Packets in a burst of those that are thrown away, and altogether: the longest ring of an AF_PACKET device.
const DISCARD: usize = 32;
const MOST_DISCARDED: usize = 65_536;

/// A receive queue of one worker.
#[derive(Debug)]
pub struct RxAssignment {
    /// The port, for the counters.
    pub port: PortId,
    /// The queue.
    pub queue: RxQueue,
    /// Software RSS: the workers that share the queue.
    pub spread: Option<Spread>,
    wakes: Wakes,
    /// For a queue that can be a client's own.
    pub(crate) lane: Option<Box<Lane>>,
}

/// What wakes a sleeping worker when the queue has packets.
#[derive(Debug)]
enum Wakes {
    Never,
    Interrupt,
    Socket(OwnedFd),
}

impl RxAssignment {
    /// A queue whose packets its worker treats all by itself.
    #[must_use]
    pub fn new(port: PortId, queue: RxQueue) -> Self {
        Self { port, queue, spread: None, wakes: Wakes::Never, lane: None }
    }

    /// Lets the worker wait for the queue's interrupt when it sleeps instead of looking at the
    /// queue every 200 us. Only for a port that was opened with receive interrupts.
    #[must_use]
    pub fn with_interrupt(mut self) -> Self {
        // The event is read after an interrupt, which must not block.
        let reads = |fd| fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK));
        if self.queue.interrupt().is_ok_and(reads) {
            self.wakes = Wakes::Interrupt;
        }
        self
    }

    /// Lets the worker wait for `socket` when it sleeps: a descriptor that is readable while the
    /// queue has packets ([`Sockets`](crate::Sockets)).
    #[must_use]
    pub fn with_socket(mut self, socket: OwnedFd) -> Self {
        self.wakes = Wakes::Socket(socket);
        self
    }

    /// Throws away what the queue has, as another process that had the device until now has had it too. Only a device that two
    /// processes can have ([`dpdk::DeviceKind::is_shareable`]) has such packets.
    pub fn discard(&mut self) {
        let mut slots: [Option<Buffer>; DISCARD] = [const { None }; DISCARD];
        // A full ring is that long; whoever sends faster than this throws away must not stop it.
        for _ in 0..MOST_DISCARDED / DISCARD {
            let got = self.queue.burst(&mut slots);
            if got == 0 {
                return;
            }
            slots.iter_mut().for_each(|slot| *slot = None);
        }
    }

    /// Prepares for sleep. `false` when nothing will wake the worker for this queue.
    pub(crate) fn arm(&mut self) -> bool {
        let mut rings = true;
        if let Some(client) = self.lane.as_mut().and_then(|lane| lane.client_mut()) {
            client.channel.arm();
            rings = client.wake.arm(dpdk::tsc());
        }
        let wakes = match self.wakes {
            Wakes::Never => false,
            Wakes::Interrupt => self.queue.enable_interrupt().is_ok(),
            Wakes::Socket(_) => true,
        };
        rings & wakes
    }

    /// Back to polling.
    pub(crate) fn disarm(&mut self) {
        if let Some(client) = self.lane.as_mut().and_then(|lane| lane.client_mut()) {
            client.channel.disarm();
            client.wake.clear(dpdk::tsc());
        }
        if let Wakes::Interrupt = self.wakes {
            // A driver that cannot: one more interrupt ends the next sleep early.
            let _ = self.queue.disable_interrupt();
            if let Ok(event) = self.queue.interrupt() {
                // Nothing to read means that there was no interrupt.
                let _ = rustix::io::read(event, &mut [0; 8]);
            }
        }
    }

    /// What becomes readable when the queue or its client has packets.
    pub(crate) fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let queue = match &self.wakes {
            Wakes::Never => None,
            Wakes::Interrupt => self.queue.interrupt().ok(),
            Wakes::Socket(socket) => Some(socket.as_fd()),
        };
        let client = self.lane.as_ref().and_then(|lane| lane.client());
        queue.into_iter().chain(client.and_then(|client| client.wake.event()))
    }

    /// Takes a burst of at most `limit` packets into the vector; returns how many the queue had.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        limit: usize,
        vector: &mut Vector,
        exits: &mut Exits,
        functions: &mut Functions,
        now: u64,
    ) -> usize {
        if self.lane.is_some() {
            return self.poll_lane(limit, vector, exits, functions, now);
        }
        let free = vector.free_slots();
        let room = free.len().min(limit);
        let got = self.queue.burst(&mut free[..room]);
        exits.counters.burst(got);
        if got == 0 {
            return 0;
        }
        let burst = &mut free[..got];
        mark(self.port, burst);
        count(self.port, burst, exits);
        let own = pass(self.port, &mut self.spread, burst, exits, functions, now);
        vector.fill(own);
        got
    }
}

/// Lets packets say the port that they have come by. The driver lets them say its device's number, which is its first port's.
#[inline(always)]
fn mark(port: PortId, burst: &mut [Option<Buffer>]) {
    if !port.is_first() {
        burst.iter_mut().flatten().for_each(|buffer| port.mark(buffer));
    }
}

/// A burst through the functions and to other workers; gives how many are left for this one, at the front.
#[inline(always)]
fn pass(
    port: PortId,
    spread: &mut Option<Spread>,
    burst: &mut [Option<Buffer>],
    exits: &mut Exits,
    functions: &mut Functions,
    now: u64,
) -> usize {
    let left =
        if functions.is_empty() { burst.len() } else { functions.receive(port, burst, exits, now) };
    match spread {
        None => left,
        Some(spread) => {
            let burst = &mut burst[..left];
            let (own, refused) = spread.sort(burst);
            for buffer in burst[own..own + refused].iter_mut().filter_map(Option::take) {
                exits.drop(buffer, Reason::HandoffFull);
            }
            own
        }
    }
}

#[inline(always)]
fn count(port: PortId, burst: &[Option<Buffer>], exits: &mut Exits) {
    if let Some(tap) = &mut exits.output.tap {
        tap.burst(burst, port, Direction::Receive);
    }
    let Some(count) = exits.counters.ports.get(port.number()) else { return };
    count.rx_packets.add(burst.len() as u64);
    let mut bytes = 0;
    for slot in burst {
        // None is empty. Flattened, the loop would take one more jump for each.
        let Some(buffer) = slot else { break };
        // Its length is in the line that says where its data is.
        buffer.prefetch_data();
        bytes += buffer.len() as u64;
    }
    count.rx_bytes.add(bytes);
}

/// A ring whose packets a worker takes in.
#[derive(Debug)]
pub enum Inbound {
    /// Packets that enter the graph, each at its own node: from the control thread.
    Enter(HandoffReceiver<Entry>),
    /// Packets that another worker has received for this one (software RSS).
    Received(HandoffReceiver<Buffer>),
    /// Packets that only have to leave by this port: from a worker without a transmit queue of it.
    Transmit(PortId, HandoffReceiver<Buffer>),
}

impl Inbound {
    /// Whether the sender is gone and the ring is empty: it can be forgotten.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Enter(ring) => is_over(ring),
            Self::Received(ring) | Self::Transmit(_, ring) => is_over(ring),
        }
    }
}

fn is_over<T>(ring: &HandoffReceiver<T>) -> bool {
    // In this order: what was sent before the sender went is seen.
    ring.is_abandoned() && ring.is_empty()
}
