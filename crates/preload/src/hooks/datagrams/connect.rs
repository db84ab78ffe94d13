//! UDP sockets that the application connects or binds, in both worlds.

use std::ffi::c_int;

use host::Errno;
use libc::{sockaddr, socklen_t};
use shm::session::Routed;

use crate::kinds::{self, Kind};
use crate::state::is_the_kernels;
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
            let (mut state, routed) = routes::of_datagrams(shared, shared.lock(), remote);
            let Routed::Millrace { source, .. } = routed else { return None };
            if kinds::get(fd) != Kind::Datagrams {
                // Another thread has closed it meanwhile: the kernel says so.
                return None;
            }
            state.open_datagrams(fd).ok()?;
            let done = state.connect_datagrams(fd, source, remote);
            Some(done)
        }
        // SAFETY: at least the family is there.
        Ok(None) if unsafe { address::is_unspecified(to) } => {
            let mut state = process::current()?.lock();
            let peer = state.peer_world(fd)?;
            if peer == World::Kernel {
                if let Err(error) = address::disconnect(fd) {
                    return Some(Err(error));
                }
            }
            Some(state.disconnect_datagrams(fd))
        }
        _ => None,
    }
}

/// The kernel has connected it.
pub(in crate::hooks) fn connected(fd: c_int) {
    let Some(shared) = process::current() else { return };
    let mut state = shared.lock();
    if state.datagrams(fd).is_some() {
        let _ = state.connected_by_kernel(fd);
    }
}

/// The kernel has bound it: the network can reach it too.
pub(in crate::hooks) fn bound(fd: c_int) {
    let Ok(Some(local)) = address::bound(fd) else { return };
    if is_the_kernels(local.ip()) && !local.ip().to_canonical().is_unspecified() {
        return;
    }
    let Some(shared) = process::attached() else { return };
    let mut state = shared.lock();
    if state.datagrams(fd).is_some() {
        // Somebody waits for it already.
        let _ = state.bind_datagrams(fd, local);
    } else {
        let _ = state.open_datagrams(fd);
    }
}
