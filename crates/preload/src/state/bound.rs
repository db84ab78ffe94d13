//! Connections from an address and port that the application has chosen (`bind` before `connect`).

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::net::SocketAddr;

use host::Errno;

use super::State;
use super::asking::Asks;
use super::options::word;
use super::proving::prove;
use crate::address::{bound, id};
use crate::clock::{self, SECOND};
use crate::{errno, kinds, real, report};

/// How long packets of a connection may follow its socket's end: ns. TIME-WAIT takes 60 s.
const AFTERMATH: u64 = 120 * SECOND;

/// Ports that sockets are bound to which connect from there. The daemon knows them as listeners that get nothing.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// The daemon's numbers, by descriptor.
    held: HashMap<c_int, u32>,
    /// Those whose sockets were closed, and when: ns.
    left: VecDeque<(u64, u32)>,
}

impl Chosen {
    /// A session has another descriptor for its own.
    pub(super) fn rename(&mut self, own: c_int, new: c_int) {
        if let Some(number) = self.held.remove(&own) {
            self.held.insert(new, number);
        }
    }
}

/// The session that was opened at `fd` gets the address and port that the kernel has bound its socket to.
///
/// # Errors
/// [`Errno::ADDRINUSE`]: the port is leased to somebody for other connections.
pub(crate) fn keep_name<S: Asks>(state: S, fd: c_int) -> (S, Result<(), Errno>) {
    if kinds::untouched(fd).is_some() {
        return (state, Ok(()));
    }
    let local = match bound(fd) {
        Ok(Some(local)) if local.port() != 0 || !local.ip().is_unspecified() => local,
        other => return (state, other.map(drop)),
    };
    if local.port() != 0 {
        let (state, shown) = show_bound(state, fd, local);
        return if shown.is_ok() { bind_like_kernels(state, fd, local) } else { (state, shown) };
    }
    // The kernel leaves the port open only where it was told to.
    let (level, name, on) = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1_i32.to_ne_bytes());
    let (state, kept) = state.ask(|sessions| sessions.set_option(id(fd), level, name, &on));
    if kept.is_err() {
        return (state, kept);
    }
    state.ask(|sessions| sessions.bind(id(fd), local))
}

/// Binds the stack's socket where the kernel's is bound. The kernel has judged who else is there. It knows nothing of the stack's
/// connections that have outlived their socket, and may even have chosen their port: they keep nobody out.
pub(super) fn bind_like_kernels<S: Asks>(
    state: S,
    fd: c_int,
    local: SocketAddr,
) -> (S, Result<(), Errno>) {
    if word(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR) != Some(0) {
        return state.ask(|sessions| sessions.bind(id(fd), local));
    }
    // How it is bound stays, and the option is then what the application has set.
    let (state, _) = share(state, fd, true);
    let (state, done) = state.ask(|sessions| sessions.bind(id(fd), local));
    let (state, _) = share(state, fd, false);
    (state, done)
}

/// Sets `SO_REUSEADDR` of the stack's socket.
fn share<S: Asks>(state: S, fd: c_int, on: bool) -> (S, Result<(), Errno>) {
    let value = c_int::from(on).to_ne_bytes();
    let name = libc::SO_REUSEADDR;
    state.ask(|sessions| sessions.set_option(id(fd), libc::SOL_SOCKET, name, &value))
}

/// The daemon takes packets from ports that the kernel has let a process have. What proves it is a socket that
/// listens: this one does for a moment, and stays bound.
fn show_bound<S: Asks>(mut state: S, fd: c_int, local: SocketAddr) -> (S, Result<(), Errno>) {
    state.forget_left();
    // SAFETY: no memory is involved.
    if let Err(error) = errno::of(unsafe { real::listen(fd, 0) }) {
        return (state, Err(error));
    }
    let shown = state.shown;
    let (mut state, number) = prove(state, fd, 0);
    // A listener may have the same port.
    state.note_shown(number, false, shown);
    // SAFETY: no memory is involved.
    unsafe { real::shutdown(fd, libc::SHUT_RD) };
    let Some(number) = number else {
        report::say(&format!("no connection can leave from {local}"));
        return (state, Err(Errno::ADDRINUSE));
    };
    state.chosen.held.insert(fd, number);
    (state, Ok(()))
}

impl State {
    /// A session that got no name is none: its socket is the kernel's as before.
    pub(crate) fn close_unborn(&mut self, fd: c_int) {
        self.leave_name(fd);
        self.sessions.close(id(fd));
    }

    /// The socket at `fd` was closed; its connection goes on for a while.
    pub(super) fn leave_name(&mut self, fd: c_int) {
        if let Some(number) = self.chosen.held.remove(&fd) {
            self.chosen.left.push_back((clock::now(), number));
        }
    }

    /// Gives ports back that no packets come from any more.
    fn forget_left(&mut self) {
        let now = clock::now();
        while let Some((at, number)) = self.chosen.left.front().copied() {
            if now < at + AFTERMATH {
                break;
            }
            self.chosen.left.pop_front();
            let again = self.chosen.held.values().any(|held| *held == number)
                || self.chosen.left.iter().any(|(_, left)| *left == number)
                || self.has_listener(number);
            if !again {
                self.give_back(number);
            }
        }
    }
}
