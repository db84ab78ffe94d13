//! Sockets that are the kernel's alone, because of what was set of them.

use std::ffi::c_int;

use super::{State, word};
use crate::kinds::Kind;
use crate::waiting::World;
use crate::{address, uncancelled};

/// What the stack does not do, although whoever sets it relies on it: Millrace's ports are none of the kernel's devices; what comes
/// from afar would get through; other hosts' addresses are not the stack's; completions would never come.
const DECIDING: [(c_int, c_int); 6] = [
    (libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX),
    (libc::SOL_SOCKET, libc::SO_ZEROCOPY),
    (libc::IPPROTO_IP, libc::IP_MINTTL),
    (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
    (libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT),
    (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
];

/// Whether a socket of the kernel's stays that.
pub(super) fn is_alone(fd: c_int) -> bool {
    DECIDING.iter().any(|(level, name)| word(fd, *level, *name) > Some(0))
}

/// Whether an option decides whose a socket is.
pub(crate) fn decides(level: c_int, name: c_int) -> bool {
    DECIDING.contains(&(level, name)) || (level, name) == (libc::SOL_SOCKET, libc::SO_BINDTODEVICE)
}

impl State {
    /// Such an option was set of a socket that may be the stack's too: it ends to be so, or begins.
    pub(crate) fn decide(&mut self, fd: c_int, kind: Kind) {
        let own = self.own(fd);
        match (kind, is_alone(own)) {
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
            unsafe { uncancelled::connect(own, (&raw const name).cast(), length) };
        }
    }
}
