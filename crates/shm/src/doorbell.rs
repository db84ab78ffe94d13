//! Waking a thread or process that sleeps, without a system call for one that does not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::sleep::SleepWord;

/// An eventfd that senders ring only when its owner has said in shared memory that it sleeps.
///
/// The owner says so ([`SleepWord::announce`]), **looks at everything once more**, and only then blocks
/// ([`Self::wait`], or by waiting for [`AsFd`] to become readable). A sender makes its work visible
/// (pushes into a queue) and then rings. [`SleepWord`] argues why no wake-up is lost.
#[derive(Debug)]
pub struct Doorbell {
    event: OwnedFd,
}

impl Doorbell {
    /// A doorbell; [`AsFd`] is what to hand over to the other side.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { event })
    }

    /// One that was handed over. Whatever kind of file it is, it is only written to and polled, eight
    /// bytes at a time; it is made not to block.
    ///
    /// # Errors
    /// When it can't be made so.
    pub fn from_file(event: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&event, true)?;
        Ok(Self { event })
    }

    /// Wakes the owner if it sleeps. Call it after the work was made visible.
    #[inline]
    pub fn ring(&self, sleeps: SleepWord<'_>) {
        if sleeps.claim_wake() {
            // It fails only when the counter is full, and then the owner is woken anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
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
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    #[test]
    fn rings_only_for_a_sleeper() {
        let (bell, word) = (Doorbell::new().unwrap(), AtomicU32::new(0));
        let sleeps = SleepWord::new(&word);
        bell.ring(sleeps);
        let mut count = [0; 8];
        assert!(rustix::io::read(&bell, &mut count).is_err(), "nobody slept, nothing was rung");
        sleeps.announce();
        bell.ring(sleeps);
        bell.ring(sleeps);
        assert_eq!(rustix::io::read(&bell, &mut count), Ok(8));
        assert_eq!(u64::from_ne_bytes(count), 1, "one sleep, one ring");
    }

    #[test]
    fn another_event_ends_the_wait_and_a_broken_one_is_told() {
        let (bell, other, word) =
            (Doorbell::new().unwrap(), Doorbell::new().unwrap(), AtomicU32::new(0));
        SleepWord::new(&word).announce();
        other.ring(SleepWord::new(&word));
        assert!(bell.wait(&[other.as_fd()], Duration::from_secs(3600)));
        let (left, right) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(right);
        assert!(!bell.wait(&[left.as_fd()], Duration::from_secs(3600)));
    }

    #[test]
    fn one_that_was_handed_over_never_blocks_its_sender() {
        // A hostile side may hand over a pipe that is full.
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        let (bell, word) = (Doorbell::from_file(writer).unwrap(), AtomicU32::new(0));
        for _ in 0..20_000 {
            SleepWord::new(&word).announce();
            bell.ring(SleepWord::new(&word));
        }
    }

    #[test]
    fn every_push_is_seen_by_a_sleeper_without_a_timer() {
        let shared = Arc::new((Doorbell::new().unwrap(), AtomicU32::new(0), AtomicU64::new(0)));
        let sender = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for n in 1..=20_000 {
                    shared.2.store(n, Ordering::Release);
                    shared.0.ring(SleepWord::new(&shared.1));
                }
            })
        };
        let (bell, word, pushed) = &*shared;
        // A lost wake-up would leave this loop asleep for an hour.
        while pushed.load(Ordering::Acquire) < 20_000 {
            SleepWord::new(word).announce();
            if pushed.load(Ordering::Acquire) < 20_000 {
                bell.wait(&[], Duration::from_secs(3600));
            }
            SleepWord::new(word).withdraw();
        }
        sender.join().unwrap();
    }
}
