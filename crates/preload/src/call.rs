//! Calls that may wait, and one that waits in a session, or for the answer of a stack worker or of the daemon.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::Arc;

use client::Error;
use client::session::Link;
use host::Errno;

use crate::errno;
use crate::kinds::{self, Kind};
use crate::process::{Held, Shared};
use crate::sockets::Sockets;
use crate::state::State;

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// A call that may wait begins: a thread that was cancelled ends here, whether the call would have to wait or not. It has nothing
/// that others wait for.
#[inline]
pub(crate) fn begins() {
    // SAFETY: no memory is involved.
    unsafe { pthread_testcancel() };
}

/// A call about a session, from before it takes the lock until after it has let go of it.
pub(crate) struct Call<'a> {
    shared: &'a Shared,
    own: Cell<Option<c_int>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, own: Cell::new(None) }
    }

    /// It is about to wait. Gives the descriptor at which the session stays until it returns.
    pub(crate) fn wait(&self, state: &mut State, fd: c_int) -> c_int {
        let own = self.own.get().unwrap_or_else(|| state.retain(fd));
        self.own.set(Some(own));
        own
    }

    /// Makes a call about the session at `fd`. Where it has to ask a stack worker, others have the state until that answers; then the
    /// same call is made again.
    #[inline]
    pub(crate) fn ask<T>(
        &self,
        state: Held<'a>,
        fd: c_int,
        call: impl FnMut(&mut Sockets) -> Result<T, Errno>,
    ) -> (Held<'a>, Result<T, Errno>) {
        let keep = |state: &mut State| {
            // What is the kernel's as well does not outlive its descriptor.
            if kinds::get(fd) == Kind::Session {
                self.wait(state, fd);
            }
        };
        ask_keeping(self.shared, state, keep, call)
    }

    /// It goes on with the session at another descriptor.
    pub(crate) fn moved(&self, state: &mut State) {
        if let Some(own) = self.own.take() {
            state.release(own);
        }
    }
}

/// The same of a call that is about no descriptor.
pub(crate) fn ask<'a, T>(
    shared: &'a Shared,
    state: Held<'a>,
    call: impl FnMut(&mut Sockets) -> Result<T, Errno>,
) -> (Held<'a>, Result<T, Errno>) {
    ask_keeping(shared, state, |_| {}, call)
}

/// The same, with what is to be done before others have the state.
#[inline]
fn ask_keeping<'a, T>(
    shared: &'a Shared,
    mut state: Held<'a>,
    keep: impl Fn(&mut State),
    mut call: impl FnMut(&mut Sockets) -> Result<T, Errno>,
) -> (Held<'a>, Result<T, Errno>) {
    state.sessions.begin_call();
    let mut done = call(&mut state.sessions);
    while let Some(question) = state.sessions.end_call() {
        keep(&mut state);
        let (after, answer) = state.lend(shared, || question.wait());
        state = after;
        state.sessions.resume_call(answer);
        done = call(&mut state.sessions);
    }
    (state, done)
}

/// Asks the daemon about this process's stack, while others have the state. An answer of a daemon that is not this process's any more is
/// none.
pub(crate) fn ask_daemon<'a, T>(
    shared: &'a Shared,
    state: Held<'a>,
    question: impl FnOnce(&Link, u32) -> Result<T, Error>,
) -> (Held<'a>, Result<T, Error>) {
    let (link, stack) = (Arc::clone(&state.attachment.link), state.attachment.number());
    let (mut state, answer) = state.lend(shared, || question(&link, stack));
    if !Arc::ptr_eq(&link, &state.attachment.link) {
        return (state, Err(Error::DaemonGone));
    }
    // What it has said meanwhile, no other thread has heard.
    state.heed();
    (state, answer)
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.get() {
            // What the call has said stays.
            let error = errno::get();
            self.shared.lock().release(own);
            errno::set(error);
        }
    }
}
