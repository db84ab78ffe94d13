//! A node's own view of something that the control thread replaces as a whole.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use crate::state::Published;

/// The newest value, at the price of one atomic load and a comparison per call.
pub(crate) struct Snapshot<T>(Cache<Newest<T>, Arc<T>>);

struct Newest<T>(Arc<Published<T>>);

impl<T> Deref for Newest<T> {
    type Target = ArcSwap<T>;

    #[inline]
    fn deref(&self) -> &ArcSwap<T> {
        self.0.newest()
    }
}

impl<T> Snapshot<T> {
    /// A view of what `shared` holds.
    #[must_use]
    pub(crate) fn of(shared: &Arc<Published<T>>) -> Self {
        Self(Cache::new(Newest(Arc::clone(shared))))
    }

    /// The newest value.
    #[inline]
    pub(crate) fn get(&mut self) -> &T {
        self.0.load()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{self, ThreadId};

    use super::*;

    /// Tells which thread frees it.
    struct Witness(u32, Sender<(u32, ThreadId)>);

    impl Drop for Witness {
        fn drop(&mut self) {
            self.1.send((self.0, thread::current().id())).unwrap();
        }
    }

    #[test]
    fn a_worker_frees_no_snapshot() {
        let (freed, all_freed) = channel();
        let value = |number| Witness(number, freed.clone());
        let shared = Arc::new(Published::new(value(0)));
        let (mut views, mut answers) = (Vec::new(), Vec::new());
        let mut workers = Vec::new();
        for _ in 0..3 {
            let (ask, asked) = channel::<()>();
            let (answer, answered) = channel();
            let mut view = Snapshot::of(&shared);
            let shared = Arc::clone(&shared);
            workers.push(thread::spawn(move || {
                for () in asked {
                    // For a moment, and until the next time.
                    let seen = [shared.load().0, view.get().0];
                    answer.send(seen).unwrap();
                }
            }));
            views.push(ask);
            answers.push(answered);
        }
        let look = |worker: usize| {
            views[worker].send(()).unwrap();
            answers[worker].recv().unwrap()
        };
        assert_eq!([0, 1, 2].map(look), [[0, 0]; 3]);
        for number in 1..10 {
            shared.store(Arc::new(value(number)));
            // The last of them lets go of the value before.
            assert_eq!([0, 1, 2].map(look), [[number, number]; 3]);
            assert_eq!(all_freed.try_recv().ok(), None, "nobody has it, and it is there");
            shared.reclaim();
            let own = thread::current().id();
            assert_eq!(all_freed.try_recv().ok(), Some((number - 1, own)));
        }
        // Of values that nobody has seen, none stays.
        (10..15).for_each(|number| shared.store(Arc::new(value(number))));
        assert_eq!(all_freed.try_iter().count(), 4, "10 to 13");
        drop(views);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        shared.reclaim();
        assert_eq!(all_freed.try_iter().count(), 1, "9");
    }
}
