//! Showing the daemon sockets, to whose ports it steers.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use client::session::Link;
use shm::session::{Listen, Listening};

use super::State;
use super::asking::Asks;
use crate::report;

/// Shows the daemon a socket. Gives what it says of the listener.
pub(super) fn show(link: &Link, how: Listen, fd: c_int) -> Option<Listening> {
    // SAFETY: the application's, open during this call.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    match link.show(how, socket) {
        Ok(listening) => Some(listening),
        Err(error) => {
            report::say(&error.to_string());
            None
        }
    }
}

/// Shows the daemon a socket of this process, which nobody closes meanwhile. Gives the listener's number.
pub(super) fn prove<S: Asks>(mut state: S, fd: c_int, weight: u8) -> (S, Option<u32>) {
    loop {
        let given_back = state.given_back;
        let (after, shown) = state.ask_daemon(|link, stack| {
            let how = Listen { stack, weight, busy: false };
            show(link, how, fd)
        });
        let number = shown.map(|shown| shown.listener);
        if number.is_none() || after.given_back == given_back {
            return (after, number);
        }
        // It may have been this one that another thread has given back: nobody was known to have it.
        state = after;
    }
}

impl State {
    /// The daemon steers no more to a listener. Nobody else has the state until it has heard: who is shown the same port then would lose it.
    pub(super) fn give_back(&mut self, number: u32) {
        self.given_back += 1;
        let _ = self.attachment.link.unlisten(self.attachment.number(), number);
    }
}
