//! Waking a thread of this process that sleeps: a doorbell whose word is not shared with others.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use shm::SleepWord;

/// A doorbell with its word. See [`shm::Doorbell`] for its rules, and [`SleepWord`] for why no wake-up is
/// lost.
#[derive(Debug)]
pub struct Doorbell {
    word: AtomicU32,
    bell: shm::Doorbell,
}

impl Doorbell {
    /// A doorbell whose owner is awake.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { word: AtomicU32::new(0), bell: shm::Doorbell::new()? })
    }

    fn sleeps(&self) -> SleepWord<'_> {
        SleepWord::new(&self.word)
    }

    /// Wakes the owner if it sleeps. Call it after the work was made visible.
    #[inline]
    pub fn ring(&self) {
        self.bell.ring(self.sleeps());
    }

    /// The owner is about to sleep; it must look for work once more after this.
    pub fn announce(&self) {
        self.sleeps().announce();
    }

    /// The owner is awake again.
    pub fn awake(&self) {
        self.sleeps().withdraw();
    }

    /// Takes back what was rung, after [`AsFd`] became readable ([`Self::wait`] does it itself).
    pub fn clear(&self) {
        self.bell.clear();
    }

    /// As [`shm::Doorbell::wait`].
    pub fn wait(&self, others: &[BorrowedFd<'_>], longest: Duration) -> bool {
        self.bell.wait(others, longest)
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
