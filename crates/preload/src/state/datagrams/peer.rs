//! The only peer of a UDP socket, and who reaches it: Millrace or the kernel.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use host::Errno;

use super::{State, bind_datagrams, new_session};
use crate::address::{self, bound, id};
use crate::sockets::Sockets;
use crate::state::asking::{Asks, lease};
use crate::waiting::World;
use crate::{clock, uncancelled};

impl State {
    /// Where the only peer of a UDP socket is.
    pub(crate) fn peer_world(&mut self, fd: c_int) -> Option<World> {
        self.datagrams(fd).and_then(|known| known.peer)
    }

    /// The network does not reach a UDP socket any more, whose peer the kernel is to reach.
    pub(in crate::state) fn leave_datagrams_to_kernel(&mut self, own: c_int) {
        let Some(peer) = self.datagrams(own).map(|known| known.remote()) else { return };
        let _ = connected_by_kernel(&mut *self, own);
        if let Some(peer) = peer {
            let (name, length) = address::encode(peer);
            // Where it can't, calls say why.
            // SAFETY: an address, and its length.
            unsafe { uncancelled::connect(own, (&raw const name).cast(), length) };
        }
    }

    /// It may reach it again.
    pub(in crate::state) fn take_datagrams_back(&mut self, own: c_int) {
        let is_kernels = self.peer_world(own) == Some(World::Kernel);
        if is_kernels && !address::is_connected(own) {
            let _ = disconnect_datagrams(self, own);
        }
    }

    fn settle_peer(&mut self, fd: c_int, peer: Option<World>) {
        self.waiters.halves.settle(id(fd), peer);
        if let Some(known) = self.datagrams.get_mut(&fd) {
            (known.peer, known.ends) = (peer, None);
        }
    }

    /// What strangers have sent to the kernel's half, while the socket had a peer elsewhere.
    fn discard_kernels(&mut self, fd: c_int) {
        let mut byte = 0_u8;
        let target = (&raw mut byte).cast();
        // SAFETY: room for a byte.
        while unsafe { uncancelled::recv(fd, target, 1, libc::MSG_DONTWAIT) } >= 0 {}
        self.waiters.halves.clear(id(fd));
    }
}

/// Sets the only peer, which Millrace reaches.
pub(crate) fn connect_datagrams<S: Asks>(
    mut state: S,
    fd: c_int,
    source: IpAddr,
    remote: SocketAddr,
) -> (S, Result<(), Errno>) {
    let fd = state.own(fd);
    if state.peer_world(fd) == Some(World::Kernel) {
        let (after, left) = leave_kernels_peer(state, fd);
        if left.is_err() {
            return (after, left);
        }
        state = after;
    }
    let now = clock::now();
    let connect = |sessions: &mut Sockets| sessions.connect(id(fd), now, source, remote);
    let (mut state, mut connected) = state.ask(connect);
    // No leased port is left.
    if connected == Err(Errno::AGAIN) {
        let (after, leased) = lease(state);
        state = after;
        if leased {
            (state, connected) = state.ask(connect);
        }
    }
    if connected.is_ok() {
        state.settle_peer(fd, Some(World::Millrace));
        if let Some(known) = state.datagrams.get_mut(&fd) {
            known.ends = Some((source, remote));
        }
    }
    (state, connected)
}

/// Millrace has no peer for the socket any more.
pub(crate) fn disconnect_datagrams<S: Asks>(mut state: S, fd: c_int) -> (S, Result<(), Errno>) {
    let fd = state.own(fd);
    match state.peer_world(fd) {
        Some(World::Millrace) => {
            let (mut state, done) = state.ask(|sessions| sessions.disconnect(id(fd)));
            if done.is_ok() {
                state.discard_kernels(fd);
                state.settle_peer(fd, None);
            }
            (state, done)
        }
        Some(World::Kernel) => {
            state.settle_peer(fd, None);
            rebind(state, fd)
        }
        None => (state, Ok(())),
    }
}

/// The kernel reaches the only peer: what comes from the network is not for the socket.
pub(crate) fn connected_by_kernel<S: Asks>(mut state: S, fd: c_int) -> (S, Result<(), Errno>) {
    let fd = state.own(fd);
    state.release_number(fd);
    state.settle_peer(fd, Some(World::Kernel));
    new_session(state, fd)
}

fn leave_kernels_peer<S: Asks>(mut state: S, fd: c_int) -> (S, Result<(), Errno>) {
    if let Err(error) = address::disconnect(fd) {
        return (state, Err(error));
    }
    state.settle_peer(fd, None);
    rebind(state, fd)
}

/// The session anew, with the address that the kernel's socket has now.
fn rebind<S: Asks>(mut state: S, fd: c_int) -> (S, Result<(), Errno>) {
    state.release_number(fd);
    let (state, opened) = new_session(state, fd);
    match opened.and_then(|()| bound(fd)) {
        Ok(Some(local)) if local.port() != 0 => bind_datagrams(state, fd, local),
        local => (state, local.map(drop)),
    }
}
