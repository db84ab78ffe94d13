//! Worker threads: one per configured core, each with its graph, queues and rings.
//!
//! | file | job |
//! | --- | --- |
//! | `crew` | commands, answered later |
//! | `counters` | sums over all workers |
//! | `inbox` | what workers hand to the control thread |
//! | `injector` | packets that the control thread sends |
//! | `queues` | a port's queues, given to workers and taken back |
//! | `standing` | those that do so again and again |
//! | `watch` | workers that have stopped answering |

mod counters;
mod crew;
mod inbox;
mod injector;
mod queues;
mod standing;
mod watch;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use control::config::{Config, Poll};
use dpdk::BufferPool;
use forward::bridge::{Learn, LearnReceiver, MacReader, learn_ring};
use forward::flow::FlowReaders;
use forward::nodes::{self, Parts};
use forward::state::State;
use forward::steering::SteeringReader;
use graph::{
    Counters, Doorbell, Entry, Exits, Graph, GraphError, HandoffReceiver, HandoffSender, Inbound,
    NodeId, Output, PollMode, Punt, WorkerError, WorkerHandle, WorkerSetup, ring,
};
use tables::{Epoch, TooManyReaders};

use crate::ports::Buffers;
use crate::service::Threads;

pub(crate) use crew::{Answer, Answers, Crew, Member};
pub(crate) use inbox::Inbox;
pub(crate) use injector::Injector;
pub(crate) use queues::{attach_receive, attach_transmit, detach, detach_receive};
pub(crate) use watch::{Change, PERIOD, Watch};

/// Ports of a daemon at most: each worker has a transmit buffer and counters for each. A port's
/// number is DPDK's, of which Debian's builds have 32.
pub(crate) const PORTS: usize = 64;

/// Packets in a ring between two threads.
const RING: usize = 1024;

/// How long a worker may take to answer while the daemon starts or stops.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the workers could not do something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkersError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("no file descriptor for a worker: {0}; raise LimitNOFILE (ulimit -n)")]
    Doorbell(#[from] io::Error),
    #[error(transparent)]
    TooMany(#[from] TooManyReaders),
    #[error("no core for a worker; see workers.cores")]
    None,
}

/// One worker, as the control thread sees it.
pub(crate) struct Worker {
    /// The core that it is pinned to.
    pub(crate) core: u16,
    /// The thread.
    pub(crate) handle: WorkerHandle,
    member: Member,
}

impl Worker {
    /// Whether it has stopped answering ([`Member::is_down`]).
    pub(crate) fn is_down(&self) -> bool {
        self.member.is_down()
    }
}

/// Where packets from elsewhere than ports enter a graph; the same number in each worker's.
#[derive(Debug, Clone)]
pub(crate) struct Entries(HashMap<&'static str, NodeId>);

impl Entries {
    /// The node of that name.
    pub(crate) fn node(&self, name: &str) -> Option<NodeId> {
        self.0.get(name).copied()
    }
}

/// What the graphs of all workers read.
pub(crate) struct Tables<'a> {
    pub(crate) state: &'a State,
    pub(crate) flows: FlowReaders,
    pub(crate) macs: MacReader,
    pub(crate) steering: SteeringReader,
    /// By worker, in order.
    pub(crate) buffers: &'a [Buffers],
    pub(crate) epoch: &'a Epoch,
}

/// The other ends of a worker's rings, made by the worker like its own.
struct Made {
    entries: Entries,
    punts: HandoffReceiver<Punt>,
    learned: LearnReceiver,
    inject: HandoffSender<Entry>,
    injected: HandoffReceiver<Entry>,
}

impl Tables<'_> {
    /// What makes a worker's nodes, exits and rings, on its own thread. `pool`: of its NUMA node; `drain`: TSC cycles.
    fn make(
        &self,
        control: Arc<Doorbell>,
        doorbell: Arc<Doorbell>,
        (pool, drain): (BufferPool, u64),
    ) -> impl FnOnce() -> Result<(Graph, Exits, Made), GraphError> + Send + use<> {
        let (state, flows, macs) = (self.state.clone(), self.flows.clone(), self.macs.clone());
        let steering = self.steering.clone();
        move || {
            let (learn, learned) = learn_ring(RING);
            let graph = nodes::build(Parts { state, flows, macs, steering, learn, pool })?;
            let ids = graph.names().iter().filter_map(|name| Some((*name, graph.find(name)?)));
            let entries = Entries(ids.collect());
            let (to_control, punts) = ring(RING, control);
            let (inject, injected) = ring(RING, doorbell);
            let counters = Arc::new(Counters::new(graph.names().len(), PORTS));
            let exits = Exits::new(Output::new(PORTS, drain), counters, to_control);
            Ok((graph, exits, Made { entries, punts, learned, inject, injected }))
        }
    }
}

/// The control thread's ends of rings, by worker.
pub(crate) struct Rings {
    /// Packets for the control thread.
    pub(crate) punts: Inbox<Punt>,
    /// Addresses that bridges have seen.
    pub(crate) learned: Inbox<Learn>,
    /// Packets that the control thread sends.
    pub(crate) injector: Injector,
}

/// All workers.
pub(crate) struct Workers {
    list: Vec<Worker>,
    crew: Crew,
    entries: Entries,
    /// That which drops what they give back too late.
    threads: Threads,
}

impl Workers {
    /// Starts a worker on each configured core. Also returns the rings of packets for the control
    /// thread, whose doorbell `control` is.
    ///
    /// Errors: [`WorkersError`]; workers that were started end again.
    pub(crate) fn start(
        config: &Config,
        tables: &Tables<'_>,
        control: &Arc<Doorbell>,
    ) -> Result<(Self, Rings), WorkersError> {
        let threads = Threads::default();
        let late = crew::late(&threads)?;
        let mut list = Vec::new();
        let mut entries = Entries(HashMap::new());
        let (mut punts, mut all_learned, mut senders) = (Vec::new(), Vec::new(), Vec::new());
        let hz = dpdk::tsc_hz();
        let drain = config.workers.drain.as_nanos() * u128::from(hz) / 1_000_000_000;
        let drain = u64::try_from(drain).unwrap_or(u64::MAX);
        for (index, (core, buffers)) in config.workers.cores.iter().zip(tables.buffers).enumerate()
        {
            let doorbell = Arc::new(Doorbell::new()?);
            let setup = WorkerSetup {
                index,
                core: Some(usize::from(*core)),
                entry: nodes::INPUT,
                doorbell: Arc::clone(&doorbell),
                burst: usize::from(config.workers.vector),
                poll: match config.workers.poll {
                    Poll::Adaptive => PollMode::Adaptive,
                    Poll::Busy => PollMode::Busy,
                },
            };
            let make = tables.make(Arc::clone(control), doorbell, (buffers.packets, drain));
            let (handle, made) = WorkerHandle::spawn(setup, make)?;
            let reader = tables.epoch.register()?;
            let long = buffers.long;
            let inbound = Inbound::Enter(made.injected);
            handle.call(PATIENCE, move |state| {
                state.set_reader(reader);
                state.lend_long(long);
                state.add_inbound(inbound);
            })?;
            entries = made.entries;
            punts.push(made.punts);
            all_learned.push(made.learned);
            senders.push(made.inject);
            let member = Member::new(*core, *buffers, handle.remote(), late.clone());
            list.push(Worker { core: *core, handle, member });
        }
        let crew = Crew::of(list.iter().map(|worker| worker.member.clone()).collect());
        let pool = tables.buffers.first().ok_or(WorkersError::None)?.packets;
        let rings = Rings {
            punts: Inbox::new(punts),
            learned: Inbox::new(all_learned),
            injector: Injector::new(senders, entries.clone(), pool),
        };
        Ok((Self { list, crew, entries, threads }, rings))
    }

    /// The workers in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.list.iter()
    }

    /// Where packets enter the graphs at a node of that name.
    pub(crate) fn entry(&self, name: &str) -> Option<NodeId> {
        self.entries.node(name)
    }

    /// Those who take commands.
    pub(crate) fn crew(&self) -> Crew {
        self.crew.clone()
    }

    /// The thread that drops what they give back too late, to be looked at once a second.
    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Ends all workers, after they have sent what they hold.
    pub(crate) fn stop(&mut self) {
        for worker in self.list.drain(..) {
            if let Err(error) = worker.handle.stop(PATIENCE) {
                tracing::error!("{error}");
            }
        }
    }
}
