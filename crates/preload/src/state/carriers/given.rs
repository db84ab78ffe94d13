//! Sessions that were given away, and that an epoll instance of this process watches still. It hears only of sessions that are here: one
//! that nobody uses any more comes back.

use std::collections::HashMap;
use std::ffi::c_int;
use std::time::Duration;

use host::Mask;
use shm::session::CarrierId;

use super::{State, carried_by};
use crate::address::id;
use crate::kinds::{self, Kind};

/// The descriptors of each, by its carrier.
#[derive(Debug, Default)]
pub(in crate::state) struct Given(HashMap<CarrierId, Vec<c_int>>);

impl Given {
    /// The application has closed a descriptor.
    pub(super) fn forget(&mut self, fd: c_int) {
        self.0.retain(|_, descriptors| {
            descriptors.retain(|other| *other != fd);
            !descriptors.is_empty()
        });
    }
}

impl State {
    /// A session that had these descriptors was given away.
    pub(super) fn note_given(&mut self, named: CarrierId, mut descriptors: Vec<c_int>) {
        descriptors.retain(|fd| self.waiters.is_watched(id(*fd)));
        if !descriptors.is_empty() {
            self.given.0.insert(named, descriptors);
        }
    }

    /// Its descriptors that are watched while it is elsewhere.
    fn missed(&self, named: CarrierId) -> Vec<c_int> {
        let all = self.given.0.get(&named).into_iter().flatten().copied();
        let is_missed = |fd: &c_int| {
            kinds::get(*fd) == Kind::Elsewhere
                && self.waiters.is_watched(id(*fd))
                && carried_by(*fd, Duration::ZERO) == Some(named)
        };
        all.filter(is_missed).collect()
    }

    /// The daemon has it, and nobody asks for it.
    pub(super) fn come_back(&mut self, named: CarrierId) {
        let has_come =
            self.missed(named).first().is_some_and(|fd| self.fetch(*fd) == Kind::Session);
        if !has_come {
            self.lose(named);
        }
    }

    /// It has come back at one of its descriptors. Who has waited for it before, by whichever, waits again.
    pub(super) fn returned(&mut self, fd: c_int, named: CarrierId) {
        self.waiters.halves.forget(id(fd));
        let ready = self.sessions.mask(id(fd));
        self.waiters.tell(id(fd), ready);
        let others = self.missed(named);
        self.given.0.remove(&named);
        for other in others {
            self.fetch(other);
        }
    }

    /// A session of this process has one more descriptor, by which somebody may have waited for it before.
    pub(super) fn joined(&mut self, fd: c_int, own: c_int) {
        // It may have been taken for lost, which the next session with this number is not.
        self.waiters.halves.forget(id(fd));
        if self.waiters.is_watched(id(fd)) {
            let ready = self.sessions.mask(id(own));
            self.waiters.transfer((id(fd), fd), id(own), ready);
        }
    }

    /// It is lost with the process that had it: whoever watches it finds that out with the next call about it.
    pub(super) fn lose(&mut self, named: CarrierId) {
        let missed = self.missed(named);
        self.given.0.remove(&named);
        for fd in missed {
            self.waiters.halves.lose(id(fd));
            self.waiters.tell(id(fd), Mask::ALL);
        }
    }

    /// All are lost: the daemon that knew them is gone.
    pub(in crate::state) fn lose_given(&mut self) {
        let all: Vec<CarrierId> = self.given.0.keys().copied().collect();
        all.into_iter().for_each(|named| self.lose(named));
    }
}
