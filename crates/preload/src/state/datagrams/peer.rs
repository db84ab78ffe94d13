//! The only peer of a UDP socket, and who reaches it: Millrace or the kernel.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use host::Errno;

use super::State;
use crate::address::{self, bound, id};
use crate::waiting::World;
use crate::{clock, uncancelled};

impl State {
    /// Where the only peer of a UDP socket is.
    pub(crate) fn peer_world(&mut self, fd: c_int) -> Option<World> {
        self.datagrams(fd).and_then(|known| known.peer)
    }

    /// Sets the only peer, which Millrace reaches.
    pub(crate) fn connect_datagrams(
        &mut self,
        fd: c_int,
        source: IpAddr,
        remote: SocketAddr,
    ) -> Result<(), Errno> {
        let fd = self.own(fd);
        if self.peer_world(fd) == Some(World::Kernel) {
            self.leave_kernels_peer(fd)?;
        }
        let now = clock::now();
        match self.sessions.connect(id(fd), now, source, remote) {
            // No leased port is left.
            Err(Errno::AGAIN) if self.lease() => {
                self.sessions.connect(id(fd), now, source, remote)?;
            }
            other => other?,
        }
        self.settle_peer(fd, Some(World::Millrace));
        if let Some(known) = self.datagrams.get_mut(&fd) {
            known.ends = Some((source, remote));
        }
        Ok(())
    }

    /// Millrace has no peer for the socket any more.
    pub(crate) fn disconnect_datagrams(&mut self, fd: c_int) -> Result<(), Errno> {
        let fd = self.own(fd);
        match self.peer_world(fd) {
            Some(World::Millrace) => {
                self.sessions.disconnect(id(fd))?;
                self.discard_kernels(fd);
                self.settle_peer(fd, None);
            }
            Some(World::Kernel) => {
                self.settle_peer(fd, None);
                self.rebind(fd)?;
            }
            None => {}
        }
        Ok(())
    }

    /// The kernel reaches the only peer: what comes from the network is not for the socket.
    pub(crate) fn connected_by_kernel(&mut self, fd: c_int) -> Result<(), Errno> {
        let fd = self.own(fd);
        self.release_number(fd);
        self.settle_peer(fd, Some(World::Kernel));
        self.new_session(fd)
    }

    fn settle_peer(&mut self, fd: c_int, peer: Option<World>) {
        self.waiters.halves.settle(id(fd), peer);
        if let Some(known) = self.datagrams.get_mut(&fd) {
            (known.peer, known.ends) = (peer, None);
        }
    }

    fn leave_kernels_peer(&mut self, fd: c_int) -> Result<(), Errno> {
        address::disconnect(fd)?;
        self.settle_peer(fd, None);
        self.rebind(fd)
    }

    /// The session anew, with the address that the kernel's socket has now.
    fn rebind(&mut self, fd: c_int) -> Result<(), Errno> {
        self.release_number(fd);
        self.new_session(fd)?;
        match bound(fd)? {
            Some(local) if local.port() != 0 => self.bind_datagrams(fd, local),
            _ => Ok(()),
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
