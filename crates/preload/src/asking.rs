//! Changes of a socket in several steps, in between which the daemon or its stack worker is asked: others have the state meanwhile, but
//! who wants something of the same socket waits.

use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use client::Error;
use client::session::Link;
use host::Errno;

use crate::kinds::{self, Kind};
use crate::process::{Held, Shared};
use crate::sockets::Sockets;
use crate::state::{Asks, State};
use crate::{call, uncancelled};

/// The state of a thread that lets others have it while it asks.
pub(crate) struct Lending<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) state: Held<'a>,
}

impl Deref for Lending<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Lending<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Asks for Lending<'_> {
    fn ask<T>(
        self,
        asked: impl FnMut(&mut Sockets) -> Result<T, Errno>,
    ) -> (Self, Result<T, Errno>) {
        let Self { shared, state } = self;
        let (state, done) = call::ask(shared, state, asked);
        (Self { shared, state }, done)
    }

    fn ask_daemon<T>(self, question: impl FnOnce(&Link, u32) -> Option<T>) -> (Self, Option<T>) {
        let Self { shared, state } = self;
        let question = |link: &Link, stack| question(link, stack).ok_or(Error::DaemonGone);
        let (state, answer) = call::ask_daemon(shared, state, question);
        (Self { shared, state }, answer.ok())
    }

    fn pause(self, time: Duration) -> Self {
        let Self { shared, state } = self;
        let (state, ()) = state.lend(shared, || uncancelled::pause(time));
        Self { shared, state }
    }
}

/// Changes the socket at `fd`, which is of that kind. Gives what the steps give; `None`: another thread has made something else of it
/// before.
pub(crate) fn change<'a, T>(
    shared: &'a Shared,
    state: Held<'a>,
    (fd, kind): (c_int, Kind),
    steps: impl FnOnce(Lending<'a>) -> (Lending<'a>, T),
) -> (Held<'a>, Option<T>) {
    let mut state = state.await_others(shared, fd);
    if kinds::get(fd) != kind {
        return (state, None);
    }
    let change = state.begin_change(fd);
    let (Lending { mut state, .. }, done) = steps(Lending { shared, state });
    if state.end_change(&change) {
        shared.tell_others();
    }
    (state, Some(done))
}
