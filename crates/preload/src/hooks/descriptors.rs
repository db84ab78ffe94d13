//! Descriptors: closed, duplicated, and their flags.

use std::ffi::{c_int, c_long, c_ulong, c_void};

use host::Errno;

use super::standard;
use crate::asking::change;
use crate::call::Call;
use crate::kinds::{self, Kind};
use crate::process::{self, Held, Shared};
use crate::state::{State, close_listener, sets_owner};
use crate::{errno, internal, memory, real};

mod linger;
mod range;

use linger::linger;
pub use range::{close_range, unshare};

/// `close(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    match process::known(fd) {
        Kind::Internal | Kind::Spare => {
            errno::set(Errno::BADF);
            return -1;
        }
        Kind::Kernel => {}
        _ => {
            if let Some(shared) = process::current() {
                let mut state = shared.lock().await_others(shared, fd);
                // Another thread may have connected it meanwhile, or had it listen.
                match kinds::get(fd) {
                    Kind::Session => return close_session(shared, state, fd),
                    // It has closed it.
                    Kind::Internal | Kind::Spare => {
                        errno::set(Errno::BADF);
                        return -1;
                    }
                    Kind::Listener => return close_listening(shared, state, fd),
                    kind => state.close_known(fd, kind),
                }
            }
            kinds::set(fd, Kind::Kernel);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { real::close(fd) }
}

fn close_session<'a>(shared: &'a Shared, mut state: Held<'a>, fd: c_int) -> c_int {
    if let Some(awaited) = state.begin_close(fd) {
        linger(shared, state, awaited);
    }
    0
}

/// The kernel's socket goes before anybody else has the state: another thread that comes to it late would take it for a listener that
/// the program was started with, and have the stack listen again.
fn close_listening<'a>(shared: &'a Shared, state: Held<'a>, fd: c_int) -> c_int {
    let steps = |state| (close_listener(state, fd), ());
    let (state, _) = change(shared, state, (fd, Kind::Listener), steps);
    internal::close(fd);
    drop(state);
    0
}

/// `dup(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    // SAFETY: the caller's promise.
    let new = process::undisturbed(|| unsafe { real::dup(fd) });
    taken_over(fd, new, false)
}

/// A descriptor of the same file as `old`.
fn taken_over(old: c_int, new: c_int, close_on_exec: bool) -> c_int {
    let kind = process::known(old);
    if new < 0 {
        return new;
    }
    match (kind, process::current()) {
        (Kind::Session, Some(shared)) => shared.lock().duplicate(old, new, close_on_exec),
        (Kind::Listener, Some(shared)) => shared.lock().duplicate_listener(old, new),
        (Kind::Datagrams, Some(shared)) => shared.lock().duplicate_datagrams(old, new),
        (Kind::Epoll, shared) => {
            kinds::copy_epoll(old, new);
            if let Some(shared) = shared {
                shared.lock().waiters.duplicate_epoll(old, new);
            }
        }
        _ => {
            kinds::touch(old);
            kinds::set(new, kind);
        }
    }
    standard::follow(new);
    new
}

/// `dup2(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    if let Some(refused) = process::refuse(old) {
        return refused;
    }
    if old == new {
        // SAFETY: the caller's promise.
        return unsafe { real::dup2(old, new) };
    }
    // SAFETY: the caller's promise.
    unsafe { replace(old, new, 0) }
}

/// `dup3(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if old == new {
        // SAFETY: the caller's promise.
        return unsafe { real::dup3(old, new, flags) };
    }
    // SAFETY: the caller's promise.
    unsafe { replace(old, new, flags) }
}

/// # Safety
/// As for `dup3`.
unsafe fn replace(old: c_int, new: c_int, flags: c_int) -> c_int {
    // A call that is refused leaves the new one as it is.
    // SAFETY: no memory is involved.
    let is_open = process::is_open(old) && unsafe { real::fcntl(old, libc::F_GETFD, 0) } >= 0;
    if !is_open || flags & !libc::O_CLOEXEC != 0 {
        errno::set(if is_open { Errno::INVAL } else { Errno::BADF });
        return -1;
    }
    let shared = match process::known(new) {
        Kind::Kernel => None,
        _ => process::current(),
    };
    let is_spare = !process::is_open(new);
    // The limit may have been lowered since the number was given. The kernel would say so when what was there has ended.
    if shared.is_none() && is_spare || shared.is_some() && !is_within_limit(new) {
        errno::set(Errno::BADF);
        return -1;
    }
    let mut state = shared.map(|shared| shared.lock().await_others(shared, new));
    // The number passes from one file to the other, and no other thread gets it in between.
    let awaited = match state.as_mut().map(|state| state.vacate(new)).transpose() {
        Ok(awaited) => awaited.flatten(),
        Err(error) => {
            errno::set(error);
            return -1;
        }
    };
    // SAFETY: the caller's promise.
    let done = unsafe { real::dup3(old, new, flags) };
    if done < 0 && is_spare {
        // Another thread has just closed the old one. A number that the application had is its to close still.
        internal::close(new);
    }
    drop(state);
    let new = taken_over(old, done, flags & libc::O_CLOEXEC != 0);
    if let (Some(shared), Some(awaited)) = (shared, awaited) {
        linger(shared, shared.lock(), awaited);
    }
    new
}

/// Whether a file may be put at a number (`ksys_dup3`).
pub(super) fn is_within_limit(fd: c_int) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    u64::from(fd.unsigned_abs()) < limit.rlim_cur
}

/// `fcntl(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::known(fd);
    if matches!(kind, Kind::Kernel | Kind::Fresh | Kind::Epoll | Kind::Stale | Kind::Elsewhere) {
        if sets_owner(command) {
            kinds::touch(fd);
        }
        if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
            // SAFETY: the caller's promise.
            let new = process::undisturbed(|| unsafe { real::fcntl(fd, command, argument) });
            return taken_over(fd, new, false);
        }
        // SAFETY: the caller's promise.
        return unsafe { real::fcntl(fd, command, argument) };
    }
    let Some(shared) = process::current() else {
        // SAFETY: the caller's promise.
        return unsafe { real::fcntl(fd, command, argument) };
    };
    let mut state = shared.lock();
    if kind == Kind::Session {
        // SAFETY: the caller's promise.
        if let Some(done) = unsafe { state.own_by(fd, command, argument) } {
            return errno::int(done);
        }
    }
    match (command, kind) {
        (libc::F_DUPFD | libc::F_DUPFD_CLOEXEC, _) => {
            drop(state);
            // SAFETY: the caller's promise.
            let new = process::undisturbed(|| unsafe { real::fcntl(fd, command, argument) });
            taken_over(fd, new, command == libc::F_DUPFD_CLOEXEC)
        }
        (libc::F_SETFL, Kind::Session) if argument as c_int & libc::O_DIRECT != 0 => {
            errno::set(Errno::INVAL);
            -1
        }
        (libc::F_SETFL, _) => {
            state.shared_place(fd).flags = argument as c_int & SETTABLE;
            // Other processes may have it too.
            let shares = state.is_carried(fd);
            drop(state);
            if kind == Kind::Session && !shares {
                return 0;
            }
            // SAFETY: the caller's promise.
            let done = unsafe { real::fcntl(fd, command, argument) };
            if done == 0 && kind != Kind::Session && argument as c_int & libc::O_ASYNC != 0 {
                shared.lock().follow_kernel(fd);
            }
            done
        }
        (libc::F_GETFL, Kind::Session) => libc::O_RDWR | state.shared_place(fd).flags,
        (libc::F_GETFD, Kind::Session) => c_int::from(state.place(fd).close_on_exec),
        (libc::F_SETFD, Kind::Session) => {
            state.place(fd).close_on_exec = argument as c_int & libc::FD_CLOEXEC != 0;
            // SAFETY: the caller's promise.
            if state.is_carried(fd) { unsafe { real::fcntl(fd, command, argument) } } else { 0 }
        }
        _ => {
            // It may wait for a lock (`F_SETLKW`).
            drop(state);
            // SAFETY: the caller's promise.
            let done = unsafe { real::fcntl(fd, command, argument) };
            if done == 0 && sets_owner(command) {
                shared.lock().follow_kernel(fd);
            }
            done
        }
    }
}

/// `fcntl(2)`, as programs with large files call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: c_long) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { fcntl(fd, command, argument) }
}

/// `ioctl(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let flags = [libc::FIONBIO, libc::FIOCLEX, libc::FIONCLEX];
    let is_flag = flags.iter().any(|flag| *flag as c_ulong == request);
    let kind = if is_flag { process::known(fd) } else { process::kind(fd) };
    if OWNING.contains(&request) {
        kinds::touch(fd);
    }
    let shared = match process::current() {
        Some(shared) if matches!(kind, Kind::Session | Kind::Listener | Kind::Datagrams) => shared,
        // SAFETY: the caller's promise.
        _ => return unsafe { real::ioctl(fd, request, argument) },
    };
    let word = argument.cast::<c_int>();
    let is_read = READ.contains(&request);
    if is_read && memory::readable(word, size_of::<c_int>()).is_err() {
        errno::set(Errno::FAULT);
        return -1;
    }
    let call = Call::new(shared);
    let mut state = shared.lock();
    if request == libc::FIONBIO as c_ulong {
        // SAFETY: a word, as the application says.
        let on = unsafe { word.read() } != 0;
        let place = state.shared_place(fd);
        place.flags = place.flags & !libc::O_NONBLOCK | if on { libc::O_NONBLOCK } else { 0 };
    }
    if kind == Kind::Datagrams && request == libc::FIONREAD as c_ulong {
        state.run();
    }
    let has_none = |state: &mut State| {
        let id = state.id_of(fd);
        request != libc::FIONREAD as c_ulong || state.sessions.pending(id).unwrap_or(0) == 0
    };
    if kind == Kind::Listener || kind == Kind::Datagrams && has_none(&mut state) {
        drop(state);
        // SAFETY: the caller's promise.
        let done = unsafe { real::ioctl(fd, request, argument) };
        if done == 0 && OWNING.contains(&request) {
            shared.lock().follow_kernel(fd);
        }
        return done;
    }
    if is_flag && state.is_carried(fd) {
        // Other processes may have it too.
        // SAFETY: the caller's promise.
        unsafe { real::ioctl(fd, request, argument) };
    }
    let id = state.id_of(fd);
    let answer = match request {
        request if request == libc::FIONBIO as c_ulong => return 0,
        request if request == libc::FIOASYNC as c_ulong => {
            // SAFETY: a word, as the application says.
            let on = unsafe { word.read() } != 0;
            let place = state.shared_place(fd);
            place.flags = place.flags & !libc::O_ASYNC | if on { libc::O_ASYNC } else { 0 };
            return 0;
        }
        SIOCSPGRP | FIOSETOWN => {
            // SAFETY: a word, as the application says.
            return errno::int(state.set_owner(fd, unsafe { word.read() }).map(|()| 0));
        }
        SIOCGPGRP | FIOGETOWN => {
            let owner = state.owner(fd);
            // Written as it is: the word of a group is negative.
            if memory::writable(word, size_of::<c_int>()).is_ok() {
                // SAFETY: a word, as the application says.
                unsafe { word.write(owner) };
                return 0;
            }
            Err(Errno::FAULT)
        }
        request if request == libc::FIOCLEX as c_ulong || request == libc::FIONCLEX as c_ulong => {
            state.place(fd).close_on_exec = request == libc::FIOCLEX as c_ulong;
            return 0;
        }
        request if request == libc::FIONREAD as c_ulong => {
            state.run();
            state.sessions.pending(id)
        }
        request if request == libc::TIOCOUTQ as c_ulong => {
            call.ask(state, fd, |sessions| sessions.unsent(id)).1.map(|(queued, _)| queued)
        }
        SIOCOUTQNSD => {
            call.ask(state, fd, |sessions| sessions.unsent(id)).1.map(|(_, unsent)| unsent)
        }
        SIOCATMARK => {
            state.run();
            state.sessions.is_at_mark(id).map(usize::from)
        }
        // The kernel says of a socket what it says of every socket.
        // SAFETY: the caller's promise.
        _ => return unsafe { real::ioctl(fd, request, argument) },
    };
    if memory::writable(word, size_of::<c_int>()).is_err() {
        errno::set(Errno::FAULT);
        return -1;
    }
    errno::int(answer.map(|count| {
        // SAFETY: a word, as the application says.
        unsafe { word.write(c_int::try_from(count).unwrap_or(c_int::MAX)) };
        0
    }))
}

/// `sockatmark(3)`, which asks by an `ioctl` of the C library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sockatmark(fd: c_int) -> c_int {
    let mut answer: c_int = 0;
    // SAFETY: a word to write to.
    let done = unsafe { ioctl(fd, SIOCATMARK, (&raw mut answer).cast()) };
    if done < 0 { done } else { answer }
}

/// What `F_SETFL` sets of a socket; the rest it ignores.
const SETTABLE: c_int = libc::O_NONBLOCK | libc::O_APPEND | libc::O_ASYNC | libc::O_NOATIME;
/// Bytes never sent yet, and whether urgent data is next (`uapi/linux/sockios.h`).
const SIOCOUTQNSD: c_ulong = 0x894b;
const SIOCATMARK: c_ulong = 0x8905;
/// Requests about who is signalled, and those that read a word.
const OWNING: [c_ulong; 3] = [libc::FIOASYNC as c_ulong, SIOCSPGRP, FIOSETOWN];
const READ: [c_ulong; 4] =
    [libc::FIONBIO as c_ulong, libc::FIOASYNC as c_ulong, SIOCSPGRP, FIOSETOWN];
/// Who is signalled (`asm-generic/sockios.h`).
const FIOSETOWN: c_ulong = 0x8901;
const SIOCSPGRP: c_ulong = 0x8902;
const FIOGETOWN: c_ulong = 0x8903;
const SIOCGPGRP: c_ulong = 0x8904;
