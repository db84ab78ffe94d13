//! A forwarder whose receiver, worker and transmitter are on the cores of a placement, joined as the daemon joins its workers: what
//! is received goes to the worker by software RSS, and what is sent to the worker that owns the transmit queue. Those that are on
//! one core are one worker.

use std::sync::Arc;
use std::time::Duration;

use dpdk::BufferPool;
use graph::{
    Inbound, PortId, Reason, RxAssignment, Spread, TransmitPath, WorkerHandle, WorkerState, ring,
};

use crate::failure::Failure;
use crate::worker::{Bed, Router, Source};

/// Packets that the receive queue is asked for at once, as in the daemon.
const BURST: u16 = 64;
/// Packets in a ring between two workers, as in the daemon.
const RING: usize = 1024;
/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is lost where the receiver, or the worker, is faster than who comes next.
const OVERLOAD: [Reason; 2] = [Reason::HandoffFull, Reason::TransmitFull];

/// The workers, from the one that receives to the one that transmits.
pub(super) struct Pipeline {
    workers: Vec<WorkerHandle>,
    /// Ports that packets leave by.
    egress: Vec<u16>,
}

impl Pipeline {
    /// Starts it on the cores of receiver, worker and transmitter.
    pub(super) fn start(
        bed: &mut Bed,
        router: &Router,
        source: Source,
        cores: [usize; 3],
    ) -> Result<Self, Failure> {
        let mut workers = Workers { list: Vec::new(), pool: bed.pool };
        let [receive, worker, transmit] = cores.map(|core| workers.on(core, router));
        let (receive, worker, transmit) = (receive?, worker?, transmit?);
        let egress = bed.egress_ports().to_vec();
        for queue in std::mem::take(&mut bed.egress) {
            let port = queue.port();
            if worker != transmit {
                let bell = Arc::clone(workers.get(transmit)?.doorbell());
                let (sender, receiver) = ring(RING, bell);
                let inbound = Inbound::Transmit(PortId::new(port), receiver);
                workers.tell(transmit, move |state| state.add_inbound(inbound))?;
                let path = Some(TransmitPath::Worker(sender));
                workers.tell(worker, move |state| drop(state.set_path(PortId::new(port), path)))?;
            }
            let path = Some(TransmitPath::Queue(queue));
            workers.tell(transmit, move |state| drop(state.set_path(PortId::new(port), path)))?;
        }
        let mut assignment = RxAssignment::new(PortId::new(source.rx.port()), source.rx);
        if receive != worker {
            let bell = Arc::clone(workers.get(worker)?.doorbell());
            let (sender, receiver) = ring(RING, bell);
            let inbound = Inbound::Received(receiver);
            workers.tell(worker, move |state| state.add_inbound(inbound))?;
            assignment.spread = Some(Spread::new(vec![Some(sender)]));
        }
        // Last: packets come from now on.
        workers.tell(receive, move |state| state.add_receive(assignment))?;
        Ok(Self { workers: workers.list, egress })
    }

    /// Packets that have left so far.
    pub(super) fn forwarded(&self) -> u64 {
        let ports = self.workers.iter().flat_map(|worker| {
            let ports = &worker.counters().ports;
            self.egress.iter().filter_map(|port| ports.get(usize::from(*port)))
        });
        ports.map(|port| port.tx_packets.get()).sum()
    }

    /// Packets that did not fit into a ring so far.
    pub(super) fn lost(&self) -> u64 {
        let of = |worker: &WorkerHandle| {
            let drops = &worker.counters().drops;
            Reason::ALL
                .iter()
                .zip(drops)
                .filter(|(why, _)| OVERLOAD.contains(why))
                .map(|(_, n)| n.get())
                .sum::<u64>()
        };
        self.workers.iter().map(of).sum()
    }

    /// Ends it. Any drop but those of an overload is an error: all packets are valid and have a route.
    pub(super) fn stop(self) -> Result<(), Failure> {
        let forwarded = self.forwarded();
        for worker in self.workers {
            let counters = Arc::clone(worker.counters());
            drop(worker.stop(PATIENCE)?);
            let drops = Reason::ALL.iter().zip(&counters.drops);
            let drops = drops.filter(|(why, n)| n.get() > 0 && !OVERLOAD.contains(why));
            let reasons: Vec<_> =
                drops.map(|(why, n)| format!("{} {}", n.get(), why.name())).collect();
            if !reasons.is_empty() {
                return Err(Failure::Dropped { forwarded, reasons: reasons.join(", ") });
            }
        }
        Ok(())
    }
}

/// Workers while they are put together.
struct Workers {
    list: Vec<WorkerHandle>,
    pool: BufferPool,
}

impl Workers {
    /// The number of the one on a core, which is started if there is none.
    fn on(&mut self, core: usize, router: &Router) -> Result<usize, Failure> {
        let there = self.list.iter().position(|worker| worker.core() == Some(core));
        let next = self.list.len();
        if there.is_none() {
            self.list.push(router.spawn(next, self.pool, core, BURST)?);
        }
        Ok(there.unwrap_or(next))
    }

    fn get(&self, number: usize) -> Result<&WorkerHandle, Failure> {
        self.list.get(number).ok_or(Failure::Thread)
    }

    fn tell(
        &self,
        number: usize,
        what: impl FnOnce(&mut WorkerState) + Send + 'static,
    ) -> Result<(), Failure> {
        Ok(self.get(number)?.call(PATIENCE, what)?)
    }
}
