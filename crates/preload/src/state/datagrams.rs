//! UDP sockets: the kernel's, and beside it the stack's, with the same port. The network reaches the one by Millrace, the
//! host itself reaches the other.

mod company;
mod peer;
mod ports;

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;

use host::{Domain, Errno};

use super::alone::is_alone;
use super::options::options_of;
use super::{State, word};
use crate::address::{self, bound, id};
use crate::kinds::{self, Kind};
use crate::waiting::World;
use crate::{real, report};

/// A UDP socket of this process.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    /// The daemon's number for its port. `None`: it has none, or a leased one, or the daemon refuses.
    pub(super) number: Option<u32>,
    /// Whether it gets its share of new flows.
    pub(super) serves: bool,
    /// Where the only peer is.
    pub(crate) peer: Option<World>,
    /// The source and the peer that Millrace connects.
    ends: Option<(IpAddr, SocketAddr)>,
    /// What comes by the kernel is told to those who wait.
    accompanied: bool,
    /// Calls that have received, for taking turns.
    pub(crate) turns: u8,
}

/// Options that a session takes over from the socket of the kernel's.
pub(super) const INHERITED: &[(c_int, c_int)] = &[
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::SOL_SOCKET, libc::SO_BROADCAST),
    (libc::SOL_UDP, libc::UDP_CORK),
    (libc::SOL_UDP, libc::UDP_SEGMENT),
    (libc::SOL_UDP, libc::UDP_GRO),
    (libc::IPPROTO_IP, libc::IP_PKTINFO),
    (libc::IPPROTO_IP, libc::IP_RECVTTL),
    (libc::IPPROTO_IP, libc::IP_RECVTOS),
    (libc::IPPROTO_IP, libc::IP_RECVERR),
];
/// The same, of IPv6 sockets.
pub(super) const INHERITED_V6: &[(c_int, c_int)] = &[
    (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
];

/// Options of which each switches off what others have set: those that are on are taken over.
pub(crate) const STAMPS: [(c_int, c_int); 6] = [
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPING),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP_NEW),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS_NEW),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPING_NEW),
];

impl Datagrams {
    /// The peer that Millrace connects.
    pub(super) fn remote(&self) -> Option<SocketAddr> {
        self.ends.map(|(_, remote)| remote)
    }
}

impl State {
    /// What is known of a UDP socket. `None`: the stack has none for it.
    pub(crate) fn datagrams(&mut self, fd: c_int) -> Option<&mut Datagrams> {
        let own = self.own(fd);
        self.datagrams.get_mut(&own)
    }

    /// The stack has a UDP socket too, from now on: with the port that the kernel's is bound to, if there is one.
    ///
    /// # Errors
    /// The kernel alone can serve it.
    pub(crate) fn open_datagrams(&mut self, fd: c_int) -> Result<(), Errno> {
        let fd = self.own(fd);
        if self.datagrams.contains_key(&fd) {
            return Ok(());
        }
        if is_alone(fd) {
            return Err(Errno::OPNOTSUPP);
        }
        let local = bound(fd)?.ok_or(Errno::OPNOTSUPP)?;
        let peer = address::is_connected(fd).then_some(World::Kernel);
        let is_narrow = is_the_kernels(local.ip()) && !local.ip().to_canonical().is_unspecified();
        if local.port() != 0 && peer.is_none() && is_narrow {
            return Err(Errno::OPNOTSUPP);
        }
        self.new_session(fd)?;
        *self.place(fd) = self.place_like_kernels(fd);
        self.waiters.halves.settle(id(fd), peer);
        self.datagrams.insert(fd, Datagrams { peer, ..Datagrams::default() });
        if peer.is_none() && local.port() != 0 {
            self.bind_datagrams(fd, local)?;
        }
        Ok(())
    }

    /// The application receives from a UDP socket, or waits for it. Gives whether the stack has one too: one that has a port
    /// may be inherited.
    pub(crate) fn adopt_datagrams(&mut self, fd: c_int) -> bool {
        if self.datagrams(fd).is_none() {
            let has_port = bound(fd).ok().flatten().is_some_and(|local| local.port() != 0);
            if !has_port || address::is_connected(fd) || self.open_datagrams(fd).is_err() {
                return false;
            }
        }
        self.serve_datagrams(fd);
        true
    }

    /// A session as the socket of the kernel's is, in place of the one that was there.
    fn new_session(&mut self, fd: c_int) -> Result<(), Errno> {
        self.claim_number(fd)?;
        self.sessions.close(id(fd));
        let six = word(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) == Some(libc::AF_INET6);
        let domain = if six { Domain::V6 } else { Domain::V4 };
        let versions = if six { INHERITED_V6 } else { &[] };
        let stamps = STAMPS.into_iter().filter(|(level, name)| word(fd, *level, *name) > Some(0));
        let options = INHERITED.iter().chain(versions).copied().chain(stamps);
        let options = options_of(fd, six, options);
        self.sessions.open_datagrams(id(fd), domain, &options)
    }

    /// Has all UDP sockets anew on a stack that does not know them.
    pub(super) fn datagrams_again(&mut self) {
        let all: Vec<_> =
            self.datagrams.iter().map(|(fd, known)| (*fd, known.peer, known.ends)).collect();
        for (fd, peer, ends) in all {
            let mut again = self.new_session(fd);
            let local = bound(fd).ok().flatten().filter(|local| local.port() != 0);
            if let Some(local) = local.filter(|_| peer != Some(World::Kernel)) {
                again = again.and_then(|()| self.sessions.bind(id(fd), local));
            }
            if let Some((source, remote)) = ends {
                again = again.and_then(|()| self.connect_datagrams(fd, source, remote));
            }
            if let Err(error) = again {
                report::say(&format!("the network does not reach a UDP socket any more: {error}"));
            }
        }
    }

    /// The application has duplicated its descriptor.
    pub(crate) fn duplicate_datagrams(&mut self, old: c_int, new: c_int) {
        let own = self.own(old);
        self.aliases.insert(new, own);
        kinds::set(new, Kind::Datagrams);
    }

    /// The application has closed a descriptor of it. With its own, it goes on at another, without the datagrams that
    /// waited.
    pub(crate) fn close_datagrams(&mut self, fd: c_int) {
        if self.aliases.remove(&fd).is_some() {
            return;
        }
        let mut others = self.aliases.iter().filter(|(_, own)| **own == fd);
        let heir = others.next().map(|(other, _)| *other);
        let was_served = self.datagrams.contains_key(&fd);
        let peer = self.end_datagrams(fd);
        let Some(heir) = heir else { return };
        self.aliases.remove(&heir);
        for own in self.aliases.values_mut().filter(|own| **own == fd) {
            *own = heir;
        }
        if was_served && self.open_datagrams(heir).is_ok() {
            if let Some((source, remote)) = peer {
                let _ = self.connect_datagrams(heir, source, remote);
            }
        }
    }

    /// The stack's socket is closed. Gives the source and the peer that it had.
    fn end_datagrams(&mut self, fd: c_int) -> Option<(IpAddr, SocketAddr)> {
        self.release_number(fd);
        let known = self.datagrams.remove(&fd)?;
        if let (Some(company), true) = (&self.company, known.accompanied) {
            let none = std::ptr::null_mut();
            // SAFETY: no event is needed.
            unsafe { real::epoll_ctl(company.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, none) };
        }
        self.waiters.forget_session(id(fd));
        self.waiters.halves.forget(id(fd));
        self.turn();
        self.sessions.close(id(fd));
        known.ends
    }
}

/// Whether datagrams to an address are the kernel's affair, whatever the routes say.
pub(crate) fn is_the_kernels(ip: IpAddr) -> bool {
    address::is_the_hosts(ip)
        || address::is_link_local(ip)
        || ip.to_canonical() == IpAddr::V4(Ipv4Addr::BROADCAST)
}
