//! Telling the daemon whether a listener gets its share of new connections, while others have the state.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use client::session::Link;

use super::{Listener, State};
use crate::address::id;
use crate::{clock, report};

/// Between two times that the daemon is told that a listener rests, at least: ns.
const SELDOM: u64 = 10_000_000;

/// What a thread tells the daemon of a listener.
pub(crate) struct Telling {
    /// Its own descriptor, which stays open meanwhile.
    fd: c_int,
    serves: bool,
    stack: u32,
    link: Arc<Link>,
}

impl Telling {
    /// Tells it. Gives the listener's number.
    pub(crate) fn tell(&self) -> Option<u32> {
        show(&self.link, (self.stack, u8::from(self.serves)), self.fd)
    }
}

/// Shows the daemon a socket, for a stack and with that weight. Gives the listener's number.
pub(super) fn show(link: &Link, (stack, weight): (u32, u8), fd: c_int) -> Option<u32> {
    // SAFETY: the application's, open during this call.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    match link.listen(stack, weight, socket) {
        Ok(listening) => Some(listening.listener),
        Err(error) => {
            report::say(&error.to_string());
            None
        }
    }
}

impl Listener {
    /// Whether the daemon is to be told that it serves.
    fn is_to_serve(&self) -> bool {
        self.wanted && !self.serves && self.number.is_some() && !self.telling
    }

    /// The same of that it rests, but not too often.
    fn is_to_rest(&self, now: u64) -> bool {
        self.serves && !self.wanted && now >= self.told + SELDOM && !self.telling
    }
}

impl State {
    /// The application takes connections from `fd`: new ones are for this process too. Gives whether the daemon is to be told.
    pub(crate) fn serve(&mut self, fd: c_int) -> bool {
        let fd = self.own(fd);
        let Some(listener) = self.listeners.get_mut(&fd) else { return false };
        listener.wanted = true;
        listener.is_to_serve()
    }

    /// The application has stopped waiting for connections at `fd`: new ones are for other processes, if there are any, as soon as
    /// the daemon is told.
    pub(crate) fn rest(&mut self, fd: c_int) {
        let fd = self.own(fd);
        if self.waiters.is_watched(id(fd)) {
            return;
        }
        if let Some(listener) = self.listeners.get_mut(&fd) {
            listener.wanted = false;
        }
    }

    /// A thread is about to tell the daemon of a listener, which nobody ends until it has. `None`: there is nothing to tell, or others
    /// do it.
    pub(crate) fn begin_telling(&mut self) -> Option<Telling> {
        let now = clock::now();
        let is_due = |listener: &Listener| listener.is_to_serve() || listener.is_to_rest(now);
        let (fd, listener) = self.listeners.iter_mut().find(|(_, listener)| is_due(listener))?;
        listener.telling = true;
        let (fd, serves) = (*fd, listener.wanted);
        let (stack, link) = (self.attachment.number(), Arc::clone(&self.attachment.link));
        Some(Telling { fd, serves, stack, link })
    }

    /// The daemon has answered with the listener's number.
    pub(crate) fn end_telling(&mut self, telling: &Telling, number: Option<u32>) {
        // A daemon that has come since was shown the listener as it was before.
        let is_same = Arc::ptr_eq(&telling.link, &self.attachment.link);
        if let Some(listener) = self.listeners.get_mut(&telling.fd) {
            listener.telling = false;
            if is_same {
                (listener.number, listener.serves) = (number, telling.serves);
                listener.told = clock::now();
            }
        }
        self.rest_or_work();
        if is_same {
            // What it has said meanwhile, no other thread has heard.
            self.heed();
        }
    }

    /// Whether a thread tells the daemon of the listener at `fd`.
    pub(crate) fn is_telling(&self, fd: c_int) -> bool {
        self.listeners.get(&self.own(fd)).is_some_and(|listener| listener.telling)
    }
}
