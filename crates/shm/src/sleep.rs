//! The word behind a doorbell: 'I sleep, ring'.

use crate::sync::{AtomicU32, Ordering, fence};

/// Whether the owner of a doorbell sleeps: a word that owner and senders share.
///
/// Why no wake-up is lost: the owner stores the word, fences, then looks for work; a sender makes
/// work visible, fences, then loads the word. Both fences are sequentially consistent, so one
/// comes first. If the owner's does, the sender's load sees the word and it rings; if the sender's
/// does, the owner's look sees the work and it does not sleep. Either may happen as well as the
/// other (one wake-up too many), but never neither.
///
/// A hostile side can keep the word set or clear: it costs a system call for each burst, or its own
/// wake-up.
#[derive(Debug, Clone, Copy)]
pub struct SleepWord<'a>(pub(crate) &'a AtomicU32);

#[cfg(not(loom))]
impl<'a> SleepWord<'a> {
    /// The word that owner and senders share.
    #[must_use]
    pub fn new(word: &'a AtomicU32) -> Self {
        Self(word)
    }
}

impl SleepWord<'_> {
    /// The owner will sleep unless it now finds work.
    pub fn announce(self) {
        self.0.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The owner does not sleep any more.
    pub fn withdraw(self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether the sender has to wake the owner: true for one sender per sleep.
    #[inline]
    #[must_use]
    pub fn claim_wake(self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::AcqRel) != 0
    }
}

#[cfg(test)]
#[cfg(loom)]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// The owner sleeps iff it saw no work after announcing; then some sender must have rung.
    fn no_lost_wake_up(senders: usize) {
        loom::model(move || {
            let word = Arc::new(AtomicU32::new(0));
            let work: Vec<_> = (0..senders).map(|_| Arc::new(AtomicU32::new(0))).collect();
            let rung = Arc::new(AtomicU32::new(0));
            let threads: Vec<_> = work
                .iter()
                .map(|work| {
                    let (word, work, rung) = (word.clone(), work.clone(), rung.clone());
                    thread::spawn(move || {
                        // As a queue's push does.
                        work.store(1, Ordering::Release);
                        if SleepWord(&word).claim_wake() {
                            rung.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            SleepWord(&word).announce();
            // A look that finds only part of the work must not lose the rest either.
            let seen: u32 = work.iter().map(|work| work.load(Ordering::Acquire)).sum();
            for thread in threads {
                thread.join().unwrap();
            }
            let rung = rung.load(Ordering::Relaxed);
            if seen < senders as u32 {
                assert_eq!(rung, 1, "the owner sleeps on work and nobody rang");
            }
            assert!(rung <= 1, "one sleep was ended twice");
        });
    }

    #[test]
    fn one_sender() {
        no_lost_wake_up(1);
    }

    #[test]
    fn two_senders() {
        no_lost_wake_up(2);
    }
}
