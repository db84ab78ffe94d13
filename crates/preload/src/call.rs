//! A call that may wait in a session.

use std::cell::Cell;
use std::ffi::c_int;

use crate::process::Shared;
use crate::state::State;

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

    /// It goes on with the session at another descriptor.
    pub(crate) fn moved(&self, state: &mut State) {
        if let Some(own) = self.own.take() {
            state.release(own);
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own.get() {
            self.shared.lock().release(own);
        }
    }
}
