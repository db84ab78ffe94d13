//! Calls of the kernel by number, for a thread that has the state: the C library's functions of these names may end it
//! (`pthread_cancel`), and nobody would ever have the state again. None of them waits for long.

use std::ffi::{c_int, c_long, c_void};
use std::time::Duration;

use libc::{epoll_event, msghdr, pollfd, sockaddr, socklen_t, ssize_t, timespec};

use crate::real;

/// `recvmsg(2)`
///
/// # Safety
/// As for `recvmsg`.
pub(crate) unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let (message, flags) = (message as c_long, c_long::from(flags));
    // SAFETY: the caller's promise.
    unsafe { real::syscall(libc::SYS_recvmsg, fd.into(), message, flags, 0, 0, 0) as ssize_t }
}

/// `recv(2)`
///
/// # Safety
/// As for `recv`.
pub(crate) unsafe fn recv(fd: c_int, target: *mut c_void, count: usize, flags: c_int) -> ssize_t {
    let (target, count, flags) = (target as c_long, count as c_long, c_long::from(flags));
    // SAFETY: the caller's promise.
    unsafe { real::syscall(libc::SYS_recvfrom, fd.into(), target, count, flags, 0, 0) as ssize_t }
}

/// `connect(2)`
///
/// # Safety
/// As for `connect`.
pub(crate) unsafe fn connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    let (to, length) = (to as c_long, c_long::from(length));
    // SAFETY: the caller's promise.
    unsafe { real::syscall(libc::SYS_connect, fd.into(), to, length, 0, 0, 0) as c_int }
}

/// `epoll_wait(2)` without waiting.
///
/// # Safety
/// As for `epoll_wait`.
pub(crate) unsafe fn epoll_look(epoll: c_int, events: *mut epoll_event, most: c_int) -> c_int {
    let (events, most) = (events as c_long, c_long::from(most));
    // SAFETY: the caller's promise; there is no set of signals.
    unsafe { real::syscall(libc::SYS_epoll_pwait, epoll.into(), events, most, 0, 0, 0) as c_int }
}

/// `write(2)`
pub(crate) fn write(fd: c_int, bytes: &[u8]) -> ssize_t {
    let (source, count) = (bytes.as_ptr() as c_long, bytes.len() as c_long);
    // SAFETY: so many bytes.
    unsafe { real::syscall(libc::SYS_write, fd.into(), source, count, 0, 0, 0) as ssize_t }
}

/// `poll(2)` of one file, for a time that the kernel may change.
pub(crate) fn poll(file: &mut pollfd, time: &mut timespec) -> c_int {
    let (file, time) = ((&raw mut *file) as c_long, (&raw mut *time) as c_long);
    // SAFETY: one file, and a time; there is no set of signals.
    unsafe { real::syscall(libc::SYS_ppoll, file, 1, time, 0, 0, 0) as c_int }
}

/// Waits for so long, or until a signal comes: `poll(2)` of no file.
pub(crate) fn pause(time: Duration) {
    let (seconds, nanoseconds) = (time.as_secs() as i64, i64::from(time.subsec_nanos()));
    let mut time = timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let time = (&raw mut time) as c_long;
    // SAFETY: no file, and a time; there is no set of signals.
    unsafe { real::syscall(libc::SYS_ppoll, 0, 0, time, 0, 0, 0) };
}
