//! Sockets that threads change in several steps, in between which others have the state: who wants something of the same socket waits.

use std::ffi::c_int;
use std::sync::Arc;

use client::session::Link;

use super::State;

/// Which those are, and how many threads wait.
#[derive(Debug, Default)]
pub(crate) struct Changing {
    /// By their own descriptors.
    sockets: Vec<c_int>,
    pub(crate) followers: usize,
}

/// What a thread changes.
pub(crate) struct Change {
    /// By its own descriptor.
    pub(super) own: c_int,
    /// The daemon that it began with.
    pub(super) link: Arc<Link>,
}

impl State {
    /// Whether a thread changes the socket at `fd`.
    pub(crate) fn is_changing(&self, fd: c_int) -> bool {
        let sockets = &self.changing.sockets;
        !sockets.is_empty() && sockets.contains(&self.own(fd))
    }

    /// A thread is about to change the socket at `fd`, which no other does.
    pub(crate) fn begin_change(&mut self, fd: c_int) -> Change {
        let own = self.own(fd);
        self.changing.sockets.push(own);
        Change { own, link: Arc::clone(&self.attachment.link) }
    }

    /// It has. Gives whether others wait for that.
    pub(crate) fn end_change(&mut self, change: &Change) -> bool {
        let own = change.own;
        self.changing.sockets.retain(|other| *other != own);
        if !Arc::ptr_eq(&change.link, &self.attachment.link) {
            // A daemon that has come since has heard of some of the steps, and maybe in another order.
            self.renew_listener(own);
            self.renew_datagrams(own);
        }
        self.changing.followers > 0
    }
}
