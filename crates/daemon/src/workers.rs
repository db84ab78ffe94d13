//! Worker threads: one per configured core, each with its graph, queues and rings.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use control::config::{self, Config, Poll};
use dpdk::{BufferPool, TxQueue};
use forward::bridge::{LearnReceiver, MacReader, learn_ring};
use forward::flow::FlowReaders;
use forward::nodes::{self, Parts};
use forward::state::State;
use graph::{
    Counters, Doorbell, Exits, GraphError, HandoffReceiver, HandoffSender, Inbound, KeptLane,
    NodeId, Output, PollMode, PortId, RxAssignment, Spread, TransmitPath, WorkerError,
    WorkerHandle, WorkerSetup, WorkerState, ring,
};
use tables::{Epoch, TooManyReaders};

use crate::topology::PORTS;

/// Packets in a ring between two threads.
const RING: usize = 1024;

/// How long a worker may take to answer. It answers within a round, so this is a lost worker.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the workers could not do something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkersError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("the graph of nodes: {0}")]
    Graph(#[from] GraphError),
    #[error("no file descriptor for a worker: {0}; raise LimitNOFILE (ulimit -n)")]
    Doorbell(#[from] io::Error),
    #[error(transparent)]
    TooMany(#[from] TooManyReaders),
}

/// One worker, as the control thread sees it.
pub(crate) struct Worker {
    /// The core that it is pinned to.
    pub(crate) core: u16,
    /// The thread.
    pub(crate) handle: WorkerHandle,
    inject: HandoffSender,
}

/// Where packets of the control thread enter a graph; the same number in each worker's.
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
    pub(crate) pool: BufferPool,
    pub(crate) epoch: &'a Epoch,
}

/// The control thread's ends of rings, by worker.
pub(crate) struct Rings {
    /// Packets for the control thread.
    pub(crate) punts: Vec<HandoffReceiver>,
    /// Addresses that bridges have seen.
    pub(crate) learned: Vec<LearnReceiver>,
}

/// All workers.
pub(crate) struct Workers {
    list: Vec<Worker>,
    entries: Entries,
    next: usize,
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
        let mut workers = Self { list: Vec::new(), entries: Entries(HashMap::new()), next: 0 };
        let mut rings = Rings { punts: Vec::new(), learned: Vec::new() };
        let hz = dpdk::tsc_hz();
        let drain = config.workers.drain.as_nanos() * u128::from(hz) / 1_000_000_000;
        let drain = u64::try_from(drain).unwrap_or(u64::MAX);
        for (index, core) in config.workers.cores.iter().enumerate() {
            let (learn, learned) = learn_ring(RING);
            rings.learned.push(learned);
            let graph = nodes::build(Parts {
                state: tables.state.clone(),
                flows: tables.flows.clone(),
                macs: tables.macs.clone(),
                learn,
                pool: tables.pool,
            })?;
            let ids = graph.names().iter().filter_map(|name| Some((*name, graph.find(name)?)));
            workers.entries = Entries(ids.collect());
            let (to_control, from_worker) = ring(RING, Arc::clone(control));
            rings.punts.push(from_worker);
            let counters = Arc::new(Counters::new(graph.names().len(), PORTS));
            let doorbell = Arc::new(Doorbell::new()?);
            let handle = WorkerHandle::spawn(WorkerSetup {
                index,
                core: Some(usize::from(*core)),
                graph,
                entry: nodes::INPUT,
                exits: Exits::new(Output::new(PORTS, drain), counters, to_control),
                doorbell: Arc::clone(&doorbell),
                burst: usize::from(config.workers.vector),
                poll: match config.workers.poll {
                    Poll::Adaptive => PollMode::Adaptive,
                    Poll::Busy => PollMode::Busy,
                },
            })?;
            let reader = tables.epoch.register()?;
            let (inject, inbound) = ring(RING, doorbell);
            handle.call(PATIENCE, move |state| {
                state.set_reader(reader);
                state.add_inbound(Inbound::Enter(inbound));
            })?;
            workers.list.push(Worker { core: *core, handle, inject });
        }
        Ok((workers, rings))
    }

    /// The workers in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.list.iter()
    }

    /// Nodes by name.
    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Sends a packet into a worker's graph; the workers take turns. Gives it back when all rings
    /// are full.
    pub(crate) fn inject(&mut self, mut packet: graph::Handoff) -> Result<(), graph::Handoff> {
        for _ in 0..self.list.len() {
            self.next = (self.next + 1) % self.list.len().max(1);
            let Some(worker) = self.list.get_mut(self.next) else { break };
            match worker.inject.push(packet) {
                Ok(()) => return Ok(()),
                Err(back) => packet = back,
            }
        }
        Err(packet)
    }

    /// Wakes the workers that packets were injected into.
    pub(crate) fn notify(&mut self) {
        for worker in &mut self.list {
            worker.inject.notify();
        }
    }

    /// One transmit queue per worker; a worker beyond the device's queues goes through the owner of
    /// one.
    pub(crate) fn attach_transmit(
        &self,
        port: PortId,
        queues: Vec<TxQueue>,
    ) -> Result<(), WorkersError> {
        let owners = queues.len().min(self.list.len()).max(1);
        for (worker, queue) in self.list.iter().zip(queues) {
            let path = Some(TransmitPath::Queue(queue));
            let before = worker.handle.call(PATIENCE, move |state| state.set_path(port, path))?;
            drop(before);
        }
        for (index, worker) in self.list.iter().enumerate().skip(owners) {
            let Some(owner) = self.list.get(index % owners) else { continue };
            let (sender, receiver) = ring(RING, Arc::clone(owner.handle.doorbell()));
            let inbound = Inbound::Transmit(receiver);
            owner.handle.call(PATIENCE, move |state| state.add_inbound(inbound))?;
            let path = Some(TransmitPath::Worker(sender));
            let before = worker.handle.call(PATIENCE, move |state| state.set_path(port, path))?;
            drop(before);
        }
        Ok(())
    }

    /// Gives receive queues to the workers that the configuration says.
    pub(crate) fn attach_receive(
        &self,
        config: &config::Port,
        queues: impl IntoIterator<Item = RxAssignment>,
    ) -> Result<(), WorkersError> {
        for mut assignment in queues {
            let queue = assignment.queue.index();
            let core = config.queues.iter().find(|place| place.queue == queue);
            let poller = core.and_then(|place| self.position(place.core)).unwrap_or(0);
            assignment.spread = self.spread(config, poller)?;
            let Some(worker) = self.list.get(poller) else { continue };
            worker.handle.call(PATIENCE, move |state| state.add_receive(assignment))?;
        }
        Ok(())
    }

    /// Rings from the polling worker to those that share its port by software RSS.
    fn spread(&self, config: &config::Port, poller: usize) -> Result<Option<Spread>, WorkersError> {
        let sharing: Vec<usize> =
            config.software_rss.iter().filter_map(|core| self.position(*core)).collect();
        if sharing.is_empty() || sharing == [poller] {
            return Ok(None);
        }
        let mut senders = Vec::new();
        for at in sharing {
            let other = self.list.get(at).filter(|_| at != poller);
            let Some(other) = other else {
                senders.push(None);
                continue;
            };
            let (sender, receiver) = ring(RING, Arc::clone(other.handle.doorbell()));
            let inbound = Inbound::Enter(receiver);
            other.handle.call(PATIENCE, move |state| state.add_inbound(inbound))?;
            senders.push(Some(sender));
        }
        Ok(Some(Spread::new(senders)))
    }

    /// Takes a port's receive queues from the workers.
    pub(crate) fn detach_receive(&self, port: PortId) -> Result<Vec<RxAssignment>, WorkersError> {
        let mut all = Vec::new();
        for worker in &self.list {
            all.extend(worker.handle.call(PATIENCE, move |state| take_receive(state, port))?);
        }
        Ok(all)
    }

    /// Takes all of a port's queues from the workers. The queues are dropped here, on the control
    /// thread: the last one closes the device, which takes its time. Gives what the last receive queues leave to those
    /// after them, in order.
    pub(crate) fn detach(&self, port: PortId) -> Result<Vec<KeptLane>, WorkersError> {
        let mut receive = self.detach_receive(port)?;
        receive.sort_by_key(|assignment| assignment.queue.index());
        let lanes = receive.into_iter().filter_map(RxAssignment::into_lane).collect();
        for worker in &self.list {
            let path = worker.handle.call(PATIENCE, move |state| state.set_path(port, None))?;
            drop(path);
        }
        Ok(lanes)
    }

    /// Runs a command on one of the workers and waits for its answer.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        worker: &Worker,
        command: impl FnOnce(&mut WorkerState) -> R + Send + 'static,
    ) -> Result<R, WorkerError> {
        worker.handle.call(PATIENCE, command)
    }

    /// Takes something back from every worker. It is dropped here, not between two vectors.
    pub(crate) fn take_back<R: Send + 'static>(
        &self,
        take: impl FnOnce(&mut WorkerState) -> R + Copy + Send + 'static,
    ) {
        for worker in &self.list {
            match self.call(worker, take) {
                Ok(taken) => drop(taken),
                Err(error) => tracing::error!("{error}"),
            }
        }
    }

    /// Ends all workers, after they have sent what they hold.
    pub(crate) fn stop(&mut self) {
        for worker in self.list.drain(..) {
            if let Err(error) = worker.handle.stop(PATIENCE) {
                tracing::error!("{error}");
            }
        }
    }

    fn position(&self, core: u16) -> Option<usize> {
        self.list.iter().position(|worker| worker.core == core)
    }
}

fn take_receive(state: &mut WorkerState, port: PortId) -> Vec<RxAssignment> {
    let queues = state.receive_mut().iter().filter(|rx| rx.port == port);
    let queues: Vec<u16> = queues.map(|rx| rx.queue.index()).collect();
    queues.into_iter().filter_map(|queue| state.remove_receive(port, queue)).collect()
}
