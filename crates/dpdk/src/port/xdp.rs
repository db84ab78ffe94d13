//! AF_XDP sockets that the driver forgets.
//!
//! net_af_xdp (seen with 22.11.11 and libxdp 1.3) does not close the socket that its UMEM was made
//! on, so the interface's queue stays taken, and a port cannot be opened on it again: `bind` says
//! EBUSY. So the sockets that opening a port has made are noted, and closed after the driver.

use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A socket: its descriptor and its inode, which tells it from a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    fd: RawFd,
    inode: u64,
}

/// The AF_XDP sockets of this process.
pub(super) fn sockets() -> Vec<Socket> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(socket).collect()
}

/// `fd`, if it is an AF_XDP socket.
fn socket(fd: RawFd) -> Option<Socket> {
    let mut domain: libc::c_int = 0;
    let mut length = size_of_val(&domain) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `domain`; a wrong fd is an error.
    let rc = unsafe {
        let value = (&raw mut domain).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, value, &mut length)
    };
    if rc != 0 || domain != libc::AF_XDP {
        return None;
    }
    // SAFETY: integers, for which zero is valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the structure.
    (unsafe { libc::fstat(fd, &mut status) } == 0).then_some(Socket { fd, inode: status.st_ino })
}

/// How long the kernel may take to release the queue of a closed socket: it does so from a work
/// queue, after a grace period. More than 50 ms was seen on a busy machine.
const RELEASE: Duration = Duration::from_millis(400);
/// When a socket was closed last.
static CLOSED: Mutex<Option<Instant>> = Mutex::new(None);

/// Closes those of `made` that are still open.
pub(super) fn close(made: &[Socket]) {
    for left in made {
        if socket(left.fd) == Some(*left) {
            // SAFETY: the socket was made for a port that is closed, whose driver has no further
            // use for it and does not remember it.
            unsafe { libc::close(left.fd) };
        }
    }
    *CLOSED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Waits until the queues of sockets that were closed just before are free.
pub(super) fn wait_for_release() {
    let closed = *CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(left) = closed.and_then(|closed| RELEASE.checked_sub(closed.elapsed())) {
        std::thread::sleep(left);
    }
}
