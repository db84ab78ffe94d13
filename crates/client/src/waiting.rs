//! Sleeping until packets come or the daemon goes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shm::Doorbell;

use crate::{Channel, Error};

/// What becomes readable when the doorbell rings or the daemon is gone.
pub(crate) fn events(doorbell: &Doorbell, connection: &impl AsFd) -> Result<OwnedFd, Error> {
    let events = epoll::create(CreateFlags::CLOEXEC).map_err(Error::system("an epoll instance"))?;
    let add = |file: BorrowedFd<'_>, data, flags| {
        epoll::add(&events, file, EventData::new_u64(data), flags)
            .map_err(Error::system("waiting for a file of the daemon"))
    };
    add(doorbell.as_fd(), 0, EventFlags::IN)?;
    // Answers to questions are no events.
    add(connection.as_fd(), 1, EventFlags::RDHUP)?;
    Ok(events)
}

impl Channel {
    /// Waits until a packet comes, at most `longest` (none: for ever). Gives whether a packet waits; a signal may end
    /// it early.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], when nothing is left to receive.
    pub fn wait(&mut self, longest: Option<Duration>) -> Result<bool, Error> {
        if !self.arm() {
            return Ok(true);
        }
        let timeout = longest.map(|longest| Timespec {
            tv_sec: longest.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: longest.subsec_nanos().into(),
        });
        // An interrupted wait is a short one.
        let _ = poll(&mut [PollFd::new(&self.events, PollFlags::IN)], timeout.as_ref());
        self.disarm();
        if self.has_packets() {
            return Ok(true);
        }
        self.look_now()?;
        Ok(false)
    }

    /// Before waiting for [`as_fd`](AsFd::as_fd) in an event loop of the caller's own: tells the daemon to ring.
    /// `false`: a packet is there already, do not wait. [`receive`](Self::receive) takes it back.
    #[must_use]
    pub fn arm(&mut self) -> bool {
        self.armed = true;
        for pair in &self.pairs {
            pair.receive.sleeps().announce();
        }
        if self.has_packets() {
            self.disarm();
            return false;
        }
        true
    }

    /// The daemon need not ring any more.
    pub(crate) fn disarm(&mut self) {
        self.armed = false;
        for pair in &self.pairs {
            pair.receive.sleeps().withdraw();
        }
        self.doorbell.clear();
    }
}

impl AsFd for Channel {
    /// To wait for: an epoll instance that is readable when packets came after [`arm`](Self::arm), or when the daemon is
    /// gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
