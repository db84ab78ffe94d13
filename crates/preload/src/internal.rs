//! Descriptors of this library's own, out of the application's way.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use crate::kinds::{self, Kind};
use crate::real;

/// Room that is left above the first of them, below the limit of the process.
const ROOM: u64 = 64;
/// They begin here at most: a higher number would make the kernel's table of files longer.
const HIGHEST: u64 = 4096;

/// Moves a descriptor up, where no program expects one, and hides it.
pub(crate) fn hide(file: OwnedFd) -> OwnedFd {
    let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: room for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let lowest = limit.rlim_cur.min(HIGHEST).saturating_sub(ROOM).max(3);
    // SAFETY: a descriptor that is ours.
    let moved = unsafe { real::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest as _) };
    if moved < 0 {
        kinds::set(file.as_raw_fd(), Kind::Internal);
        return file;
    }
    // SAFETY: the descriptor that it was, which nobody else knows.
    unsafe { real::close(file.into_raw_fd()) };
    kinds::set(moved, Kind::Internal);
    // SAFETY: just made.
    unsafe { OwnedFd::from_raw_fd(moved) }
}

/// A file that stands for sessions: a socket that is neither bound nor connected, so that what is asked about it past
/// this library at least is told that it is a stream socket.
pub(crate) fn base() -> Option<OwnedFd> {
    // SAFETY: no memory is involved.
    let fd = unsafe { real::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: just made.
    (fd >= 0).then(|| hide(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Another descriptor for the same file, the lowest that is free.
pub(crate) fn placeholder(base: &OwnedFd) -> c_int {
    // SAFETY: no memory is involved.
    unsafe { real::fcntl(base.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) }
}
