//! The control thread's side of a worker.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use thiserror::Error;

use crate::commands::{CommandSender, commands};
use crate::worker::{self, Command, Stopped, WorkerState};
use crate::{Counters, Doorbell, Exits, Graph, GraphError, PollMode};

/// Commands that wait for a worker at most.
const COMMANDS: usize = 64;

/// How long a new thread may take to get ready.
const START: Duration = Duration::from_secs(10);

/// Why something about a worker did not work.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The graph has no node of that name.
    #[error("the graph has no node {0} for received packets")]
    NoEntry(&'static str),
    /// Its graph is not one.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The system has no thread or file descriptor for it.
    #[error("worker {worker} could not be started: {source}")]
    Start {
        /// The worker's number.
        worker: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// The thread may not run on the core.
    #[error(
        "worker {worker} cannot run on core {core}: {source}; choose a core that this process may use"
    )]
    Core {
        /// The worker's number.
        worker: usize,
        /// The core.
        core: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// DPDK has no place for the thread.
    #[error("worker {worker}: {source}")]
    Register {
        /// The worker's number.
        worker: usize,
        /// DPDK's reason.
        source: dpdk::ThreadError,
    },
    /// The worker did not answer in time. The command may still be run.
    #[error("worker {0} did not answer in time")]
    Timeout(usize),
    /// Too many commands wait for the worker.
    #[error("worker {0} has too many commands waiting")]
    Full(usize),
    /// The worker's thread has ended.
    #[error("worker {0} has ended")]
    Ended(usize),
}

/// How a worker runs.
pub struct WorkerSetup {
    /// Its number, from 0.
    pub index: usize,
    /// The core that it is pinned to; `None` leaves it to the system.
    pub core: Option<usize>,
    /// The node where received packets enter, e.g. `ethernet-input`.
    pub entry: &'static str,
    /// Its doorbell, made before it so that other threads' rings can have it.
    pub doorbell: Arc<Doorbell>,
    /// Packets taken from a receive queue at once: 1 to 256.
    pub burst: usize,
    /// Whether it may rest.
    pub poll: PollMode,
}

/// Leaves commands with a worker without ever waiting for it. Clones serve other tasks and threads.
#[derive(Clone)]
pub struct Remote {
    index: usize,
    commands: CommandSender<Command>,
    doorbell: Arc<Doorbell>,
}

impl Remote {
    /// The worker's number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The worker's doorbell, for rings to it.
    #[must_use]
    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.doorbell
    }

    /// Leaves `command` with the worker, which runs it between two vectors. When the worker ends
    /// first, the command is dropped without having run.
    ///
    /// # Errors
    /// [`WorkerError::Full`] or [`WorkerError::Ended`]; the command is dropped.
    pub fn post(
        &self,
        command: impl FnOnce(&mut WorkerState) + Send + 'static,
    ) -> Result<(), WorkerError> {
        match self.commands.send(Box::new(command)) {
            Ok(()) => {
                self.doorbell.ring();
                Ok(())
            }
            Err(TrySendError::Full(_)) => Err(WorkerError::Full(self.index)),
            Err(TrySendError::Disconnected(_)) => Err(WorkerError::Ended(self.index)),
        }
    }
}

/// A running worker.
pub struct WorkerHandle {
    remote: Remote,
    core: Option<usize>,
    counters: Arc<Counters>,
    nodes: Vec<&'static str>,
    thread: Option<JoinHandle<()>>,
}

impl WorkerHandle {
    /// Starts a worker, with no queues yet. It makes its nodes and exits itself, on its core: memory belongs to the NUMA
    /// node of the core that touches it first. What else `make` gives comes back with the handle. The doorbell of the
    /// exits' ring to the control thread is the control thread's.
    ///
    /// # Errors
    /// [`WorkerError`] says what was missing; no thread is left behind.
    pub fn spawn<T: Send + 'static>(
        setup: WorkerSetup,
        make: impl FnOnce() -> Result<(Graph, Exits, T), GraphError> + Send + 'static,
    ) -> Result<(Self, T), WorkerError> {
        let WorkerSetup { index, core, entry, doorbell, burst, poll } = setup;
        let (commands, inbox) = commands(COMMANDS);
        let (ready, started) = mpsc::sync_channel::<Result<_, WorkerError>>(1);
        let bell = Arc::clone(&doorbell);
        let start = move || {
            let registration = prepare(index, core)?;
            let (graph, exits, rest) = make()?;
            let entry = graph.find(entry).ok_or(WorkerError::NoEntry(entry))?;
            let told = (graph.names().to_vec(), Arc::clone(&exits.counters), rest);
            Ok::<_, WorkerError>((registration, WorkerState::new(graph, exits, entry, burst), told))
        };
        let body = move || match start() {
            Ok((_registration, state, told)) => {
                let _ = ready.send(Ok(told));
                worker::run(state, &inbox, &bell, poll);
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        };
        let thread = thread::Builder::new()
            .name(format!("millrace-w{index}"))
            .spawn(body)
            .map_err(|source| WorkerError::Start { worker: index, source })?;
        let (nodes, counters, rest) =
            started.recv_timeout(START).map_err(|_| WorkerError::Timeout(index))??;
        let thread = Some(thread);
        let remote = Remote { index, commands, doorbell };
        Ok((Self { remote, core, counters, nodes, thread }, rest))
    }

    /// What leaves commands with it and never waits.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Its number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.remote.index
    }

    /// The core that it is pinned to.
    #[must_use]
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Names of its nodes, in the order of [`Counters::nodes`].
    #[must_use]
    pub fn nodes(&self) -> &[&'static str] {
        &self.nodes
    }

    /// Its doorbell, for rings to it.
    #[must_use]
    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.remote.doorbell
    }

    /// Runs `command` on the worker, between two vectors, and waits for its answer. The worker
    /// answers within a round; what it is given back when the wait times out is dropped there.
    ///
    /// # Errors
    /// [`WorkerError::Timeout`], [`WorkerError::Full`] or [`WorkerError::Ended`].
    pub fn call<R: Send + 'static>(
        &self,
        timeout: Duration,
        command: impl FnOnce(&mut WorkerState) -> R + Send + 'static,
    ) -> Result<R, WorkerError> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.remote.post(move |state| {
            // Nobody listens after a timeout.
            let _ = answer.send(command(state));
        })?;
        answered.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => WorkerError::Timeout(self.index()),
            RecvTimeoutError::Disconnected => WorkerError::Ended(self.index()),
        })
    }

    /// Lets the worker send what it has, ends its thread and returns its queues.
    ///
    /// # Errors
    /// As [`Self::call`]; on a timeout the thread is left to end by itself.
    pub fn stop(mut self, timeout: Duration) -> Result<Stopped, WorkerError> {
        let stopped = self.call(timeout, WorkerState::stop)?;
        if let Some(thread) = self.thread.take() {
            // A worker that panicked has nothing more to tell than that it ended.
            let _ = thread.join();
        }
        Ok(stopped)
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.remote.post(|state| drop(state.stop()));
        }
    }
}

fn prepare(worker: usize, core: Option<usize>) -> Result<dpdk::Registration, WorkerError> {
    if let Some(core) = core {
        let failed = |source| WorkerError::Core { worker, core, source };
        if core >= CpuSet::MAX_CPU {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        let mut set = CpuSet::new();
        set.set(core);
        sched_setaffinity(None, &set).map_err(|error| failed(error.into()))?;
    }
    dpdk::register_thread().map_err(|source| WorkerError::Register { worker, source })
}
