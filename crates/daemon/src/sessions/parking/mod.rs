//! The daemon's own stack: it has the connections that no process has at the moment, and ends those that no process wants any
//! more, their TIME-WAIT included. It is a thread of this process with a stack like any other's, on rings like any other's, which
//! it gets at the sessions socket when it is needed first. While it has nothing to do it sleeps.

mod fifo;
mod thread;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use client::session::Link;
use forward::steering::Flow;
use graph::Doorbell;
use shm::attach::Refusal;
use shm::session::{OpenStack, TransportProtocol};
use tokio::sync::{Mutex, MutexGuard, oneshot};
use transport::{ConnectionId, Ends, ExportError, ImportError, TimeWait};

use crate::processes::no_resources;
use crate::service::{Pulse, Threads};

use thread::Keeper;

/// Its queues: slots of each ring, and bytes of packet in each; its flows are found without claims. Connections beyond so many
/// are counted and not shown.
const ASKED: OpenStack =
    OpenStack { slots: 1024, capacity: 2048 - 64, claims: 64, connections: 1024 };
/// What it calls itself.
const NAME: &str = "millraced";

/// The flow of a connection.
pub(in crate::sessions) fn flow_of(ends: &Ends) -> Flow {
    let Ends { local, remote } = *ends;
    Flow { protocol: TransportProtocol::Tcp, local, remote }
}

/// A connection that comes.
pub(super) struct Arrival {
    /// As its stack has exported it.
    pub(super) bytes: Vec<u8>,
    /// When: ns of the monotonic clock.
    pub(super) at: u64,
    /// Bytes that its FIFOs are to hold: received and not read yet, or promised; to be sent.
    pub(super) room: (usize, usize),
    /// Its addresses and ports.
    pub(super) ends: Option<Ends>,
    pub(super) purpose: Purpose,
}

/// What is to become of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Somebody will have it again.
    Keep,
    /// It is to be closed, when all is sent.
    Finish,
}

/// A connection that leaves.
pub(super) struct Departure {
    pub(super) bytes: Vec<u8>,
    /// ns of the monotonic clock.
    pub(super) at: u64,
}

/// What the thread is told.
enum Job {
    Import(Arrival, oneshot::Sender<Result<ConnectionId, ImportError>>),
    Export(ConnectionId, oneshot::Sender<Result<Departure, ExportError>>),
    /// Closes a connection that is kept: it ends when all is sent.
    Close(ConnectionId),
    /// Resets it.
    Abort(ConnectionId),
    /// Takes connections in TIME-WAIT.
    WaitOut(Vec<TimeWait>),
    /// Forgets connections in TIME-WAIT between these ends.
    ForgetWaits(Vec<Ends>),
    /// Brings what is shown of its connections up to date.
    Show,
}

/// The way to the thread. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Parking {
    jobs: Sender<Job>,
    bell: Arc<Doorbell>,
    /// Connections whose packets may come before they do themselves.
    expected: Arc<AtomicUsize>,
}

/// A connection is on its way to the thread, which takes no packets until it is there.
pub(super) struct Expected(Arc<AtomicUsize>);

impl Drop for Expected {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// How the thread comes to be, when it is needed first.
#[derive(Debug)]
pub(super) struct Starting {
    /// Of the sessions socket.
    path: Arc<Path>,
    threads: Arc<Threads>,
    turn: Mutex<()>,
}

impl Starting {
    /// `threads`: where it is looked at it.
    pub(super) fn new(path: &Path, threads: Arc<Threads>) -> Self {
        Self { path: path.into(), threads, turn: Mutex::new(()) }
    }

    pub(super) fn path(&self) -> Arc<Path> {
        Arc::clone(&self.path)
    }

    /// For the thread.
    pub(super) fn pulse(&self) -> Pulse {
        self.threads.add("parking".to_owned())
    }

    /// One at a time.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }
}

/// A connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndedFlow {
    /// Its flow, which is free.
    pub(super) flow: Flow,
    /// How long its TIME-WAIT still takes, if it has one.
    pub(super) left: Option<Duration>,
}

/// What is told when connections end.
pub(super) struct Endings {
    /// Those that are over, though what comes again for them is still for this stack.
    pub(super) over: Vec<Flow>,
    /// Those of some time ago.
    pub(super) free: Vec<EndedFlow>,
}

/// Who is told.
pub(super) type Ended = Box<dyn Fn(Endings) + Send>;

/// A thread that runs, and who it is at the sessions socket.
pub(super) struct Started {
    pub(super) parking: Parking,
    /// The number of its process's connection, and of its stack.
    pub(super) client: u32,
    pub(super) stack: u32,
}

/// Starts the thread. `path`: of the sessions socket.
///
/// Errors: what the process is told that needs it.
pub(super) async fn start(path: Arc<Path>, ended: Ended, pulse: Pulse) -> Result<Started, Refusal> {
    let failed = |what: &dyn std::fmt::Display| {
        no_resources(format!("millraced's own stack, which keeps connections that move: {what}"))
    };
    let (started, told) = oneshot::channel();
    let thread = std::thread::Builder::new().name("parking".into());
    let spawned = thread.spawn(move || match open(&path, ended) {
        Ok((keeper, opened)) => {
            if started.send(Ok(opened)).is_ok() {
                keeper.run(&pulse);
            }
        }
        Err(error) => drop(started.send(Err(error))),
    });
    spawned.map_err(|error| failed(&error))?;
    let started = told.await.map_err(|_| failed(&"its thread has ended"))?;
    started.map_err(|error| failed(&error))
}

/// Why there is no such stack.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Client(#[from] client::Error),
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    Memory(#[from] tables::OutOfMemory),
}

fn open(path: &Path, ended: Ended) -> Result<(Keeper, Started), OpenError> {
    let link = Link::open(Some(path), NAME, |file| file)?;
    let queues = link.open_stack(&ASKED, |file| file)?;
    let (client, stack) = (link.number(), queues.number);
    let (jobs, coming) = mpsc::channel();
    let bell = Arc::new(Doorbell::new()?);
    let expected = Arc::new(AtomicUsize::new(0));
    let parking = Parking { jobs, bell: Arc::clone(&bell), expected: Arc::clone(&expected) };
    let keeper = Keeper::new(link, queues, (coming, bell, expected), ended)?;
    Ok((keeper, Started { parking, client, stack }))
}

/// What one without a thread was told.
#[cfg(test)]
pub(super) struct Told(mpsc::Receiver<Job>);

#[cfg(test)]
impl Told {
    /// How many connections in TIME-WAIT it was to forget since the last look.
    pub(super) fn forgotten(&self) -> usize {
        let forgotten = self.0.try_iter().map(|job| match job {
            Job::ForgetWaits(ends) => ends.len(),
            _ => 0,
        });
        forgotten.sum()
    }
}

#[cfg(test)]
impl Parking {
    /// One without a thread: nobody does what it is told.
    pub(super) fn without_thread() -> (Self, Told) {
        let (bell, (jobs, told)) = (Arc::new(Doorbell::new().unwrap()), mpsc::channel());
        (Self { jobs, bell, expected: Arc::default() }, Told(told))
    }
}

impl Parking {
    /// To be called before a connection's packets are sent here, and to be kept until it is there.
    pub(super) fn expect(&self) -> Expected {
        self.expected.fetch_add(1, Ordering::Release);
        Expected(Arc::clone(&self.expected))
    }

    /// Takes a connection.
    pub(super) async fn import(&self, arrival: Arrival) -> Result<ConnectionId, ImportError> {
        let (reply, answer) = oneshot::channel();
        self.tell(Job::Import(arrival, reply));
        // Without a thread there is no room either.
        answer.await.unwrap_or(Err(ImportError::Full))
    }

    /// Gives a connection back.
    pub(super) async fn export(&self, connection: ConnectionId) -> Result<Departure, ExportError> {
        let (reply, answer) = oneshot::channel();
        self.tell(Job::Export(connection, reply));
        answer.await.unwrap_or(Err(ExportError::Gone))
    }

    /// Ends one that nobody wants any more, when all is sent.
    pub(super) fn close(&self, connection: ConnectionId) {
        self.tell(Job::Close(connection));
    }

    /// Resets one.
    pub(super) fn abort(&self, connection: ConnectionId) {
        self.tell(Job::Abort(connection));
    }

    /// Takes connections in TIME-WAIT.
    pub(super) fn wait_out(&self, waits: Vec<TimeWait>) {
        self.tell(Job::WaitOut(waits));
    }

    /// Forgets connections in TIME-WAIT between these ends.
    pub(super) fn forget_waits(&self, ends: Vec<Ends>) {
        self.tell(Job::ForgetWaits(ends));
    }

    /// Has it bring up to date what it shows of its connections.
    pub(super) fn show(&self) {
        self.tell(Job::Show);
    }

    fn tell(&self, job: Job) {
        // A thread that has ended has no connections.
        let _ = self.jobs.send(job);
        self.bell.ring();
    }
}
