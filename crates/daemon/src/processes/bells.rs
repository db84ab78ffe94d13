//! A user's bells: rung and drained by that user's thread when a worker says so.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use graph::{ClientWake, Doorbell, Errand};
use shm::bell::{self, Caller, Drain};
use tokio::net::unix::pipe::Receiver;
use tokio::task::yield_now;

/// What an errand is about.
#[derive(Debug)]
enum Deed {
    Ring(Caller),
    Drain(Drain),
}

/// The ends of bells that a client is handed.
pub(crate) type Theirs = Vec<OwnedFd>;

/// The bells of one request, of a client's queues: as workers have them.
#[derive(Debug)]
pub(crate) struct QueueBells {
    /// By channel.
    pub(crate) channels: Vec<Errand>,
    /// By worker.
    pub(crate) wakes: Vec<ClientWake>,
}

/// All bells of one user. Its thread owns the sockets: no other sends to them, takes from them or closes them.
#[derive(Debug)]
pub(crate) struct Bells {
    doorbell: Arc<Doorbell>,
    errands: Mutex<Vec<(u64, Errand, Deed)>>,
    last: AtomicU32,
}

impl Bells {
    pub(super) fn new() -> io::Result<Self> {
        let doorbell = Arc::new(Doorbell::new()?);
        Ok(Self { doorbell, errands: Mutex::default(), last: AtomicU32::new(0) })
    }

    /// A number that no other request of this user has.
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed).into()
    }

    fn with<R>(&self, act: impl FnOnce(&mut Vec<(u64, Errand, Deed)>) -> R) -> R {
        act(&mut self.errands.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the bells of a request: `token` finds them again.
    pub(crate) fn make(
        &self,
        token: u64,
        channels: u16,
        workers: usize,
    ) -> io::Result<(QueueBells, Theirs)> {
        let mut made = QueueBells { channels: Vec::new(), wakes: Vec::new() };
        let (mut theirs, mut deeds) = (Vec::new(), Vec::new());
        for _ in 0..channels {
            let (caller, their) = bell::outward()?;
            let errand = Errand::new(Arc::clone(&self.doorbell));
            made.channels.push(errand.clone());
            theirs.push(their);
            deeds.push((token, errand, Deed::Ring(caller)));
        }
        for _ in 0..workers {
            let (watch, drain, their) = bell::inward()?;
            let errand = Errand::new(Arc::clone(&self.doorbell));
            made.wakes.push(ClientWake::new(watch, channels, errand.clone()));
            theirs.push(their);
            deeds.push((token, errand, Deed::Drain(drain)));
        }
        self.with(|errands| errands.append(&mut deeds));
        Ok((made, theirs))
    }

    /// Closes bells of queues that are no more.
    pub(crate) fn close(&self, gone: impl Fn(u64) -> bool) {
        let closed: Vec<_> = self.with(|errands| {
            let all = std::mem::take(errands).into_iter();
            let (closed, open) = all.partition(|(token, _, _)| gone(*token));
            *errands = open;
            closed
        });
        drop(closed);
    }

    /// Does what workers have called for. Gives whether there was something.
    fn run(&self) -> bool {
        self.with(|errands| {
            let done = errands.iter().filter(|(_, errand, deed)| {
                errand.fulfil(|| match deed {
                    Deed::Ring(caller) => caller.ring(),
                    Deed::Drain(drain) => drain.drain(),
                })
            });
            done.count() > 0
        })
    }

    /// Does so for ever.
    ///
    /// Errors: the runtime cannot wait for the doorbell.
    pub(super) async fn serve(&self) -> io::Result<()> {
        // The runtime waits for an eventfd as it does for a pipe.
        let event = Receiver::from_owned_fd_unchecked(self.doorbell.as_fd().try_clone_to_owned()?)?;
        loop {
            self.doorbell.announce();
            if self.run() {
                self.doorbell.awake();
                // Others of this user have their turn.
                yield_now().await;
                continue;
            }
            event.readable().await?;
            // Until it is empty: only then the runtime waits again.
            while event.try_read(&mut [0; 8]).is_ok_and(|count| count > 0) {}
            self.doorbell.awake();
        }
    }
}
