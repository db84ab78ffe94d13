//! Which process a handle belongs to. A fork copies handles, but not what stands behind them.

use std::sync::atomic::AtomicPtr;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use rustix::process::getpid;

use crate::sync::{AtomicU32, Ordering};

/// The process in which a handle was made. In a forked child it is not the current one: there the segment is not mapped,
/// and a session with the daemon is the parent's.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    number: u32,
    /// Where the number of the current one stands; `None`: its pid is taken.
    word: Option<&'static AtomicU32>,
}

impl Process {
    /// This one.
    #[must_use]
    pub fn current() -> Self {
        let word = wiped_on_fork();
        Self { number: word.map_or_else(pid, number), word }
    }

    /// Whether this still is the process in which the handle was made: one load, no system call, on Linux 4.14 and later.
    #[inline]
    #[must_use]
    pub fn is_current(self) -> bool {
        self.word.map_or_else(pid, |word| word.load(Ordering::Relaxed)) == self.number
    }
}

/// The word that a fork wipes; null: not made yet. Without a lock, which a fork might leave locked.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// The number given last. Unlike the word it is copied by a fork, so a child's number is none of its ancestors'.
static LAST: AtomicU32 = AtomicU32::new(0);

/// The process's number; the first call after a fork gives it a new one.
fn number(word: &AtomicU32) -> u32 {
    let next = || LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    match word.load(Ordering::Relaxed) {
        0 => {
            let mine = next();
            // Another thread may have been faster: then it is that one's.
            match word.compare_exchange(0, mine, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => mine,
                Err(theirs) => theirs,
            }
        }
        known => known,
    }
}

fn pid() -> u32 {
    getpid().as_raw_pid().unsigned_abs()
}

/// A word that is zero in a forked child, whoever forked and however: no handler has to run. `None`: Linux before 4.14.
fn wiped_on_fork() -> Option<&'static AtomicU32> {
    // Miri knows no advice on mappings, and no fork.
    if cfg!(miri) {
        return None;
    }
    let mut word = WORD.load(Ordering::Acquire);
    if word.is_null() {
        let fresh = wiped_page()?;
        let null = std::ptr::null_mut();
        word = match WORD.compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(faster) => {
                // SAFETY: the page just made, which nobody else knows.
                let _ = unsafe { munmap(fresh.cast(), page_size()) };
                faster
            }
        };
    }
    // SAFETY: a page of zeros at first, aligned, only ever seen as an atomic, and never unmapped.
    unsafe { word.as_ref() }
}

fn wiped_page() -> Option<*mut AtomicU32> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let null = std::ptr::null_mut();
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let page = unsafe { mmap_anonymous(null, page_size(), protection, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the mapping just made, of which nothing is used yet.
    let wiped = unsafe { madvise(page, page_size(), Advice::LinuxWipeOnFork) };
    if wiped.is_err() {
        // SAFETY: as above.
        let _ = unsafe { munmap(page, page_size()) };
        return None;
    }
    Some(page.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_is_another_process() {
        let here = Process::current();
        assert!(here.is_current() && Process::current().is_current());
        // By pid, as on an old kernel.
        let old = Process { number: pid(), word: None };
        assert!(old.is_current());
        // SAFETY: the child makes system calls and looks at memory, no more.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let anew = Process::current();
            let right = !here.is_current() && !old.is_current() && anew.is_current();
            let right = right && anew.number != here.number;
            // SAFETY: it ends here.
            unsafe { libc::_exit(if right { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the child just made.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
        assert!(here.is_current());
    }
}
