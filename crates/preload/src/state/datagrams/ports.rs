//! A UDP socket's port, in both worlds, and whether the daemon steers new flows to it.

use std::ffi::c_int;
use std::net::SocketAddr;

use host::Errno;

use super::State;
use crate::address::{self, bound, id};
use crate::real;

/// Ports that the kernel is asked for, until it has one of them free too.
const ATTEMPTS: usize = 8;

impl State {
    /// The kernel has bound the socket: the network reaches it there too.
    pub(crate) fn bind_datagrams(&mut self, fd: c_int, local: SocketAddr) -> Result<(), Errno> {
        let fd = self.own(fd);
        self.sessions.bind(id(fd), local)?;
        let number = self.prove(fd, 0);
        let serves = number.is_some()
            && self.datagrams.values().any(|other| other.number == number && other.serves);
        if let Some(known) = self.datagrams.get_mut(&fd) {
            (known.number, known.serves) = (number, false);
        }
        if serves {
            // What was shown last counts.
            self.serve_datagrams(fd);
        }
        Ok(())
    }

    /// The application receives: from now on new flows are for this process too.
    pub(crate) fn serve_datagrams(&mut self, fd: c_int) {
        let fd = self.own(fd);
        let known = self.datagrams.get(&fd).map(|known| (known.serves, known.number));
        let Some((false, Some(_))) = known else { return };
        let number = self.prove(fd, 1);
        if let Some(known) = self.datagrams.get_mut(&fd) {
            (known.number, known.serves) = (number, true);
        }
    }

    /// A port for a socket that has none: a leased one, in both worlds.
    pub(crate) fn bind_anywhere(&mut self, fd: c_int) -> Result<(), Errno> {
        let fd = self.own(fd);
        if self.sessions.name(id(fd))?.port() != 0 {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            let local = bound(fd)?.ok_or(Errno::OPNOTSUPP)?;
            if local.port() != 0 {
                return self.bind_datagrams(fd, local);
            }
            if self.sessions.bind(id(fd), local).is_err() {
                if !self.lease() {
                    return Err(Errno::AGAIN);
                }
                self.sessions.bind(id(fd), local).map_err(|_| Errno::AGAIN)?;
            }
            let port = self.sessions.name(id(fd))?.port();
            let (name, length) = address::encode(SocketAddr::new(local.ip(), port));
            // SAFETY: an address, and its length.
            if unsafe { real::bind(fd, (&raw const name).cast(), length) } == 0 {
                return Ok(());
            }
            // Another process has it.
            self.new_session(fd)?;
        }
        Err(Errno::AGAIN)
    }

    /// The daemon steers no more to the port for this socket.
    pub(super) fn release_number(&mut self, fd: c_int) {
        let Some(number) = self.datagrams.get_mut(&fd).and_then(|known| known.number.take()) else {
            return;
        };
        if !self.datagrams.values().any(|other| other.number == Some(number)) {
            let _ = self.attachment.link.unlisten(self.attachment.number(), number);
        }
    }

    /// Shows a daemon that does not know them all UDP sockets with ports. Leased ports are no longer; the kernel's halves
    /// prove them now.
    pub(in crate::state) fn prove_datagrams(&mut self) {
        let all: Vec<_> = self.datagrams.iter().map(|(fd, known)| (*fd, known.serves)).collect();
        for (fd, serves) in all {
            let bound = bound(fd).ok().flatten().is_some_and(|local| local.port() != 0);
            let number = if bound { self.prove(fd, u8::from(serves)) } else { None };
            if let Some(known) = self.datagrams.get_mut(&fd) {
                known.number = number;
            }
        }
    }
}
