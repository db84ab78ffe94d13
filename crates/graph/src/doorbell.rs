//! Waking a thread that sleeps, without a system call for one that does not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::sleep_flag::SleepFlag;

/// An eventfd that senders ring only when its owner has said that it sleeps.
///
/// The owner says so ([`Self::announce`]), **looks at everything once more**, and only then blocks
/// ([`Self::wait`], or by waiting for [`AsFd`] to become readable). A sender makes its work visible
/// (pushes into a ring) and then rings. [`SleepFlag`] argues why no wake-up is lost.
#[derive(Debug)]
pub struct Doorbell {
    flag: SleepFlag,
    event: OwnedFd,
}

impl Doorbell {
    /// A doorbell whose owner is awake.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { flag: SleepFlag::new(), event })
    }

    /// Wakes the owner if it sleeps. Call it after the work was made visible.
    #[inline]
    pub fn ring(&self) {
        if self.flag.claim_wake() {
            // It fails only when the counter is full, and then the owner is woken anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// The owner is about to sleep; it must look for work once more after this.
    pub fn announce(&self) {
        self.flag.announce();
    }

    /// The owner is awake again.
    pub fn awake(&self) {
        self.flag.withdraw();
    }

    /// Takes back what was rung, after [`AsFd`] became readable ([`Self::wait`] does it itself).
    pub fn clear(&self) {
        // Nothing to read means that nothing was rung.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    /// Blocks until somebody rings, one of `others` becomes readable, or `longest` is over. Takes
    /// back what was rung. `false` when one of `others` is in error: it can't be waited for.
    pub fn wait(&self, others: &[BorrowedFd<'_>], longest: Duration) -> bool {
        let timeout = Timespec {
            tv_sec: longest.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: longest.subsec_nanos().into(),
        };
        let own = PollFd::new(&self.event, PollFlags::IN);
        let others = others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = std::iter::once(own).chain(others).collect();
        // An interrupted or failed wait is a short one: the caller looks for work either way.
        let _ = poll(&mut fds, Some(&timeout));
        if fds.first().is_some_and(|own| !own.revents().is_empty()) {
            self.clear();
        }
        let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        !fds.iter().any(|fd| fd.revents().intersects(broken))
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn rings_only_for_a_sleeper() {
        let bell = Doorbell::new().unwrap();
        bell.ring();
        let mut count = [0; 8];
        assert!(rustix::io::read(&bell, &mut count).is_err(), "nobody slept, nothing was rung");
        bell.announce();
        bell.ring();
        bell.ring();
        assert_eq!(rustix::io::read(&bell, &mut count), Ok(8));
        assert_eq!(u64::from_ne_bytes(count), 1, "one sleep, one ring");
    }

    #[test]
    fn another_event_ends_the_wait_and_a_broken_one_is_told() {
        let (bell, other) = (Doorbell::new().unwrap(), Doorbell::new().unwrap());
        other.announce();
        other.ring();
        assert!(bell.wait(&[other.as_fd()], Duration::from_secs(3600)));
        let (left, right) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(right);
        assert!(!bell.wait(&[left.as_fd()], Duration::from_secs(3600)));
    }

    #[test]
    fn every_push_is_seen_by_a_sleeper_without_a_timer() {
        let (bell, pushed) = (Arc::new(Doorbell::new().unwrap()), Arc::new(AtomicU64::new(0)));
        let sender = {
            let (bell, pushed) = (Arc::clone(&bell), Arc::clone(&pushed));
            std::thread::spawn(move || {
                for n in 1..=20_000 {
                    pushed.store(n, Ordering::Release);
                    bell.ring();
                }
            })
        };
        // A lost wake-up would leave this loop asleep for an hour.
        while pushed.load(Ordering::Acquire) < 20_000 {
            bell.announce();
            if pushed.load(Ordering::Acquire) < 20_000 {
                bell.wait(&[], Duration::from_secs(3600));
            }
            bell.awake();
        }
        sender.join().unwrap();
    }
}
