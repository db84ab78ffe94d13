//! The queues of a client: made as the daemon makes them, and the end that it gets.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use dpdk::BufferPool;
use graph::{ClientChannel, ClientCounters, ClientPorts, ClientQueues, ClientSetup, PortId};
use shm::attach::Spread;
use shm::{Consumer, Doorbell, Layout, Producer, Segment};

use super::conduct::Request;
use crate::failure::Failure;

/// Where regions of a segment begin: a page.
const PAGE: usize = 4096;
/// Bytes of the longest IP packet that its port takes.
const MTU: u16 = 1500;
/// The client's number for the port that packets come by. It has no other.
const NUMBER: u8 = 0;

/// A channel as the client has it.
pub(super) struct Channel {
    pub(super) receive: Consumer,
    pub(super) transmit: Producer,
    /// Rung by the worker.
    _bell: OwnedFd,
}

/// All that a client has.
pub(super) struct Ends {
    pub(super) segment: Arc<Segment>,
    pub(super) channels: Vec<Channel>,
    /// Wakes the worker.
    pub(super) wake: OwnedFd,
}

/// Gives the worker's end, the client's, and what is counted for it.
pub(super) fn make(
    request: Request,
    channels: u16,
    port: PortId,
    pool: BufferPool,
) -> Result<(ClientQueues, Ends, Arc<ClientCounters>), Failure> {
    let Request { closed, take, filter, slots, capacity } = request;
    let layout = Layout::new(slots, capacity)?;
    let each = layout.bytes().next_multiple_of(PAGE);
    let count = usize::from(channels);
    let segment = Arc::new(Segment::create("millrace-bench", 2 * count * each)?);
    // Mapped once more, as in a process of its own.
    let file = segment.as_fd().try_clone_to_owned()?;
    let mapped = Arc::new(Segment::from_file(file)?);
    if closed {
        segment.close()?;
    }
    let ring = |segment: &Arc<Segment>, number: usize| {
        let region = segment.region(number * each, layout.bytes());
        region.ok_or(Failure::OtherProcess("its memory is too short"))
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (bell, their_bell) = Doorbell::pair()?;
        let to = Producer::new(ring(&segment, 2 * number)?, layout)?;
        let from = Consumer::new(ring(&segment, 2 * number + 1)?, layout)?;
        ours.push(ClientChannel::new(to, from, Arc::new(bell)));
        theirs.push(Channel {
            receive: Consumer::new(ring(&mapped, 2 * number)?, layout)?,
            transmit: Producer::new(ring(&mapped, 2 * number + 1)?, layout)?,
            _bell: their_bell,
        });
    }
    let (wake, their_wake) = Doorbell::pair()?;
    let counters = Arc::<ClientCounters>::default();
    let ports = Arc::<ClientPorts>::default();
    ports.set(NUMBER, Some((port, MTU)));
    let queues = ClientQueues::new(ClientSetup {
        take,
        spread: Spread::Flow,
        filter,
        receives: Arc::clone(&ports),
        sends: ports,
        channels: ours,
        wake,
        pool,
        counters: Arc::clone(&counters),
    });
    Ok((queues, Ends { segment: mapped, channels: theirs, wake: their_wake }, counters))
}
