//! Waking a client and being woken by it, through a thread that belongs to the client's user.
//!
//! What a worker touches here is the daemon's alone: memory, the doorbell of that thread, and an epoll instance. The thread
//! rings the client and drains what it has rung; it alone can be slowed by what the client does to its ends
//! ([`shm::bell`]).

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use shm::SleepWord;
use shm::bell::{RINGS, Watch};

use crate::Doorbell;

/// How an errand is: nothing is to be done, something is, and the thread is at it.
const DONE: u8 = 0;
const DUE: u8 = 1;
const BEGUN: u8 = 2;

/// Something that the user's thread is to do for a worker.
#[derive(Debug, Clone)]
pub struct Errand {
    state: Arc<AtomicU8>,
    thread: Arc<Doorbell>,
}

impl Errand {
    /// One of the thread that owns this doorbell.
    #[must_use]
    pub fn new(thread: Arc<Doorbell>) -> Self {
        Self { state: Arc::new(AtomicU8::new(DONE)), thread }
    }

    /// To be done.
    #[inline]
    pub fn call(&self) {
        self.state.store(DUE, Ordering::Release);
        self.thread.ring();
    }

    /// Rings the client if it sleeps. Gives whether it did.
    #[inline]
    pub fn ring(&self, sleeps: SleepWord<'_>) -> bool {
        let rings = sleeps.claim_wake();
        if rings {
            self.call();
        }
        rings
    }

    /// Whether the thread is not through with it yet.
    #[must_use]
    pub fn is_due(&self) -> bool {
        // Acquire: what was done is over.
        self.state.load(Ordering::Acquire) != DONE
    }

    /// Does it if it is to be done; called by the thread. Called for once more meanwhile, it is done again next time. Gives whether
    /// it was to be done.
    pub fn fulfil(&self, deed: impl FnOnce()) -> bool {
        // Nobody but the thread changes that it is due.
        if self.state.load(Ordering::Relaxed) != DUE {
            return false;
        }
        self.state.swap(BEGUN, Ordering::Acquire);
        deed();
        // Release: it is done. If it was called for meanwhile, that stays.
        let _ = self.state.compare_exchange(BEGUN, DONE, Ordering::Release, Ordering::Relaxed);
        true
    }
}

/// Wake-ups of a worker by one client: a second, and at once after a pause. Who rings more often, or shuts its end down
/// again and again, is looked at by the timer.
const WAKES: u64 = 20_000;
const SAVED: u64 = 64;

/// What wakes a worker for a client.
#[derive(Debug)]
pub struct ClientWake {
    watch: Watch,
    drain: Errand,
    /// Wake-ups since the last drain, and how many there may be.
    woken: u32,
    most: u32,
    /// When the next wake-up would be due if they came evenly: TSC cycles.
    due: u64,
    /// Whether the worker waits for it.
    listens: bool,
}

impl ClientWake {
    /// `channels`: as many rings may come for one sleep. `drain`: takes out what was rung.
    #[must_use]
    pub fn new(watch: Watch, channels: u16, drain: Errand) -> Self {
        let most = (RINGS / u32::from(channels).max(1)).max(1);
        Self { watch, drain, woken: 0, most, due: 0, listens: true }
    }

    /// The worker is about to sleep. `now`: TSC cycles. `false`: a ring may go unheard, because the client has woken it too often, or
    /// its bell may be full.
    pub fn arm(&mut self, now: u64) -> bool {
        let saved = now.wrapping_sub(self.due) as i64;
        self.listens = saved >= 0;
        self.listens && !self.may_be_full()
    }

    /// What becomes readable when the client rings, if it may.
    #[must_use]
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.listens.then(|| self.watch.as_fd())
    }

    /// Whether rings may be lost: of those that were told, the bell is not drained yet. The worker looks by the timer, too.
    #[must_use]
    pub fn may_be_full(&self) -> bool {
        self.drain.is_due()
    }

    /// Takes back what was rung. `now`: TSC cycles.
    pub fn clear(&mut self, now: u64) {
        if !self.watch.clear() {
            return;
        }
        let gap = dpdk::tsc_hz() / WAKES;
        let earliest = now.wrapping_sub(gap * SAVED);
        if (earliest.wrapping_sub(self.due) as i64) > 0 {
            self.due = earliest;
        }
        self.due = self.due.wrapping_add(gap);
        self.note_ring();
    }

    /// The same of a client that has given the worker something to do. That is bounded as work is, and waits for no timer however often
    /// it comes.
    pub fn clear_for_work(&mut self) {
        if self.watch.clear() {
            self.note_ring();
        }
    }

    fn note_ring(&mut self) {
        self.woken += 1;
        if self.woken >= self.most {
            self.woken = 0;
            self.drain.call();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendFlags, send};

    #[test]
    fn a_bell_is_drained_before_it_is_full() {
        let (watch, drain, theirs) = shm::bell::inward().unwrap();
        let thread = Arc::new(Doorbell::new().unwrap());
        let errand = Errand::new(thread);
        let mut wake = ClientWake::new(watch, 4, errand.clone());
        for sleep in 0..400_u32 {
            // Each of the client's channels rings for the same sleep.
            for _ in 0..4 {
                assert_eq!(send(&theirs, &[1], SendFlags::DONTWAIT), Ok(1), "sleep {sleep}");
            }
            wake.clear(u64::from(sleep) << 40);
            errand.fulfil(|| drain.drain());
        }
        assert!(!errand.is_due());
    }

    #[test]
    fn a_client_that_has_work_may_wake_a_worker_as_often_as_it_likes() {
        let (watch, drain, theirs) = shm::bell::inward().unwrap();
        let errand = Errand::new(Arc::new(Doorbell::new().unwrap()));
        let mut wake = ClientWake::new(watch, 1, errand.clone());
        let mut drained = 0;
        for _ in 0..1000 {
            assert!(wake.arm(1 << 50) && wake.event().is_some());
            assert_eq!(send(&theirs, &[1], SendFlags::DONTWAIT), Ok(1));
            wake.clear_for_work();
            if wake.may_be_full() {
                assert!(errand.fulfil(|| drain.drain()) && !wake.may_be_full());
                drained += 1;
            }
        }
        assert_eq!(drained, 1000 / RINGS);
    }

    #[test]
    fn a_worker_does_not_rely_on_a_bell_that_may_be_full() {
        let (watch, drain, theirs) = shm::bell::inward().unwrap();
        let errand = Errand::new(Arc::new(Doorbell::new().unwrap()));
        let mut wake = ClientWake::new(watch, 1, errand.clone());
        for _ in 0..RINGS {
            assert!(wake.arm(1 << 50));
            assert_eq!(send(&theirs, &[1], SendFlags::DONTWAIT), Ok(1));
            wake.clear_for_work();
        }
        assert!(!wake.arm(1 << 50) && wake.event().is_some());
        // It is not empty before the thread is through with it.
        assert!(errand.fulfil(|| assert!(!wake.arm(1 << 50))));
        assert!(wake.arm(1 << 50));
        drop(drain);
    }

    #[test]
    fn what_is_called_for_while_it_is_done_is_done_once_more() {
        let errand = Errand::new(Arc::new(Doorbell::new().unwrap()));
        assert!(!errand.fulfil(|| panic!("nobody has called")));
        errand.call();
        assert!(errand.fulfil(|| errand.call()) && errand.is_due());
        assert!(errand.fulfil(|| {}) && !errand.is_due());
    }

    #[test]
    fn who_wakes_a_worker_too_often_is_looked_at_by_the_timer() {
        let (watch, drain, theirs) = shm::bell::inward().unwrap();
        let errand = Errand::new(Arc::new(Doorbell::new().unwrap()));
        let mut wake = ClientWake::new(watch, 1, errand);
        let now = 1 << 50;
        let mut heard = 0;
        // It rings, and then shuts its end down without end: each time is told, and none fills anything.
        while wake.arm(now) && heard < 1000 {
            assert!(wake.event().is_some());
            let _ = send(&theirs, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            rustix::net::shutdown(&theirs, rustix::net::Shutdown::Write).unwrap();
            wake.clear(now);
            heard += 1;
        }
        assert_eq!(heard, SAVED + 1);
        assert!(wake.event().is_none());
        // After a second it may again.
        let later = now + dpdk::tsc_hz();
        assert!(wake.arm(later) && wake.event().is_some());
        drop(drain);
    }
}
