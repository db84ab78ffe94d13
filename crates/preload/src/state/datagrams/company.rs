//! What comes by the kernel is told to those who wait for a session.

use std::ffi::c_int;
use std::os::fd::AsRawFd;

use host::Mask;

use super::State;
use crate::internal::{self, Hidden};
use crate::waiting::World;
use crate::{real, uncancelled};

impl State {
    /// Has what comes by the kernel told to those who wait for the session.
    pub(crate) fn accompany(&mut self, fd: c_int) {
        let fd = self.own(fd);
        let Some(known) = self.datagrams.get_mut(&fd) else { return };
        if known.accompanied || known.peer == Some(World::Millrace) {
            return;
        }
        if self.company.is_none() {
            self.company = internal::epoll();
        }
        let Some(company) = &self.company else { return };
        let events = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: u64::from(fd.unsigned_abs()) };
        // SAFETY: an event.
        let done = unsafe {
            real::epoll_ctl(company.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event)
        };
        known.accompanied = done == 0;
        self.meet_company();
    }

    /// Tells those who wait what has come by the kernel. One system call, where there is anything to look at.
    pub(crate) fn meet_company(&mut self) {
        let Some(company) = self.company.as_ref().map(Hidden::as_raw_fd) else { return };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        loop {
            let (room, most) = (events.as_mut_ptr(), events.len() as c_int);
            // SAFETY: room for so many.
            let count = unsafe { uncancelled::epoll_look(company, room, most) };
            let count = usize::try_from(count).unwrap_or(0);
            for event in events.iter().take(count) {
                let (ready, id) = (Mask(event.events), host::Id(event.u64 as u32));
                self.waiters.halves.note(id, ready);
                self.waiters.tell(id, ready);
            }
            if count < events.len() {
                return;
            }
        }
    }

    /// Readable when something has come by the kernel for a session.
    pub(crate) fn company_bell(&self) -> Option<c_int> {
        self.company.as_ref().map(Hidden::as_raw_fd)
    }
}
