//! Accepting connections: from the stack, and from the kernel's own socket.

use std::ffi::c_int;
use std::net::SocketAddr;

use host::{Errno, Mask};
use libc::{sockaddr, socklen_t};

use super::is_listening;
use crate::kinds::{self, Kind};
use crate::process::{self, Shared};
use crate::signals;
use crate::sleeping::wait_for;
use crate::{address, errno, real};

/// `accept(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { accept4(fd, from, length, 0) }
}

/// `accept4(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    if kind == Kind::Session {
        errno::set(Errno::INVAL);
        return -1;
    }
    let ours = kind == Kind::Listener || (kind == Kind::Kernel && is_listening(fd));
    let Some(shared) = ours.then(process::attached).flatten() else {
        // SAFETY: the caller's promise.
        let new = unsafe { real::accept4(fd, from, length, flags) };
        return kernels(new);
    };
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        errno::set(Errno::INVAL);
        return -1;
    }
    let accepted = take(shared, fd, flags);
    match accepted {
        Ok(Taken::Session(new, remote)) => {
            // SAFETY: the caller's promise.
            match unsafe { address::write(remote, from, length) } {
                Ok(()) => new,
                Err(error) => {
                    shared.lock().close_session(new);
                    errno::set(error);
                    -1
                }
            }
        }
        // SAFETY: the caller's promise.
        Ok(Taken::Kernels) => kernels(unsafe { real::accept4(fd, from, length, flags) }),
        Err(error) => {
            errno::set(error);
            -1
        }
    }
}

/// A connection of the kernel's.
fn kernels(fd: c_int) -> c_int {
    if fd >= 0 {
        kinds::set(fd, Kind::Kernel);
    }
    fd
}

/// Where a connection comes from.
enum Taken {
    Session(c_int, SocketAddr),
    Kernels,
}

/// A connection of the stack's; else it is the kernel's turn.
fn take(shared: &Shared, listener: c_int, flags: c_int) -> Result<Taken, Errno> {
    let mut state = shared.lock();
    if state.adopt(listener).is_err() {
        return Ok(Taken::Kernels);
    }
    state.serve(listener);
    let nonblocking = state.is_nonblocking(listener);
    let alarm = state.timeouts(listener).0;
    loop {
        match state.accept(listener, flags) {
            Ok((new, remote)) => return Ok(Taken::Session(new, remote)),
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        if nonblocking {
            // It has the last word.
            return Ok(Taken::Kernels);
        }
        let file = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
        let mut files = vec![file];
        let waiter = state.waiters.take();
        let _ = state.watch(waiter, listener, Mask::IN);
        let mask = std::ptr::null();
        let (after, waited) = wait_for(shared, state, waiter, (&mut files, mask), alarm, |state| {
            state.is_ready(listener, Mask::IN)
        });
        state = after;
        state.unwatch(waiter, listener);
        let found = match waited {
            Err(Errno::INTR) if alarm.is_never() && signals::restart() => continue,
            waited => waited?,
        };
        if files.iter().any(|file| file.revents != 0) {
            return Ok(Taken::Kernels);
        }
        if !found {
            return Err(Errno::AGAIN);
        }
    }
}
