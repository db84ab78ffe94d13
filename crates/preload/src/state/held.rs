//! Calls that wait in a session: one that another thread closes meanwhile goes on until they return, as a file does.

use std::collections::HashMap;
use std::ffi::c_int;

use host::Lingering;
use libc::FD_CLOEXEC;

use super::State;
use crate::address::id;
use crate::kinds::{self, Kind};
use crate::real;

/// The sessions in which calls wait, by their own descriptors.
#[derive(Debug, Default)]
pub(super) struct Held(HashMap<c_int, Calls>);

#[derive(Debug, Default)]
struct Calls {
    count: usize,
    /// The application has closed its last descriptor.
    is_closed: bool,
}

/// What whoever closes a session waits for (`SO_LINGER`).
#[derive(Debug)]
pub(crate) enum Awaited {
    /// That the stack worker closes the session with this descriptor of its own, and says what is left to send. The session stays until
    /// it is [released](State::release).
    Worker(c_int),
    /// That the peer has all.
    Peer(Lingering),
}

impl State {
    /// A call is about to wait in a session. Gives the descriptor at which the session stays until it returns.
    pub(crate) fn retain(&mut self, fd: c_int) -> c_int {
        let own = self.own(fd);
        self.held.0.entry(own).or_default().count += 1;
        own
    }

    /// Whether calls wait in a session.
    pub(super) fn is_held(&self, own: c_int) -> bool {
        self.held.0.contains_key(&own)
    }

    /// Whether calls wait in a session that the application closes: then it ends when they return. Its number stays taken until
    /// then; a program that is started has it no more.
    pub(super) fn outlives_close(&mut self, own: c_int) -> bool {
        let Some(calls) = self.held.0.get_mut(&own) else { return false };
        calls.is_closed = true;
        if self.replaced.contains(&own) {
            return true;
        }
        kinds::set(own, Kind::Internal);
        // SAFETY: no memory is involved.
        unsafe { real::fcntl(own, libc::F_SETFD, FD_CLOEXEC.into()) };
        true
    }

    /// The application has closed a session, and waits for what that has left to send.
    pub(super) fn begin_end(&mut self, own: c_int) -> Option<Awaited> {
        let is_carried = self.carriers.contains_key(&own);
        if is_carried || !self.sessions.asks_to_close(id(own)) {
            return self.end_session(own).map(Awaited::Peer);
        }
        self.waiters.forget_session(id(own));
        self.held.0.entry(own).or_default().count += 1;
        self.outlives_close(own);
        Some(Awaited::Worker(own))
    }

    /// A call about a session returns.
    pub(crate) fn release(&mut self, own: c_int) {
        let Some(calls) = self.held.0.get_mut(&own) else { return };
        calls.count -= 1;
        if calls.count > 0 {
            return;
        }
        let is_closed = calls.is_closed;
        self.held.0.remove(&own);
        if is_closed {
            // Nobody is left who would wait for what lingers.
            let _ = self.end_session(own);
        }
    }
}
