//! Sessions on a stack of the daemon's: the memory and the doorbells that a stack worker and the process share.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use shm::session::{OpenShared, Reply, Request, SharedOpened};
use shm::{Doorbell, Segment, SleepWord};

use crate::Error;
use crate::opened::{doorbell, nonsense};

use super::Link;
use super::link::unexpected;

/// What the library under a program's socket calls asks for where its stack runs on a stack worker. Sessions have descriptors as
/// numbers.
pub const SHARED: OpenShared = OpenShared { sessions: 1 << 14, chunks: 1 << 10 };

/// What a process shares with its stack worker.
#[derive(Debug)]
pub struct Shared {
    /// The stack's number, as in `millrace show stacks`.
    pub number: u32,
    /// The memory; `host::Plan` says what lies where.
    pub segment: Arc<Segment>,
    events: Doorbell,
    /// The way to the worker, to be taken out.
    pub knocker: Option<Knocker>,
}

/// Rings the worker, and waits for its answers.
#[derive(Debug)]
pub struct Knocker {
    answers: Doorbell,
    worker: Doorbell,
}

impl Knocker {
    /// Wakes the worker if this says that it sleeps.
    pub fn ring(&self, sleeps: SleepWord<'_>) {
        self.worker.ring(sleeps);
    }

    /// Waits until the worker rings for an answer, so long at most. `false`: there is nobody any more.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> bool {
        // The bell hangs up when the daemon has closed its end.
        self.answers.wait(&[self.answers.as_fd()], longest)
    }

    /// Waits so long, whether the worker rings or not: who waits for an answer hears that. `false`: there is nobody any more.
    #[must_use]
    pub fn pause(&self, time: Duration) -> bool {
        self.answers.pause(time)
    }
}

impl Shared {
    /// Takes back what was rung.
    pub fn clear(&self) {
        self.events.clear();
    }
}

impl AsFd for Shared {
    /// The doorbell of events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

impl Link {
    /// Opens sessions on a stack of the daemon's, and starts it. `keep` may move descriptors out of the way of others.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Memory`], [`Error::Nonsense`], [`Error::Forked`].
    pub fn open_shared(
        &self,
        asked: &OpenShared,
        keep: impl Fn(OwnedFd) -> OwnedFd,
    ) -> Result<Shared, Error> {
        let received = self.ask(&Request::OpenShared(*asked), &[])?;
        let Reply::SharedOpened(opened) = received.message else {
            return Err(unexpected("sessions"));
        };
        let SharedOpened { stack, .. } = opened;
        let mut files = received.files.into_iter().map(keep);
        let mut next = || files.next().ok_or_else(|| nonsense("a descriptor is missing"));
        let segment = Arc::new(Segment::from_file(next()?)?);
        let mut bell = || doorbell(next()?);
        let (answers, events, worker) = (bell()?, bell()?, bell()?);
        let knocker = Some(Knocker { answers, worker });
        self.start_stack(stack)?;
        Ok(Shared { number: stack, segment, events, knocker })
    }

    /// Where the daemon wants stacks to run.
    #[must_use]
    pub fn placement(&self) -> shm::session::Placement {
        self.welcome.placement
    }
}
