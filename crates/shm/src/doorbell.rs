//! Waking a thread or process that sleeps, without a system call for one that does not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};

use crate::sleep::SleepWord;

/// A file descriptor that senders ring only when its owner has said in shared memory that it sleeps: an
/// eventfd within a process, a pair of sockets between two.
///
/// Why not an eventfd between two: both sides would have one open file, and whether it blocks is a property
/// of that. A hostile side could make it block, and the next ring or clear of the other would wait for ever.
/// Each end of a pair of sockets is a file of its own, and what is sent or received says by itself that it
/// does not wait.
///
/// The owner says so ([`SleepWord::announce`]), **looks at everything once more**, and only then blocks
/// ([`Self::wait`], or by waiting for [`AsFd`] to become readable). A sender makes its work visible
/// (pushes into a queue) and then rings. [`SleepWord`] argues why no wake-up is lost.
#[derive(Debug)]
pub struct Doorbell {
    event: OwnedFd,
    kind: Kind,
}

/// What is never waited for: the other end is gone.
const BROKEN: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Event,
    Socket,
}

impl Doorbell {
    /// A doorbell within this process.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { event, kind: Kind::Event })
    }

    /// Both ends of a doorbell between two processes: either rings, the other is woken. The second is to be
    /// handed over, for [`Self::from_file`].
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        let (own, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok((Self { event: own, kind: Kind::Socket }, other))
    }

    /// One that was handed over.
    ///
    /// # Errors
    /// It is no socket.
    pub fn from_file(event: OwnedFd) -> io::Result<Self> {
        sockopt::socket_type(&event)?;
        Ok(Self { event, kind: Kind::Socket })
    }

    /// Wakes the owner if it sleeps. Call it after the work was made visible.
    #[inline]
    pub fn ring(&self, sleeps: SleepWord<'_>) -> bool {
        let rings = sleeps.claim_wake();
        if rings {
            self.wake();
        }
        rings
    }

    #[cold]
    fn wake(&self) {
        // It fails only when counter or socket is full, and then the owner is woken anyway, or when nobody
        // is there any more.
        let _ = match self.kind {
            Kind::Event => rustix::io::write(&self.event, &1_u64.to_ne_bytes()),
            Kind::Socket => send(&self.event, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
        };
    }

    /// Takes back what was rung, after [`AsFd`] became readable ([`Self::wait`] does it itself).
    pub fn clear(&self) {
        // Nothing to read means that nothing was rung.
        let mut rung = [0; 64];
        let _ = match self.kind {
            Kind::Event => rustix::io::read(&self.event, &mut rung[..8]).map(|_| ()),
            Kind::Socket => recv(&self.event, &mut rung, RecvFlags::DONTWAIT).map(|_| ()),
        };
    }

    /// Blocks until somebody rings, one of `others` becomes readable, or `longest` is over. Takes
    /// back what was rung. `false` when one of `others` is in error: it can't be waited for.
    pub fn wait(&self, others: &[BorrowedFd<'_>], longest: Duration) -> bool {
        let own = PollFd::new(&self.event, PollFlags::IN);
        let others = others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = std::iter::once(own).chain(others).collect();
        // An interrupted or failed wait is a short one: the caller looks for work either way.
        let _ = poll(&mut fds, Some(&timespec(longest)));
        if fds.first().is_some_and(|own| !own.revents().is_empty()) {
            self.clear();
        }
        !fds.iter().any(|fd| fd.revents().intersects(BROKEN))
    }

    /// Blocks so long, whether somebody rings or not: what was rung stays. `false`, and at once, when nobody can ring any more.
    pub fn pause(&self, time: Duration) -> bool {
        let mut own = [PollFd::new(&self.event, PollFlags::empty())];
        // One that is interrupted is a short one.
        let _ = poll(&mut own, Some(&timespec(time)));
        !own.iter().any(|own| own.revents().intersects(BROKEN))
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
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
    fn a_pause_leaves_what_was_rung_and_tells_that_nobody_can_ring() {
        let (bell, other) = Doorbell::pair().unwrap();
        let (other, word) = (Doorbell::from_file(other).unwrap(), AtomicU32::new(0));
        SleepWord::new(&word).announce();
        assert!(other.ring(SleepWord::new(&word)));
        assert!(bell.pause(Duration::from_millis(1)));
        let mut rung = [0_u8; 2];
        assert_eq!(rustix::io::read(&bell, &mut rung), Ok(1));
        drop(other);
        assert!(!bell.pause(Duration::from_secs(3600)));
    }

    #[test]
    fn between_processes_nobody_can_make_the_other_wait() {
        let (bell, other) = Doorbell::pair().unwrap();
        let word = AtomicU32::new(0);
        // Nothing was rung, and the other side never listens.
        bell.clear();
        for _ in 0..20_000 {
            SleepWord::new(&word).announce();
            bell.ring(SleepWord::new(&word));
        }
        let other = Doorbell::from_file(other).unwrap();
        assert!(other.wait(&[], Duration::from_secs(3600)));
        drop(bell);
        SleepWord::new(&word).announce();
        other.ring(SleepWord::new(&word));
        assert!(Doorbell::from_file(rustix::pipe::pipe().unwrap().0).is_err());
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
