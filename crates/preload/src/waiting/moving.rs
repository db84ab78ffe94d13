//! Sessions that get other numbers, and who waits for them.

use std::ffi::c_int;

use host::{Id, Mask};

use super::{Waiters, Watch};

impl Waiters {
    /// A session has another number. `now`: what is ready, which is told again.
    pub(crate) fn rename(&mut self, id: Id, new: Id, now: Mask) {
        let mut watches = std::mem::take(self.of(id));
        watches.iter_mut().for_each(|watch| watch.queued = false);
        *self.of(new) = watches;
        self.tell(new, now);
    }

    /// One of a session's descriptors stands for what has another number from now on. `now`: what is ready there, which is told to
    /// those who wait for it.
    pub(crate) fn transfer(&mut self, (id, fd): (Id, c_int), new: Id, now: Mask) {
        if id != new {
            let watches = std::mem::take(self.of(id));
            let (mut moved, kept): (Vec<Watch>, Vec<Watch>) =
                watches.into_iter().partition(|watch| watch.fd == fd);
            *self.of(id) = kept;
            moved.iter_mut().for_each(|watch| watch.queued = false);
            self.of(new).append(&mut moved);
        }
        self.tell(new, now);
    }
}
