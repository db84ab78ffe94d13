//! What a channel learns from the kernel: that its doorbell rings, and that the daemon has gone.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shm::Doorbell;

use crate::Error;

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

/// Whether the daemon has dropped its end of the doorbell, and with it the queues.
pub(crate) fn is_hung_up(doorbell: &Doorbell) -> bool {
    let mut polled = [PollFd::new(doorbell, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let found = poll(&mut polled, Some(&now)).unwrap_or(0);
    let [polled] = polled;
    found > 0 && polled.revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
