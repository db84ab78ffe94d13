//! The flag of a doorbell: 'I sleep, ring'.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Whether the owner of a doorbell sleeps.
///
/// Why no wake-up is lost: the owner stores the flag, fences, then looks for work; a sender makes
/// work visible, fences, then loads the flag. Both fences are sequentially consistent, so one
/// comes first. If the owner's does, the sender's load sees the flag and it rings; if the sender's
/// does, the owner's look sees the work and it does not sleep. Either may happen as well as the
/// other (one wake-up too many), but never neither.
#[derive(Debug)]
pub(crate) struct SleepFlag(AtomicBool);

impl SleepFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The owner will sleep unless it now finds work.
    pub(crate) fn announce(&self) {
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The owner does not sleep any more.
    pub(crate) fn withdraw(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the sender has to wake the owner: true for one sender per sleep.
    #[inline]
    pub(crate) fn claim_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
#[cfg(loom)]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    /// The owner sleeps iff it saw no work after announcing; then some sender must have rung.
    fn no_lost_wake_up(senders: usize) {
        loom::model(move || {
            let flag = Arc::new(SleepFlag::new());
            let work: Vec<_> = (0..senders).map(|_| Arc::new(AtomicUsize::new(0))).collect();
            let rung = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = work
                .iter()
                .map(|work| {
                    let (flag, work, rung) = (flag.clone(), work.clone(), rung.clone());
                    thread::spawn(move || {
                        // As a ring's push does.
                        work.store(1, Ordering::Release);
                        if flag.claim_wake() {
                            rung.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            flag.announce();
            // A look that finds only part of the work must not lose the rest either.
            let seen: usize = work.iter().map(|work| work.load(Ordering::Acquire)).sum();
            for thread in threads {
                thread.join().unwrap();
            }
            let rung = rung.load(Ordering::Relaxed);
            if seen < senders {
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
