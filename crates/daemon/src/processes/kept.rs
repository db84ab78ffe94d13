//! Connections on which nothing is said any more: what counts is that somebody holds the other end.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::net::{Shutdown, shutdown};
use tokio::net::unix::pipe::Receiver;
use tokio::task::yield_now;

/// Ends that are seen at once.
const BURST: usize = 64;

/// What is done when nobody holds the other end any more.
type Gone = Box<dyn FnOnce() + Send>;

/// All such connections of a user.
pub(super) struct Kept {
    arrivals: OwnedFd,
    list: Mutex<List>,
}

/// By number.
#[derive(Default)]
struct List {
    last: u64,
    kept: HashMap<u64, (OwnedFd, Gone)>,
}

impl Kept {
    pub(super) fn new() -> io::Result<Self> {
        let arrivals = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { arrivals, list: Mutex::default() })
    }

    fn with<R>(&self, act: impl FnOnce(&mut List) -> R) -> R {
        act(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.with(|list| list.kept.is_empty())
    }

    /// Keeps a connection. Who holds the other end can send nothing more on it.
    pub(super) fn keep(&self, socket: OwnedFd, gone: impl FnOnce() + Send + 'static) {
        // What was sent before is never looked at, and goes with the socket.
        let deaf = shutdown(&socket, Shutdown::Read);
        let refused = self.with(|list| {
            list.last += 1;
            let number = list.last;
            // A hang-up is told without being asked for.
            let added = deaf.and_then(|()| {
                let data = EventData::new_u64(number);
                epoll::add(&self.arrivals, &socket, data, EventFlags::empty())
            });
            if added.is_err() {
                return Some((socket, gone));
            }
            list.kept.insert(number, (socket, Box::new(gone)));
            None
        });
        if let Some((socket, gone)) = refused {
            drop(socket);
            gone();
        }
    }

    /// Takes out those that nobody holds any more. Gives whether there were any.
    fn run(&self) -> bool {
        let mut events = [MaybeUninit::uninit(); BURST];
        let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let ended: Vec<u64> = match epoll::wait(&self.arrivals, &mut events, Some(&none)) {
            Ok((ended, _)) => ended.iter().map(|event: &Event| event.data.u64()).collect(),
            Err(_) => Vec::new(),
        };
        let found = !ended.is_empty();
        for number in ended {
            // It is closed when nobody waits for the list.
            if let Some((socket, gone)) = self.with(|list| list.kept.remove(&number)) {
                drop(socket);
                gone();
            }
        }
        found
    }

    /// Does so for ever.
    ///
    /// Errors: the runtime cannot wait for it.
    pub(super) async fn serve(&self) -> io::Result<()> {
        // The runtime waits for an epoll instance as it does for a pipe.
        let arrivals = self.arrivals.as_fd().try_clone_to_owned()?;
        let event = Receiver::from_owned_fd_unchecked(arrivals)?;
        loop {
            event.readable().await?;
            if self.run() {
                yield_now().await;
                continue;
            }
            // Nothing is left: the runtime forgets that there was something.
            let nothing = || -> io::Result<()> { Err(io::ErrorKind::WouldBlock.into()) };
            let _ = event.try_io(nothing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    #[test]
    fn the_last_copy_of_the_other_end_counts() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let kept = Arc::new(Kept::new().unwrap());
            let served = Arc::clone(&kept);
            tokio::spawn(async move { served.serve().await });
            let gone = Arc::new(AtomicUsize::new(0));
            let mut theirs = Vec::new();
            for _ in 0..3 * BURST {
                let (ours, their) = pair();
                send(&ours, b"the reply", SendFlags::empty()).unwrap();
                let gone = Arc::clone(&gone);
                kept.keep(ours, move || {
                    gone.fetch_add(1, Ordering::Relaxed);
                });
                theirs.push(their);
            }
            let copy = theirs[0].try_clone().unwrap();
            assert!(send(&copy, b"talk", SendFlags::NOSIGNAL).is_err(), "nobody listens");
            let wait = async |wanted: usize| {
                for _ in 0..2000 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    if gone.load(Ordering::Relaxed) >= wanted {
                        break;
                    }
                }
                gone.load(Ordering::Relaxed)
            };
            theirs.pop();
            assert_eq!(wait(1).await, 1);
            theirs.clear();
            assert_eq!(wait(3 * BURST - 1).await, 3 * BURST - 1);
            assert!(!kept.is_empty(), "one has a copy");
            drop(copy);
            assert_eq!(wait(3 * BURST).await, 3 * BURST);
            assert!(kept.is_empty());
        });
    }
}
