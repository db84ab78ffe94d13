//! The queues of a client: made as the daemon makes them, and the end that it gets.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use dpdk::BufferPool;
use graph::{
    ClientChannel, ClientCounters, ClientPace, ClientPorts, ClientQueues, ClientSetup, ClientWake,
    Doorbell, Errand, Filter, NodeId, PortId, StackCounters, StackSetup,
};
use shm::attach::{Spread, Take};
use shm::bell::{self, Caller, Drain};
use shm::{Consumer, Layout, Producer, Segment};

use crate::failure::Failure;

/// Where regions of a segment begin: a page.
const PAGE: usize = 4096;
/// Bytes of the longest IP packet that its port takes.
const MTU: u16 = 1500;
/// How long the user's thread waits before it sees that it is to end.
const MOMENT: Duration = Duration::from_millis(1);
/// Of a stack's ring, and bytes of each.
const STACK_SLOTS: u32 = 64;
const STACK_CAPACITY: u32 = 252;
/// The client's number for the only port that it takes from, and for the only one that it sends by.
const NUMBER: u8 = 0;

/// A channel as the client has it.
pub(crate) struct Channel {
    pub(crate) receive: Consumer,
    pub(crate) transmit: Producer,
    /// Rung by the worker.
    _bell: OwnedFd,
}

/// All that a client has.
pub(crate) struct Ends {
    pub(crate) segment: Arc<Segment>,
    pub(crate) channels: Vec<Channel>,
    /// Wakes the worker.
    pub(crate) wake: OwnedFd,
}

/// What the thread of the clients' user does in the daemon, for all of them.
pub(crate) struct User {
    doorbell: Arc<Doorbell>,
    /// How often the worker calls for it.
    pace: ClientPace,
    rings: Vec<(Errand, Caller)>,
    drains: Vec<(Errand, Drain)>,
}

impl User {
    pub(crate) fn new() -> Result<Self, Failure> {
        let doorbell = Arc::new(Doorbell::new()?);
        let (pace, rings, drains) = (ClientPace::default(), Vec::new(), Vec::new());
        Ok(Self { doorbell, pace, rings, drains })
    }

    /// Does what the worker has called for, or waits a moment for it to call.
    pub(crate) fn attend(&self) {
        self.doorbell.announce();
        let rung = self.rings.iter().filter(|(errand, caller)| errand.fulfil(|| caller.ring()));
        let drained = self.drains.iter().filter(|(errand, drain)| errand.fulfil(|| drain.drain()));
        if rung.count() + drained.count() == 0 {
            self.doorbell.wait(&[], MOMENT);
        }
        self.doorbell.awake();
    }
}

/// What it asks the daemon for.
pub(crate) struct Request {
    /// Whether its memory is closed, as the daemon does it. Then a file's writes are refused too, which stand for those
    /// into memory here.
    pub(crate) closed: bool,
    pub(crate) take: Take,
    pub(crate) filter: Filter,
    /// Of each ring, and bytes of each.
    pub(crate) slots: u32,
    pub(crate) capacity: u32,
}

/// All that there is of a client.
pub(crate) struct Client {
    pub(crate) queues: ClientQueues,
    pub(crate) ends: Ends,
    pub(crate) counters: Arc<ClientCounters>,
}

/// Makes it, for a user: it takes packets from one port and sends by another, or the same.
pub(crate) fn make(
    request: Request,
    channels: u16,
    user: &mut User,
    ([from, to], pool): ([PortId; 2], BufferPool),
) -> Result<Client, Failure> {
    let Request { closed, take, filter, slots, capacity } = request;
    let rings = Rings::make(closed, Layout::new(slots, capacity)?, channels, user)?;
    let (wake, their_wake) = waking(channels, user)?;
    let counters = Arc::<ClientCounters>::default();
    let only = |port| {
        let ports = Arc::<ClientPorts>::default();
        ports.set(NUMBER, Some((port, MTU)));
        ports
    };
    let queues = ClientQueues::new(ClientSetup {
        take,
        spread: Spread::Flow,
        filter,
        receives: only(from),
        sends: only(to),
        channels: rings.ours,
        wake,
        pace: user.pace.clone(),
        pool,
        counters: Arc::clone(&counters),
    });
    let ends = Ends { segment: rings.mapped, channels: rings.theirs, wake: their_wake };
    Ok(Client { queues, ends, counters })
}

/// All that there is of a stack.
pub(crate) struct Stack {
    pub(crate) setup: StackSetup,
    pub(crate) ends: Ends,
    pub(crate) counters: Arc<StackCounters>,
}

/// Makes it, for a user. What it sends enters the graph at `entry`.
pub(crate) fn make_stack(
    entry: NodeId,
    user: &mut User,
    pool: BufferPool,
) -> Result<Stack, Failure> {
    let layout = Layout::new(STACK_SLOTS, STACK_CAPACITY)?;
    let Rings { mapped, ours, theirs } = Rings::make(true, layout, 1, user)?;
    let channel = ours.into_iter().next().ok_or(Failure::NoStacks)?;
    let (wake, their_wake) = waking(1, user)?;
    let counters = Arc::<StackCounters>::default();
    let pace = user.pace.clone();
    let setup = StackSetup { channel, wake, pace, pool, entry, counters: Arc::clone(&counters) };
    let ends = Ends { segment: mapped, channels: theirs, wake: their_wake };
    Ok(Stack { setup, ends, counters })
}

/// Rings in memory that two share.
struct Rings {
    /// The memory as the client has it.
    mapped: Arc<Segment>,
    ours: Vec<ClientChannel>,
    theirs: Vec<Channel>,
}

impl Rings {
    /// So many pairs. `closed`: as in [`Request`].
    fn make(closed: bool, layout: Layout, channels: u16, user: &mut User) -> Result<Self, Failure> {
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
            let (caller, their_bell) = bell::outward()?;
            let errand = Errand::new(Arc::clone(&user.doorbell));
            let to = Producer::new(ring(&segment, 2 * number)?, layout)?;
            let from = Consumer::new(ring(&segment, 2 * number + 1)?, layout)?;
            ours.push(ClientChannel::new(to, from, errand.clone()));
            user.rings.push((errand, caller));
            theirs.push(Channel {
                receive: Consumer::new(ring(&mapped, 2 * number)?, layout)?,
                transmit: Producer::new(ring(&mapped, 2 * number + 1)?, layout)?,
                _bell: their_bell,
            });
        }
        Ok(Self { mapped, ours, theirs })
    }
}

/// What wakes the worker, and the client's end of it.
fn waking(channels: u16, user: &mut User) -> Result<(ClientWake, OwnedFd), Failure> {
    let (watch, drain, theirs) = bell::inward()?;
    let errand = Errand::new(Arc::clone(&user.doorbell));
    user.drains.push((errand.clone(), drain));
    Ok((ClientWake::new(watch, channels, errand), theirs))
}
