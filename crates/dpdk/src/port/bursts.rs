//! Bursts that are under way, for drivers that take memory down while others read it.
//!
//! `net_memif` unmaps what it shares with a peer that has gone, in DPDK's interrupt thread and without looking at the port's
//! own threads (22.11, 24.11: `memif_disconnect`). It marks the port as disconnected first, and a burst that begins after
//! that touches nothing; so it is enough that the interrupt thread waits for bursts that began before. It does in `munmap`,
//! of which the shim has one of its own.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long to sleep between two looks at a burst, which takes microseconds unless its thread waits for a core.
const PAUSE: Duration = Duration::from_micros(20);

/// The bursts of all queues that have any.
static ALL: Mutex<Vec<Weak<AtomicU64>>> = Mutex::new(Vec::new());

/// The bursts of a queue: counts their beginnings and ends, so that it is odd during one.
#[derive(Debug)]
pub(super) struct Bursts(Arc<AtomicU64>);

impl Bursts {
    pub(super) fn new() -> Self {
        let count = Arc::new(AtomicU64::new(0));
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&count));
        Self(count)
    }

    /// Runs one. The driver's mark is read after this has been counted. Out of the way of the other drivers' bursts.
    #[cold]
    #[inline(never)]
    pub(super) fn run<T>(&mut self, burst: impl FnOnce() -> T) -> T {
        let begun = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(begun, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let done = burst();
        self.0.store(begun.wrapping_add(1), Ordering::Release);
        done
    }
}

/// Waits for the end of bursts that have begun; not for those that begin meanwhile.
#[unsafe(no_mangle)]
extern "C" fn millrace_wait_for_bursts() {
    fence(Ordering::SeqCst);
    let all: Vec<Arc<AtomicU64>> = {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    };
    for count in all {
        let begun = count.load(Ordering::Acquire);
        while begun % 2 == 1 && count.load(Ordering::Acquire) == begun {
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_end_of_a_burst_is_waited_for_and_no_other() {
        millrace_wait_for_bursts();
        let mut bursts = Bursts::new();
        let mut goes_on = || {
            let (done, over) = channel();
            let waiter = bursts.run(|| {
                let waiter = std::thread::spawn(move || {
                    millrace_wait_for_bursts();
                    done.send(()).unwrap();
                });
                assert!(over.recv_timeout(Duration::from_millis(50)).is_err(), "not yet");
                waiter
            });
            // Another has begun before the waiter looked again.
            let told = bursts.run(|| over.recv_timeout(Duration::from_secs(1)).is_ok());
            waiter.join().unwrap();
            told
        };
        // A waiter that begins only during the second rightly waits for that one.
        assert!((0..20).any(|_| goes_on()), "it waits for others too");
        drop(bursts);
        millrace_wait_for_bursts();
    }
}
