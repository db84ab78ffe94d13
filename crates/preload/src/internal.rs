//! Descriptors of this library's own, out of the application's way.

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::kinds::{self, Kind};
use crate::real;

/// Room that is left above the first of them, below the limit of the process.
const ROOM: u64 = 64;
/// They begin below this: a higher number would make the kernel's table of files longer, and `select` looks at sets as far as the table
/// goes in programs that ask for as many as `getdtablesize` says, beyond the end of an `fd_set`.
const HIGHEST: u64 = libc::FD_SETSIZE as u64;

/// Another descriptor for the same file, where no program expects one.
fn raised(fd: RawFd) -> c_int {
    let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: room for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let lowest = limit.rlim_cur.min(HIGHEST).saturating_sub(ROOM).max(3);
    // SAFETY: a descriptor that is ours.
    unsafe { real::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest as _) }
}

/// Moves a descriptor up, where no program expects one.
pub(crate) fn raise(file: OwnedFd) -> OwnedFd {
    let moved = raised(file.as_raw_fd());
    if moved < 0 {
        return file;
    }
    close(file.into_raw_fd());
    // SAFETY: just made, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(moved) }
}

/// A descriptor of this library's own that can be dropped: the close that others know would not find it.
#[derive(Debug)]
pub(crate) struct Hidden(ManuallyDrop<OwnedFd>);

impl Hidden {
    pub(crate) fn of(file: OwnedFd) -> Self {
        let file = raise(file);
        kinds::set(file.as_raw_fd(), Kind::Internal);
        Self(ManuallyDrop::new(file))
    }
}

impl AsRawFd for Hidden {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Hidden {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        close(self.0.as_raw_fd());
    }
}

/// Closes what nobody uses any more. The C library's `close` may end the thread (`pthread_cancel`), which has the state.
pub(crate) fn close(fd: RawFd) {
    kinds::set(fd, Kind::Kernel);
    // SAFETY: no memory is involved, and the descriptor is used no more.
    unsafe { real::syscall(libc::SYS_close, fd.into(), 0, 0, 0, 0, 0) };
}

/// A file that stands for sessions: a socket that is neither bound nor connected, so that what is asked about it past
/// this library at least is told that it is a stream socket.
pub(crate) fn base() -> Option<Hidden> {
    socket(libc::AF_INET, libc::SOCK_STREAM)
}

/// A socket of the kernel's.
pub(crate) fn socket(domain: c_int, kind: c_int) -> Option<Hidden> {
    // SAFETY: no memory is involved.
    let fd = unsafe { real::socket(domain, kind | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: just made, and nobody else knows it.
    (fd >= 0).then(|| Hidden::of(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// An epoll instance of this library's own.
pub(crate) fn epoll() -> Option<Hidden> {
    // SAFETY: no memory is involved.
    let fd = unsafe { real::epoll_create1(libc::EPOLL_CLOEXEC) };
    // SAFETY: just made, and nobody else knows it.
    (fd >= 0).then(|| Hidden::of(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Another descriptor for the same file, the lowest that is free.
pub(crate) fn placeholder(base: &Hidden) -> c_int {
    // SAFETY: no memory is involved.
    unsafe { real::fcntl(base.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) }
}

/// The same, where no program expects one.
pub(crate) fn high_placeholder(base: &Hidden) -> c_int {
    raised(base.as_raw_fd())
}
