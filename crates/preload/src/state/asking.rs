//! The state, for steps in between which the daemon or its stack worker is asked.

use std::ops::DerefMut;
use std::sync::Arc;
use std::time::Duration;

use client::session::Link;
use host::Errno;

use super::State;
use crate::sockets::Sockets;
use crate::{report, uncancelled};

/// The state, as a thread has it that asks.
pub(crate) trait Asks: DerefMut<Target = State> + Sized {
    /// Makes a call that asks the stack's worker once at most.
    fn ask<T>(
        self,
        asked: impl FnMut(&mut Sockets) -> Result<T, Errno>,
    ) -> (Self, Result<T, Errno>);

    /// Asks the daemon about this process's stack. `None`: it gives nothing, or is not this process's any more.
    fn ask_daemon<T>(self, question: impl FnOnce(&Link, u32) -> Option<T>) -> (Self, Option<T>);

    /// Waits for so long, or until a signal comes.
    fn pause(self, time: Duration) -> Self;
}

/// Nobody else has it meanwhile.
impl Asks for &mut State {
    fn ask<T>(
        self,
        mut asked: impl FnMut(&mut Sockets) -> Result<T, Errno>,
    ) -> (Self, Result<T, Errno>) {
        let done = asked(&mut self.sessions);
        (self, done)
    }

    fn ask_daemon<T>(self, question: impl FnOnce(&Link, u32) -> Option<T>) -> (Self, Option<T>) {
        let answer = question(&self.attachment.link, self.attachment.number());
        (self, answer)
    }

    fn pause(self, time: Duration) -> Self {
        uncancelled::pause(time);
        self
    }
}

/// A range more of local ports. Gives whether there is one.
pub(crate) fn lease<S: Asks>(state: S) -> (S, bool) {
    let (state, leased) = state.ask_daemon(|link, stack| {
        let leased = link.lease(stack, None);
        leased.inspect_err(|error| report::say(&error.to_string())).ok()
    });
    let Some(range) = leased else { return (state, false) };
    let link = Arc::clone(&state.attachment.link);
    let (mut state, _) = state.ask(|sessions| {
        sessions.add_ports(range.first, range.count);
        Ok(())
    });
    if !Arc::ptr_eq(&link, &state.attachment.link) {
        // Another daemon has come, of which they are not leased.
        state.sessions.remove_ports(range.first);
    }
    (state, true)
}
