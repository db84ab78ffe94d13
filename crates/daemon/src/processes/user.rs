//! What comes to a user's thread, and what all connections of a user share.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shm::attach::Refusal;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::Process;
use super::bells::Bells;
use super::judging::Judging;
use super::kept::Kept;
use super::rhythm::Rhythm;

/// One of so many places, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes one.
    pub(crate) fn of(taken: &Arc<AtomicUsize>) -> Self {
        taken.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(taken))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that was accepted, and whether there is a place for it.
pub(super) struct Coming {
    pub(super) socket: OwnedFd,
    pub(super) process: Process,
    pub(super) place: Result<Place, Refusal>,
    /// Its user's place among those who may not come, if that is why it is refused.
    pub(super) among: Option<Place>,
}

/// What all connections of a user share.
pub(crate) struct Shared {
    pub(crate) bells: Bells,
    pub(super) judging: Arc<Judging>,
    pub(super) kept: Kept,
    /// Memory is made and taken down by one connection at a time.
    pub(crate) turns: Arc<Semaphore>,
    /// What is asked of the control thread is asked one thing after the other.
    pub(crate) asking: Arc<Semaphore>,
    pub(super) pace: Pace,
}

impl Shared {
    /// Of a user who has no connections yet.
    ///
    /// Errors: no descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            bells: Bells::new()?,
            judging: Arc::default(),
            kept: Kept::new()?,
            turns: Arc::new(Semaphore::new(1)),
            asking: Arc::new(Semaphore::new(1)),
            pace: Pace::new(),
        })
    }

    /// Keeps a connection on which nothing is said any more, until nobody holds the other end.
    pub(crate) fn keep(&self, socket: OwnedFd, gone: impl FnOnce() + Send + 'static) {
        self.kept.keep(socket, gone);
    }
}

/// When a user has asked for something.
#[derive(Debug)]
pub(super) struct Pace(Mutex<Rhythm>);

impl Pace {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Rhythm::since(Instant::now())))
    }

    /// How long a request that comes at `now` has to wait, of so many a second.
    fn take(&self, now: Instant, requests: u32) -> Duration {
        let interval = Duration::from_secs(1) / requests.max(1);
        let mut rhythm = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = rhythm.wait(now, interval);
        rhythm.count(now, interval);
        wait
    }

    /// Waits until a request may be worked on, of so many a second.
    pub(super) async fn wait(&self, requests: u32) {
        let wait = self.take(Instant::now(), requests);
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::rhythm::BURST;

    #[test]
    fn requests_come_in_bursts_and_then_evenly() {
        let pace = Pace::new();
        let now = Instant::now() + Duration::from_secs(10);
        let waits: Vec<_> = (0..BURST + 3).map(|_| pace.take(now, 100).as_millis()).collect();
        assert!(waits[..BURST as usize].iter().all(|wait| *wait == 0));
        assert_eq!(waits[BURST as usize..], [10, 20, 30]);
        assert_eq!(pace.take(now + Duration::from_secs(10), 100).as_millis(), 0);
    }
}
