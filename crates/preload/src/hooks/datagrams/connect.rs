//! UDP sockets that the application connects or binds, in both worlds.

use std::ffi::c_int;

use host::Errno;
use libc::{sockaddr, socklen_t};
use shm::session::Routed;

use crate::asking::{Lending, change};
use crate::kinds::Kind;
use crate::state::{
    bind_datagrams, connect_datagrams, connected_by_kernel, disconnect_datagrams, is_the_kernels,
    open_datagrams,
};
use crate::waiting::World;
use crate::{address, process, routes};

/// `connect` of a UDP socket. `None`: the kernel connects it, or says why not.
///
/// # Safety
/// As for [`address::read`].
pub(in crate::hooks) unsafe fn connect(
    fd: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> Option<Result<(), Errno>> {
    // SAFETY: the caller's promise.
    match unsafe { address::read(to, length) } {
        Ok(Some(remote)) if !is_the_kernels(remote.ip()) => {
            let shared = process::attached()?;
            let (state, routed) = routes::of_datagrams(shared, shared.lock(), remote);
            let Routed::Millrace { source, .. } = routed else { return None };
            let steps = |state| match open_datagrams(state, fd) {
                (state, Ok(())) => {
                    let (state, done) = connect_datagrams(state, fd, source, remote);
                    (state, Some(done))
                }
                (state, Err(_)) => (state, None),
            };
            // Another thread may have closed it meanwhile: the kernel says so.
            change(shared, state, (fd, Kind::Datagrams), steps).1.flatten()
        }
        // SAFETY: at least the family is there.
        Ok(None) if unsafe { address::is_unspecified(to) } => {
            let shared = process::current()?;
            let steps = |mut state: Lending<'static>| {
                let left = match state.peer_world(fd) {
                    None => return (state, None),
                    Some(World::Kernel) => address::disconnect(fd),
                    Some(World::Millrace) => Ok(()),
                };
                if left.is_err() {
                    return (state, Some(left));
                }
                let (state, done) = disconnect_datagrams(state, fd);
                (state, Some(done))
            };
            change(shared, shared.lock(), (fd, Kind::Datagrams), steps).1.flatten()
        }
        _ => None,
    }
}

/// The kernel has connected it.
pub(in crate::hooks) fn connected(fd: c_int) {
    let Some(shared) = process::current() else { return };
    let steps = |mut state: Lending<'static>| {
        if state.datagrams(fd).is_some() { connected_by_kernel(state, fd) } else { (state, Ok(())) }
    };
    drop(change(shared, shared.lock(), (fd, Kind::Datagrams), steps));
}

/// The kernel has bound it: the network can reach it too.
pub(in crate::hooks) fn bound(fd: c_int) {
    let Ok(Some(local)) = address::bound(fd) else { return };
    if is_the_kernels(local.ip()) && !local.ip().to_canonical().is_unspecified() {
        return;
    }
    let Some(shared) = process::attached() else { return };
    let steps = |mut state: Lending<'static>| {
        if state.datagrams(fd).is_some() {
            // Somebody waits for it already.
            bind_datagrams(state, fd, local)
        } else {
            open_datagrams(state, fd)
        }
    };
    drop(change(shared, shared.lock(), (fd, Kind::Datagrams), steps));
}
