//! A UDP socket's port, in both worlds, and whether the daemon steers new flows to it.

use std::ffi::c_int;
use std::net::SocketAddr;

use host::Errno;

use super::{State, new_session};
use crate::address::{self, bound, id};
use crate::real;
use crate::sockets::Sockets;
use crate::state::asking::{Asks, lease};
use crate::state::proving::prove;

/// Ports that the kernel is asked for, until it has one of them free too.
const ATTEMPTS: usize = 8;

/// The kernel has bound the socket: the network reaches it there too.
pub(crate) fn bind_datagrams<S: Asks>(
    state: S,
    fd: c_int,
    local: SocketAddr,
) -> (S, Result<(), Errno>) {
    let fd = state.own(fd);
    let (state, done) = state.ask(|sessions| sessions.bind(id(fd), local));
    if done.is_err() {
        return (state, done);
    }
    let (mut state, number) = prove(state, fd, 0);
    let serves = number.is_some()
        && state.datagrams.values().any(|other| other.number == number && other.serves);
    if let Some(known) = state.datagrams.get_mut(&fd) {
        (known.number, known.serves) = (number, false);
    }
    if serves {
        // What was shown last counts.
        state = serve_datagrams(state, fd);
    }
    (state, Ok(()))
}

/// The application receives: from now on new flows are for this process too.
pub(crate) fn serve_datagrams<S: Asks>(mut state: S, fd: c_int) -> S {
    let fd = state.own(fd);
    match state.datagrams.get_mut(&fd) {
        // Said before, so that whoever shows another socket with that port meanwhile shows it once more, as one that serves.
        Some(known) if !known.serves && known.number.is_some() => known.serves = true,
        _ => return state,
    }
    let (mut state, number) = prove(state, fd, 1);
    if let Some(known) = state.datagrams.get_mut(&fd) {
        known.number = number;
    }
    state
}

/// A port for a socket that has none: a leased one, in both worlds.
pub(crate) fn bind_anywhere<S: Asks>(state: S, fd: c_int) -> (S, Result<(), Errno>) {
    let fd = state.own(fd);
    let (mut state, name) = state.ask(|sessions| sessions.name(id(fd)));
    match name {
        Ok(name) if name.port() == 0 => {}
        // Another thread has bound it meanwhile, maybe.
        name => return (state, name.map(drop)),
    }
    for _ in 0..ATTEMPTS {
        let local = match bound(fd).and_then(|local| local.ok_or(Errno::OPNOTSUPP)) {
            Ok(local) if local.port() == 0 => local,
            Ok(local) => return bind_datagrams(state, fd, local),
            Err(error) => return (state, Err(error)),
        };
        let (after, leased) = bind_leased(state, fd, local);
        let port = match leased {
            Ok(port) => port,
            Err(error) => return (after, Err(error)),
        };
        let (name, length) = address::encode(SocketAddr::new(local.ip(), port));
        // SAFETY: an address, and its length.
        if unsafe { real::bind(fd, (&raw const name).cast(), length) } == 0 {
            return (after, Ok(()));
        }
        // Another process has it, or another thread has had the kernel bind the socket.
        let (after, opened) = new_session(after, fd);
        if opened.is_err() {
            return (after, opened);
        }
        state = after;
    }
    (state, Err(Errno::AGAIN))
}

/// A leased port for a socket that the kernel has bound to none. Gives the port.
fn bind_leased<S: Asks>(state: S, fd: c_int, local: SocketAddr) -> (S, Result<u16, Errno>) {
    let bind = |sessions: &mut Sockets| sessions.bind(id(fd), local);
    let (mut state, mut done) = state.ask(bind);
    if done.is_err() {
        let (after, leased) = lease(state);
        state = after;
        if leased {
            (state, done) = state.ask(bind);
        }
    }
    if done.is_err() {
        return (state, Err(Errno::AGAIN));
    }
    let (state, name) = state.ask(|sessions| sessions.name(id(fd)));
    (state, name.map(|name| name.port()))
}

impl State {
    /// The daemon steers no more to the port for this socket.
    pub(super) fn release_number(&mut self, fd: c_int) {
        let Some(number) = self.datagrams.get_mut(&fd).and_then(|known| known.number.take()) else {
            return;
        };
        if !self.datagrams.values().any(|other| other.number == Some(number)) {
            self.give_back(number);
        }
    }

    /// Shows a daemon that does not know them all UDP sockets with ports. Leased ports are no longer; the kernel's halves
    /// prove them now.
    pub(in crate::state) fn prove_datagrams(&mut self) {
        let all: Vec<_> = self.datagrams.keys().copied().collect();
        for fd in all {
            self.show_datagrams(fd);
        }
    }

    /// The same of one.
    pub(super) fn show_datagrams(&mut self, fd: c_int) {
        let Some(serves) = self.datagrams.get(&fd).map(|known| known.serves) else { return };
        let bound = bound(fd).ok().flatten().is_some_and(|local| local.port() != 0);
        let number = if bound { prove(&mut *self, fd, u8::from(serves)).1 } else { None };
        if let Some(known) = self.datagrams.get_mut(&fd) {
            known.number = number;
        }
    }
}
