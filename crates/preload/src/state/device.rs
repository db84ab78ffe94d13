//! Sockets that are bound to a device (`SO_BINDTODEVICE`): Millrace's ports are none of the kernel's devices, so such a socket is
//! the kernel's alone.

use std::ffi::c_int;

use super::{State, word};
use crate::kinds::Kind;
use crate::waiting::World;
use crate::{address, real};

/// Whether a socket of the kernel's is bound to a device.
pub(super) fn has_device(fd: c_int) -> bool {
    word(fd, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX).unwrap_or(0) != 0
}

/// Whether an option binds a socket to a device, or sets it free.
pub(crate) fn concerns_device(level: c_int, name: c_int) -> bool {
    level == libc::SOL_SOCKET && matches!(name, libc::SO_BINDTODEVICE | libc::SO_BINDTOIFINDEX)
}

impl State {
    /// The kernel has bound a socket to a device, or to none any more, which may be the stack's too: it ends to be so, or begins.
    pub(crate) fn heed_device(&mut self, fd: c_int, kind: Kind) {
        let own = self.own(fd);
        match (kind, has_device(own)) {
            (Kind::Listener, true) => self.leave_to_kernel(own),
            // The kernel listens nevertheless.
            (Kind::Listener, false) => drop(self.adopt(own)),
            (Kind::Datagrams, true) => self.leave_datagrams_to_kernel(own),
            (Kind::Datagrams, false) => {
                let is_kernels = self.peer_world(own) == Some(World::Kernel);
                if is_kernels && !address::is_connected(own) {
                    let _ = self.disconnect_datagrams(own);
                }
            }
            _ => {}
        }
    }

    /// The network does not reach a UDP socket any more, whose peer the kernel is to reach.
    fn leave_datagrams_to_kernel(&mut self, own: c_int) {
        let Some(peer) = self.datagrams(own).map(|known| known.remote()) else { return };
        let _ = self.connected_by_kernel(own);
        if let Some(peer) = peer {
            let (name, length) = address::encode(peer);
            // Where it can't, calls say why.
            // SAFETY: an address, and its length.
            unsafe { real::connect(own, (&raw const name).cast(), length) };
        }
    }
}
