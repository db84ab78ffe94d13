//! Datagrams: how long they may be, where they may go, when a socket is ready, and what the stack's errors mean.

mod peer;
mod receive;
mod send;

use std::io::IoSliceMut;
use std::net::SocketAddr;

use transport::{UdpError, UdpTrouble};

use crate::address::plain;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::session::{Domain, Id, Role, Session};
use crate::sessions::Sessions;
use crate::settings::flag;

/// Longest datagram: bytes of data.
pub(crate) const LONGEST: usize = 65_535;

impl Sessions {
    /// Bytes of memory of datagrams that wait to be received, and of what was said about those that were sent.
    #[must_use]
    pub fn waiting_datagrams(&self) -> usize {
        self.stack.udp_memory()
    }

    /// From now on, a datagram with which those that wait would have more than so many bytes of memory is dropped, and counted
    /// as if the receive buffer were full.
    pub fn limit_datagrams(&mut self, most: usize) {
        self.stack.limit_udp_memory(most);
    }

    pub(crate) fn datagram_mask(&mut self, id: Id) -> Mask {
        let Ok(session) = self.get(id) else { return Mask::NONE };
        let (shut, error) = (session.shut, session.error != 0 || self.has_reports(session.role));
        let room = session.settings.buffers.1 as usize;
        let waiting = match session.role {
            Role::Datagrams(Some(socket)) => {
                self.stack.udp_peek(socket, &mut []).is_ok_and(|head| head.is_some())
            }
            _ => false,
        };
        // sock_writeable: half of the buffer is free.
        let writable = self.outbox.bytes_of(id) * 2 < room.max(1);
        if !writable {
            self.outbox.starve(id);
        }
        (Mask::WRITE | Mask::WRBAND).when(writable)
            | Mask::READ.when(waiting || shut.0)
            | Mask::RDHUP.when(shut.0)
            | Mask::HUP.when(shut.0 && shut.1)
            | Mask::ERR.when(error)
    }
}

/// Where a datagram goes when it is told an address; IPv4 without a detour over mapping too, as Linux takes it.
fn destination(session: &Session, to: SocketAddr, mixed: Errno) -> Result<SocketAddr, Errno> {
    if session.domain == Domain::V4 && to.is_ipv6() {
        return Err(Errno::AFNOSUPPORT);
    }
    let address = plain(to);
    if session.domain == Domain::V6 && address.is_ipv4() && session.settings.has(flag::V6_ONLY) {
        return Err(if to.is_ipv6() { Errno::NETUNREACH } else { mixed });
    }
    Ok(address)
}

/// Copies bytes into several targets, or as many as they hold. Gives how many.
pub(crate) fn spread(bytes: &[u8], targets: &mut [IoSliceMut<'_>]) -> usize {
    let mut rest = bytes;
    for target in targets {
        let (now, later) = rest.split_at(target.len().min(rest.len()));
        if let Some(place) = target.get_mut(..now.len()) {
            place.copy_from_slice(now);
        }
        rest = later;
    }
    bytes.len() - rest.len()
}

pub(crate) fn told_of(trouble: UdpTrouble) -> Errno {
    match trouble {
        UdpTrouble::Failed(failure) => failure.into(),
        UdpTrouble::TooBig(_) => Errno::MSGSIZE,
    }
}

fn refused(error: UdpError) -> Errno {
    match error {
        UdpError::Gone => Errno::BADF,
        UdpError::InUse => Errno::ADDRINUSE,
        UdpError::NoPort | UdpError::NoBuffer => Errno::AGAIN,
        UdpError::Full => Errno::NOBUFS,
        UdpError::NoDestination => Errno::DESTADDRREQ,
        UdpError::Address => Errno::NETUNREACH,
        UdpError::Broadcast => Errno::ACCES,
        UdpError::TooLong { .. } => Errno::MSGSIZE,
        UdpError::Group => Errno::INVAL,
        UdpError::Trouble(trouble) => told_of(trouble),
    }
}
