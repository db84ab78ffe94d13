//! Accepting connections: from the stack, and from the kernel's own socket.

use std::ffi::{c_int, c_long, c_short};
use std::net::SocketAddr;
use std::time::Duration;

use host::{Errno, Mask};
use libc::{sockaddr, socklen_t};

use super::is_listening;
use crate::address::{self, id};
use crate::call::Call;
use crate::hooks::standard;
use crate::kinds::{self, Kind};
use crate::process::{self, Held, Shared};
use crate::signals;
use crate::sleeping::wait_for;
use crate::{call, errno, real};

/// How long who came too late for a connection looks away.
const BREATH: Duration = Duration::from_micros(100);

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
    // SAFETY: the caller's promise.
    match unsafe { take(shared, fd, (from, length), flags) } {
        Ok(Taken::Session(new, remote)) => {
            // SAFETY: the caller's promise.
            match unsafe { address::write(remote, from, length) } {
                Ok(()) => {
                    standard::follow(new);
                    new
                }
                Err(error) => {
                    shared.lock().close_session(new);
                    errno::set(error);
                    -1
                }
            }
        }
        Ok(Taken::Kernels(new)) => kernels(new),
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
        standard::follow(fd);
    }
    fd
}

/// Where a connection comes from.
enum Taken {
    Session(c_int, SocketAddr),
    /// What the kernel's `accept4` has returned.
    Kernels(c_int),
}

/// Where the application wants the peer's address, and its length.
type Name = (*mut sockaddr, *mut socklen_t);

/// A connection of the stack's; else it is the kernel's turn.
///
/// # Safety
/// As for `accept4`.
unsafe fn take(shared: &Shared, listener: c_int, name: Name, flags: c_int) -> Result<Taken, Errno> {
    // SAFETY: the caller's promise.
    let by_kernel = || Taken::Kernels(unsafe { real::accept4(listener, name.0, name.1, flags) });
    call::begins();
    let call = Call::new(shared);
    let mut state = shared.lock();
    if state.adopt(listener).is_err() {
        drop(state);
        return Ok(by_kernel());
    }
    if state.serve(listener) {
        state = state.tell(shared);
        if kinds::get(listener) != Kind::Listener {
            // Another thread has closed it meanwhile: the kernel says so.
            drop(state);
            return Ok(by_kernel());
        }
    }
    if state.is_kernels_turn(listener) {
        drop(state);
        // SAFETY: the caller's promise.
        let new = unsafe { accept_in_turn(shared, listener, name, flags) };
        if let Some(new) = new.filter(|new| *new >= 0) {
            return Ok(Taken::Kernels(new));
        }
        state = shared.lock();
    }
    let nonblocking = state.is_nonblocking(listener);
    let alarm = state.timeouts(listener).0;
    loop {
        let (after, accepted) = by_stack(&call, state, listener, flags);
        state = after;
        match accepted {
            Ok((new, remote)) => return Ok(Taken::Session(new, remote)),
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        if nonblocking {
            // It has the last word.
            drop(state);
            return Ok(by_kernel());
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
            drop(state);
            // SAFETY: the caller's promise.
            if let Some(new) = unsafe { accept_in_turn(shared, listener, name, flags) } {
                return Ok(Taken::Kernels(new));
            }
            // Whoever is faster takes it at once, unless it is stopped.
            std::thread::sleep(BREATH);
            state = shared.lock();
        } else if !found {
            return Err(Errno::AGAIN);
        }
    }
}

/// A connection that waits at the stack's side of a listener, as a session of its own.
fn by_stack<'a>(
    call: &Call<'a>,
    mut state: Held<'a>,
    listener: c_int,
    flags: c_int,
) -> (Held<'a>, Result<(c_int, SocketAddr), Errno>) {
    let new = match state.begin_accept(listener) {
        Ok(new) => new,
        Err(error) => return (state, Err(error)),
    };
    let at = state.id_of(listener);
    let (mut state, accepted) = call.ask(state, listener, |sessions| sessions.accept(at, id(new)));
    let taken = state.end_accept(new, flags, accepted);
    (state, taken)
}

/// Accepts a connection that the kernel has, without waiting for one. `None`: there is none, or another thread or process takes
/// it. All that share a listener hear of the same connection; who came too late would wait in the kernel, deaf to what comes by
/// the stack.
///
/// # Safety
/// As for `accept4`.
unsafe fn accept_in_turn(
    shared: &Shared,
    listener: c_int,
    (from, length): Name,
    flags: c_int,
) -> Option<c_int> {
    let _turn = shared.turn_to_accept()?;
    if !lock(listener, libc::F_WRLCK) {
        return None;
    }
    let mut file = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
    let (file, at_once) = (&raw mut file, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let (name, flags) = ((from as c_long, length as c_long), c_long::from(flags));
    // By number: a thread that is cancelled (`pthread_cancel`) is not while it has the lock.
    // SAFETY: one file, and a time; then the caller's promise.
    let accepted = unsafe {
        let at_once = (&raw const at_once) as c_long;
        let ready = real::syscall(libc::SYS_ppoll, file as c_long, 1, at_once, 0, 0, 0);
        let accept = || {
            real::syscall(libc::SYS_accept4, listener.into(), name.0, name.1, flags, 0, 0) as c_int
        };
        (ready > 0).then(accept)
    };
    let error = errno::get();
    lock(listener, libc::F_UNLCK);
    errno::set(error);
    accepted
}

/// Locks a socket against other processes (`F_WRLCK`), or unlocks it. `false`: another process has it.
fn lock(fd: c_int, how: c_int) -> bool {
    // SAFETY: all zeros are a lock, from the beginning to the end.
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = how as c_short;
    // SAFETY: a lock.
    let done = unsafe { real::fcntl(fd, libc::F_SETLK, (&raw const whole) as c_long) };
    done >= 0 || !matches!(errno::get(), Errno::AGAIN | Errno::ACCES)
}
