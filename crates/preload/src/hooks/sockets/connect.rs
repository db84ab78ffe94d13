//! Connecting: through the stack where the router says so, else through the kernel.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use host::{Errno, Mask};
use libc::{sockaddr, socklen_t};

use super::super::datagrams;
use crate::asking::{Lending, change};
use crate::call::Call;
use crate::clock;
use crate::kinds::{self, Kind};
use crate::process::{self, Held, Shared};
use crate::sleeping::wait_ready;
use crate::state::{lease, take_over};
use crate::{address, errno, real, routes, signals};

/// `connect(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { connect_to(fd, to, length) }
}

/// # Safety
/// As for `connect`.
unsafe fn connect_to(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    if kind == Kind::Datagrams {
        // SAFETY: the caller's promise.
        if let Some(done) = unsafe { datagrams::connect(fd, to, length) } {
            return errno::int(done.map(|()| 0));
        }
        // SAFETY: the caller's promise.
        let done = unsafe { real::connect(fd, to, length) };
        if done == 0 {
            datagrams::connected(fd);
        }
        return done;
    }
    if !matches!(kind, Kind::Fresh | Kind::Session) {
        // SAFETY: the caller's promise.
        return unsafe { real::connect(fd, to, length) };
    }
    // SAFETY: the caller's promise.
    let remote = match unsafe { address::read(to, length) } {
        Ok(Some(remote)) => remote,
        Ok(None) if kind == Kind::Session => {
            let result = process::current().map_or(Err(Errno::BADF), |shared| {
                let call = Call::new(shared);
                let state = shared.lock();
                let id = state.id_of(fd);
                let (mut state, done) = call.ask(state, fd, |sessions| sessions.disconnect(id));
                done?;
                state.shared_place(fd).dissolved = true;
                state.turn();
                Ok(0)
            });
            return errno::int(result);
        }
        Err(error) if kind == Kind::Session && !to.is_null() => {
            errno::set(error);
            return -1;
        }
        other => {
            if other == Ok(None) {
                kinds::reopen(fd);
            }
            // SAFETY: the caller's promise.
            return unsafe { real::connect(fd, to, length) };
        }
    };
    let ours = kind == Kind::Session || !address::is_the_hosts(remote.ip());
    let Some(shared) = ours.then(process::attached).flatten() else {
        kinds::touch(fd);
        // SAFETY: the caller's promise.
        return unsafe { real::connect(fd, to, length) };
    };
    let call = Call::new(shared);
    let (mut state, source) = routes::source(shared, shared.lock(), (fd, kind), remote);
    if kinds::get(fd) != kind {
        // While the daemon was asked, another thread has made something else of it.
        drop(state);
        // SAFETY: the caller's promise.
        return unsafe { connect(fd, to, length) };
    }
    let source = match source {
        Some(source) => source,
        None if kind == Kind::Session => {
            errno::set(Errno::NETUNREACH);
            return -1;
        }
        None => {
            drop(state);
            kinds::touch(fd);
            // SAFETY: the caller's promise.
            return unsafe { real::connect(fd, to, length) };
        }
    };
    if kind == Kind::Fresh {
        let (after, taken) = change(shared, state, (fd, kind), |state| take_over(state, fd));
        state = after;
        if let Err(error) = taken.unwrap_or(Ok(())) {
            errno::set(error);
            return -1;
        }
        if kinds::get(fd) != Kind::Session {
            // Another thread has closed it meanwhile, or has put something else there.
            errno::set(Errno::BADF);
            return -1;
        }
    }
    state.shared_place(fd).dissolved = false;
    if state.is_to_meet(remote) {
        call.wait(&mut state, fd);
        state = routes::meet(shared, state, remote);
        if kinds::get(fd) != Kind::Session {
            // Another thread has closed it, or has put something else there.
            errno::set(Errno::BADF);
            return -1;
        }
    }
    let (mut state, begun) = begin(shared, &call, state, fd, (source, remote));
    state.turn();
    let result = match begun {
        Err(Errno::INPROGRESS) if !state.is_nonblocking(fd) => {
            established(shared, &call, state, fd, (source, remote))
        }
        other => other,
    };
    errno::int(result.map(|()| 0))
}

/// Before something is sent: `MSG_FASTOPEN` connects a socket that is not connected. Where `connect` would take the stack, this
/// does, and what is sent follows, as it does without a cookie (`tcp_sendmsg_fastopen`). Gives the flags that are left.
///
/// # Errors
/// As `connect`.
///
/// # Safety
/// As for `sendto`.
#[inline]
pub(in crate::hooks) unsafe fn open_first(
    fd: c_int,
    flags: c_int,
    (to, length): (*const sockaddr, socklen_t),
) -> Result<c_int, Errno> {
    // SAFETY: the caller's promise.
    if flags & libc::MSG_FASTOPEN == 0 || !unsafe { takes_stack(fd, to, length) } {
        return Ok(flags);
    }
    // SAFETY: the caller's promise.
    errno::of(unsafe { connect_to(fd, to, length) })?;
    Ok(flags & !libc::MSG_FASTOPEN)
}

/// Whether `connect` would make a session of a socket.
///
/// # Safety
/// As for `connect`.
unsafe fn takes_stack(fd: c_int, to: *const sockaddr, length: socklen_t) -> bool {
    if process::kind(fd) != Kind::Fresh {
        return false;
    }
    // SAFETY: the caller's promise.
    let remote = match unsafe { address::read(to, length) } {
        Ok(Some(remote)) if !address::is_the_hosts(remote.ip()) => remote,
        _ => return false,
    };
    let Some(shared) = process::attached() else { return false };
    routes::source(shared, shared.lock(), (fd, Kind::Fresh), remote).1.is_some()
}

fn begin<'a>(
    shared: &'a Shared,
    call: &Call<'a>,
    mut state: Held<'a>,
    fd: c_int,
    (source, remote): (IpAddr, SocketAddr),
) -> (Held<'a>, Result<(), Errno>) {
    let id = state.id_of(fd);
    loop {
        let (after, begun) =
            call.ask(state, fd, |sessions| sessions.connect(id, clock::now(), source, remote));
        state = after;
        match begun {
            // The ports that it has are used up towards there.
            Err(Errno::ADDRNOTAVAIL) => {
                call.wait(&mut state, fd);
                let (after, leased) = lease(Lending { shared, state });
                state = after.state;
                if !leased {
                    return (state, begun);
                }
            }
            Err(Errno::INPROGRESS) => {
                if let Some(path) = state.path_to(remote) {
                    state.sessions.take_path(id, path);
                }
                return (state, Err(Errno::INPROGRESS));
            }
            other => return (state, other),
        }
    }
}

/// Waits until a connection is established, or has failed.
fn established<'a>(
    shared: &'a Shared,
    call: &Call<'a>,
    mut state: Held<'a>,
    fd: c_int,
    ends: (IpAddr, SocketAddr),
) -> Result<(), Errno> {
    let alarm = state.timeouts(fd).1;
    loop {
        let (after, waited) = wait_ready(shared, state, fd, Mask::OUT, alarm)?;
        state = after;
        match waited {
            // The call begins again, and finds the connection under way.
            Err(Errno::INTR) if alarm.is_never() && signals::restart() => {}
            Err(error) => return Err(error),
            // Its time-out is over: it goes on by itself.
            Ok(false) => return Err(Errno::INPROGRESS),
            // How it ended.
            Ok(true) => return begin(shared, call, state, fd, ends).1,
        }
    }
}
