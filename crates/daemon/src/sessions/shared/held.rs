//! How much data the connections and UDP sockets of processes on stack workers hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much it may be: bytes.
#[derive(Debug, Clone, Copy)]
pub(in crate::sessions) struct Most {
    pub(in crate::sessions) of_process: usize,
    /// Of all processes of a user.
    pub(in crate::sessions) of_user: usize,
}

/// What a process's connections and sockets hold. It counts for its user until this is dropped.
#[derive(Debug)]
pub(in crate::sessions) struct Held {
    /// Bytes that its stack holds. What others have given may be taken from it.
    stack: isize,
    /// Bytes with what lies beside the stack, as they count for the user.
    counted: usize,
    /// Those of all processes of the user, on all stack workers.
    all: Arc<AtomicUsize>,
    most: Most,
}

impl Held {
    /// Nothing yet. `all`: the user's.
    pub(in crate::sessions) fn new(all: Arc<AtomicUsize>, most: Most) -> Self {
        Self { stack: 0, counted: 0, all, most }
    }

    /// Whether nothing more is taken in for it.
    pub(super) fn is_full(&self) -> bool {
        usize::try_from(self.stack).is_ok_and(|held| held > self.most.of_process)
            || self.all.load(Ordering::Relaxed) > self.most.of_user
    }

    /// How much datagrams that wait to be received may have, which have `held` now: a quarter of what the process may, as long as
    /// its user's processes have not come to half. So those that nobody reads keep no connection from sending.
    pub(super) fn of_datagrams(&self, held: usize) -> usize {
        let left = (self.most.of_user / 2).saturating_sub(self.all.load(Ordering::Relaxed));
        (self.most.of_process / 4).min(held + left)
    }

    /// Its stack holds so much more, and so much lies `beside` it. Gives whether nothing more is taken from the process: it is so
    /// from half on, because acknowledgments are to be taken in.
    pub(super) fn note(&mut self, more: isize, beside: usize) -> bool {
        self.stack += more;
        let held = usize::try_from(self.stack).unwrap_or(0) + beside;
        let all = self.count(held);
        held > self.most.of_process / 2 || all > self.most.of_user / 2
    }

    /// Gives what all processes of the user hold.
    fn count(&mut self, held: usize) -> usize {
        let more = held.wrapping_sub(std::mem::replace(&mut self.counted, held));
        if more == 0 {
            // As in most rounds: the line that all stack workers share is not written.
            return self.all.load(Ordering::Relaxed);
        }
        self.all.fetch_add(more, Ordering::Relaxed).wrapping_add(more)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.count(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_have_a_quarter_as_long_as_their_user_has_not_come_to_half() {
        let all: Arc<AtomicUsize> = Arc::default();
        let most = Most { of_process: 400, of_user: 600 };
        let held = || Held::new(Arc::clone(&all), most);
        let (mut one, mut two) = (held(), held());
        assert_eq!((one.of_datagrams(0), two.of_datagrams(0)), (100, 100));
        // With as many as it may have, a process can still send.
        assert!(!one.note(0, 100) && !two.note(0, 100));
        assert_eq!((one.of_datagrams(100), two.of_datagrams(100)), (100, 100));
        assert!(!one.note(90, 100));
        assert_eq!((one.of_datagrams(100), two.of_datagrams(70)), (100, 80), "290 of 300");
        one.note(200, 100);
        assert_eq!((one.of_datagrams(100), two.of_datagrams(70)), (100, 70), "no more than waits");
        drop(one);
        assert_eq!(two.of_datagrams(70), 100);
    }

    #[test]
    fn a_users_processes_are_bounded_together() {
        let all: Arc<AtomicUsize> = Arc::default();
        let most = Most { of_process: 100, of_user: 150 };
        let held = || Held::new(Arc::clone(&all), most);
        let (mut one, mut two) = (held(), held());
        assert!(!one.note(50, 0) && !two.note(25, 0));
        assert!(two.note(0, 1) && one.note(0, 0), "more than half of what their user may have");
        assert!(!two.note(0, 0) && two.note(74, 0), "99");
        assert!(!one.is_full() && !two.is_full());
        assert!(two.note(0, 2) && one.is_full() && two.is_full(), "151 of both");
        drop(two);
        assert!(!one.is_full() && !one.note(0, 0), "they count no more");
        assert!(one.note(1, 0) && !one.is_full(), "more than half of its own");
        assert!(one.note(50, 0) && one.is_full(), "101");
        assert!(!one.note(-200, 0) && !one.is_full());
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
