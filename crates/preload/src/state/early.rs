//! Sockets that are watched before they are connected, as NGINX watches those to its upstreams, or before they listen, as
//! Boost.Asio watches every socket: until then they are the kernel's, and so is what watches them.

use std::collections::HashMap;
use std::ffi::c_int;

use host::Id;
use libc::epoll_event;

use super::State;
use crate::kinds::{self, Kind};
use crate::real;

/// Who watches each of them: epoll instance and event.
#[derive(Debug, Default)]
pub(super) struct Early(HashMap<c_int, Vec<(c_int, epoll_event)>>);

impl State {
    /// The kernel has changed who watches a socket that is not connected.
    pub(crate) fn note_early(
        &mut self,
        (epoll, operation): (c_int, c_int),
        fd: c_int,
        event: Option<epoll_event>,
    ) {
        let watches = self.early.0.entry(fd).or_default();
        watches.retain(|(known, _)| *known != epoll);
        if operation != libc::EPOLL_CTL_DEL {
            watches.extend(event.map(|event| (epoll, event)));
        }
        if watches.is_empty() {
            self.early.0.remove(&fd);
        }
    }

    /// A new socket has the number of an old one.
    pub(crate) fn forget_early(&mut self, fd: c_int) {
        self.early.0.remove(&fd);
    }

    /// An epoll instance is closed: another may have its number.
    pub(super) fn forget_instance(&mut self, epoll: c_int) {
        self.early.0.values_mut().for_each(|watches| watches.retain(|(known, _)| *known != epoll));
    }

    /// A socket that was the kernel's is the stack's from now on: so is what watches it.
    pub(crate) fn take_over_watches(&mut self, fd: c_int) {
        for (epoll, event) in self.early.0.remove(&fd).unwrap_or_default() {
            // SAFETY: no memory is involved.
            unsafe { real::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
            self.watch_by(epoll, fd, event);
        }
    }

    /// A socket that was the kernel's listens in both worlds from now on: what watches it watches both.
    pub(crate) fn share_watches(&mut self, fd: c_int) {
        for (epoll, event) in self.early.0.remove(&fd).unwrap_or_default() {
            let Some((waiter, id)) = self.watch_by(epoll, fd, event) else { continue };
            self.waiters.leave_end_to_kernel(waiter, (id, fd));
            self.serve(fd);
        }
    }

    /// An epoll instance watches a session. Gives the place of its waiters, and what they wait for; `None`: it is closed.
    fn watch_by(&mut self, epoll: c_int, fd: c_int, event: epoll_event) -> Option<(usize, Id)> {
        if kinds::get(epoll) != Kind::Epoll {
            return None;
        }
        let waiter = self.waiters.epoll(epoll);
        let (id, now) = (self.id_of(fd), self.mask(fd));
        let _ = self.waiters.add(waiter, (id, fd), event, now);
        Some((waiter, id))
    }
}
