//! Where the work is done: in the worker, as a packet function, or by a client on another core.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use dpdk::Buffer;
use graph::{Exits, Filter, Function, PortId};
use shm::Meta;
use shm::attach::Take;

use super::work::Work;
use crate::client_ends::{Channel, Request};
use crate::failure::Failure;
use crate::machine;

/// Where the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Worker,
    Client,
}

impl Place {
    pub(super) const ALL: [Self; 2] = [Self::Worker, Self::Client];
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Worker => "worker",
            Self::Client => "client",
        })
    }
}

/// A packet function of the worker that works for each packet, and leaves it in its place.
pub(super) struct InWorker {
    pub(super) work: Work,
    pub(super) times: Arc<AtomicU32>,
}

impl Function for InWorker {
    fn receive(
        &mut self,
        _port: PortId,
        packets: &mut [Option<Buffer>],
        _exits: &mut Exits,
        _now: u64,
    ) {
        let times = self.times.load(Ordering::Relaxed);
        for packet in packets.iter().flatten() {
            self.work.act(packet.data(), times);
        }
    }
}

/// What a client asks for that takes all packets.
pub(super) fn request() -> Request {
    let (take, filter) = (Take::Divert, Filter::default());
    Request { closed: true, take, filter, slots: 1024, capacity: 2048 }
}

/// A client: takes each packet, works for it, and sends it on, until `stop`.
pub(super) fn client(
    core: usize,
    channel: &mut Channel,
    mut work: Work,
    times: &AtomicU32,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    /// Its number for the port that it sends by.
    const PORT: Meta = Meta { port: 0, flags: 0 };
    machine::pin(core)?;
    let mut packet = vec![0; usize::from(u16::MAX)];
    while !stop.load(Ordering::Relaxed) {
        let Some(taken) = channel.receive.next() else {
            std::hint::spin_loop();
            continue;
        };
        let length = channel.receive.copy(&taken, &mut packet);
        channel.receive.release(taken);
        let packet = packet.get(..length).unwrap_or(&[]);
        work.act(packet, times.load(Ordering::Relaxed));
        // A packet for which there is no room waits: whoever sends on is not faster than the port.
        while channel.transmit.push(packet, PORT).is_err() && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
    Ok(())
}
