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
use super::asking::Asks;
use super::options::options_of;
use super::{State, word};
use crate::address::{self, bound, id};
use crate::kinds::{self, Kind};
use crate::waiting::World;
use crate::{real, report};

pub(crate) use peer::{connect_datagrams, connected_by_kernel, disconnect_datagrams};
pub(crate) use ports::{bind_anywhere, bind_datagrams, serve_datagrams};

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

    /// Whether the application may receive from a UDP socket, or wait for it, in both worlds: nothing is to be done before.
    pub(crate) fn is_served(&self, fd: c_int) -> bool {
        let known = self.datagrams.get(&self.own(fd));
        let is_served = known.is_some_and(|known| known.serves || known.number.is_none());
        is_served && !self.is_changing(fd)
    }

    /// Has all UDP sockets anew on a stack that does not know them.
    pub(super) fn datagrams_again(&mut self) {
        let all: Vec<_> = self.datagrams.keys().copied().collect();
        for fd in all {
            self.have_again(fd);
        }
    }

    /// A daemon that has come since a thread began to change a UDP socket is to have it as it is now.
    pub(super) fn renew_datagrams(&mut self, fd: c_int) {
        if self.datagrams.contains_key(&fd) {
            self.have_again(fd);
            self.show_datagrams(fd);
        }
    }

    fn have_again(&mut self, fd: c_int) {
        let Some(known) = self.datagrams.get(&fd) else { return };
        let (peer, ends) = (known.peer, known.ends);
        let mut again = new_session(&mut *self, fd).1;
        let local = bound(fd).ok().flatten().filter(|local| local.port() != 0);
        if let Some(local) = local.filter(|_| peer != Some(World::Kernel)) {
            again = again.and_then(|()| self.sessions.bind(id(fd), local));
        }
        if let Some((source, remote)) = ends {
            again = again.and_then(|()| connect_datagrams(&mut *self, fd, source, remote).1);
        }
        if let Err(error) = again {
            report::say(&format!("the network does not reach a UDP socket any more: {error}"));
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
        if was_served && open_datagrams(&mut *self, heir).1.is_ok() {
            if let Some((source, remote)) = peer {
                let _ = connect_datagrams(self, heir, source, remote);
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

/// The stack has a UDP socket too, from now on: with the port that the kernel's is bound to, if there is one.
///
/// # Errors
/// The kernel alone can serve it.
pub(crate) fn open_datagrams<S: Asks>(state: S, fd: c_int) -> (S, Result<(), Errno>) {
    let fd = state.own(fd);
    if state.datagrams.contains_key(&fd) {
        return (state, Ok(()));
    }
    let ends = if is_alone(fd) { Err(Errno::OPNOTSUPP) } else { ends_in_kernel(fd) };
    if let Err(error) = ends {
        return (state, Err(error));
    }
    let (mut state, opened) = new_session(state, fd);
    if opened.is_err() {
        return (state, opened);
    }
    // While a stack worker was asked, another thread may have had the kernel bind or connect it.
    let ends = if state.sessions.is_shared() { ends_in_kernel(fd) } else { ends };
    let (local, peer) = match ends {
        Ok(ends) => ends,
        Err(error) => {
            state.sessions.close(id(fd));
            return (state, Err(error));
        }
    };
    *state.place(fd) = state.place_like_kernels(fd);
    state.waiters.halves.settle(id(fd), peer);
    state.datagrams.insert(fd, Datagrams { peer, ..Datagrams::default() });
    if peer.is_none() && local.port() != 0 {
        return bind_datagrams(state, fd, local);
    }
    (state, Ok(()))
}

/// The address of the kernel's half of a UDP socket, and whether that reaches the only peer.
///
/// # Errors
/// It alone can serve there.
fn ends_in_kernel(fd: c_int) -> Result<(SocketAddr, Option<World>), Errno> {
    let local = bound(fd)?.ok_or(Errno::OPNOTSUPP)?;
    let peer = address::is_connected(fd).then_some(World::Kernel);
    let is_narrow = is_the_kernels(local.ip()) && !local.ip().to_canonical().is_unspecified();
    if local.port() != 0 && peer.is_none() && is_narrow {
        return Err(Errno::OPNOTSUPP);
    }
    Ok((local, peer))
}

/// The application receives from a UDP socket, or waits for it. Gives whether the stack has one too: one that has a port
/// may be inherited.
pub(crate) fn adopt_datagrams<S: Asks>(mut state: S, fd: c_int) -> (S, bool) {
    if state.datagrams(fd).is_none() {
        let has_port = bound(fd).ok().flatten().is_some_and(|local| local.port() != 0);
        if !has_port || address::is_connected(fd) {
            return (state, false);
        }
        let (after, opened) = open_datagrams(state, fd);
        if opened.is_err() {
            return (after, false);
        }
        state = after;
    }
    (serve_datagrams(state, fd), true)
}

/// A session as the socket of the kernel's is, in place of the one that was there.
fn new_session<S: Asks>(mut state: S, fd: c_int) -> (S, Result<(), Errno>) {
    if let Err(error) = state.claim_number(fd) {
        return (state, Err(error));
    }
    state.sessions.close(id(fd));
    let six = word(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) == Some(libc::AF_INET6);
    let domain = if six { Domain::V6 } else { Domain::V4 };
    let versions = if six { INHERITED_V6 } else { &[] };
    let stamps = STAMPS.into_iter().filter(|(level, name)| word(fd, *level, *name) > Some(0));
    let options = INHERITED.iter().chain(versions).copied().chain(stamps);
    let options = options_of(fd, six, options);
    state.ask(|sessions| sessions.open_datagrams(id(fd), domain, &options))
}

/// Whether datagrams to an address are the kernel's affair, whatever the routes say.
pub(crate) fn is_the_kernels(ip: IpAddr) -> bool {
    address::is_the_hosts(ip)
        || address::is_link_local(ip)
        || ip.to_canonical() == IpAddr::V4(Ipv4Addr::BROADCAST)
}
