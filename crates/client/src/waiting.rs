//! Sleeping until packets come or the daemon goes.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{Channel, Error};

impl Channel {
    /// Waits until a packet comes, at most `longest` (none: for ever). Gives whether a packet waits; a signal may end
    /// it early.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], when nothing is left to receive; [`Error::Forked`].
    pub fn wait(&mut self, longest: Option<Duration>) -> Result<bool, Error> {
        self.check_process()?;
        let until = longest.and_then(|longest| Instant::now().checked_add(longest));
        loop {
            if !self.arm() {
                return Ok(true);
            }
            let rung = self.sleep(until);
            self.disarm();
            if self.has_packets() {
                return Ok(true);
            }
            self.look_now()?;
            // A ring that came late, for what was seen before, ends no wait.
            if !rung {
                return Ok(false);
            }
        }
    }

    /// Waits until a packet to be sent finds room again, at most `longest` (none: for ever): after
    /// [`Error::Full`]. Gives whether there is room for one; a signal may end it early. Who waits for packets too
    /// has to [`arm`](Self::arm) again.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Forked`].
    pub fn wait_for_room(&mut self, longest: Option<Duration>) -> Result<bool, Error> {
        self.check_process()?;
        if self.armed {
            // Both wait for the same doorbell.
            self.disarm();
        }
        let until = longest.and_then(|longest| Instant::now().checked_add(longest));
        loop {
            self.pairs.iter().for_each(|pair| pair.transmit.sleeps().announce());
            let rung = self.has_room() || self.sleep(until);
            self.pairs.iter().for_each(|pair| pair.transmit.sleeps().withdraw());
            self.doorbell.clear();
            if self.has_room() {
                return Ok(true);
            }
            self.look_now()?;
            if !rung {
                return Ok(false);
            }
        }
    }

    /// Whether a packet finds room at any worker.
    fn has_room(&self) -> bool {
        self.pairs.iter().any(|pair| pair.transmit.has_room())
    }

    /// Until something rings or the daemon goes; `false` when the time is over, or a signal came.
    fn sleep(&self, until: Option<Instant>) -> bool {
        let timeout = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            let tv_sec = left.as_secs().try_into().unwrap_or(i64::MAX);
            Timespec { tv_sec, tv_nsec: left.subsec_nanos().into() }
        });
        let mut polled = [PollFd::new(&self.events, PollFlags::IN)];
        poll(&mut polled, timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Before waiting for [`as_fd`](AsFd::as_fd) in an event loop of the caller's own: tells the daemon to ring.
    /// `false`: a packet is there already, do not wait; or this is a forked child, as [`receive`](Self::receive) says,
    /// which takes it back.
    #[must_use]
    pub fn arm(&mut self) -> bool {
        if !self.is_ours() {
            return false;
        }
        self.armed = true;
        for pair in &mut self.pairs {
            pair.give_back();
            pair.sleeps().announce();
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
            pair.sleeps().withdraw();
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
