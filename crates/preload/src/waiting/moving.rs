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
        self.move_watches(id, new, |watch| watch.fd == fd);
        self.tell(new, now);
    }

    /// The same for all of a session that has its number no longer, by whichever descriptors.
    pub(crate) fn transfer_all(&mut self, id: Id, new: Id, now: Mask) {
        self.move_watches(id, new, |_| true);
        self.tell(new, now);
    }

    fn move_watches(&mut self, id: Id, new: Id, goes: impl FnMut(&Watch) -> bool) {
        if id == new {
            return;
        }
        let watches = std::mem::take(self.of(id));
        let (mut moved, kept): (Vec<Watch>, Vec<Watch>) = watches.into_iter().partition(goes);
        *self.of(id) = kept;
        moved.iter_mut().for_each(|watch| watch.queued = false);
        self.of(new).append(&mut moved);
    }
}
