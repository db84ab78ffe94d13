//! All UDP sockets: by handle, and by port.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use super::{Queue, Socket, UdpError, UdpOptions};
use crate::handle::UdpId;

/// The sockets of a stack.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    slots: Vec<Option<Socket>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    by_port: HashMap<u16, Vec<u32>>,
}

impl Sockets {
    pub(crate) fn get(&self, id: UdpId) -> Option<&Socket> {
        self.at(id.index()).filter(|socket| socket.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: UdpId) -> Option<&mut Socket> {
        self.at_mut(id.index()).filter(|socket| socket.id == id)
    }

    pub(crate) fn at(&self, index: u32) -> Option<&Socket> {
        self.slots.get(index as usize)?.as_ref()
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut Socket> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Socket> {
        self.slots.iter().flatten()
    }

    /// Those with this port, in the order in which they came.
    pub(crate) fn with_port(&self, port: u16) -> impl Iterator<Item = &Socket> {
        let indices = self.by_port.get(&port).map_or(&[][..], |indices| indices);
        indices.iter().filter_map(|index| self.at(*index))
    }

    /// Whether a socket could have this address besides those that there are.
    pub(crate) fn is_free(&self, local: SocketAddr, options: &UdpOptions) -> bool {
        let dual = |address: SocketAddr, v6_only: bool| {
            address.is_ipv6() && address.ip().is_unspecified() && !v6_only
        };
        !self.with_port(local.port()).any(|other| {
            let versions = local.is_ipv4() == other.local.is_ipv4()
                || dual(local, options.v6_only)
                || dual(other.local, other.options.v6_only);
            let same = local.ip() == other.local.ip()
                || local.ip().is_unspecified()
                || other.local.ip().is_unspecified();
            let shared = local == other.local && options.share && other.options.share;
            let shared = shared || options.reuse_address && other.options.reuse_address;
            // A connected one has only its peer's datagrams.
            versions && same && !shared && other.remote.is_none()
        })
    }

    pub(crate) fn add(&mut self, local: SocketAddr, options: UdpOptions) -> UdpId {
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        if index as usize == self.slots.len() {
            self.slots.push(None);
            self.generations.push(0);
        }
        let generation = self.generations.get(index as usize).copied().unwrap_or(0);
        let id = UdpId::new(index, generation);
        let (remote, trouble, told) = (None, None, false);
        let (queue, groups) = (Queue::default(), Vec::new());
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = Some(Socket { id, local, remote, options, queue, groups, trouble, told });
        }
        self.by_port.entry(local.port()).or_default().push(index);
        id
    }

    pub(crate) fn remove(&mut self, id: UdpId) -> Option<Socket> {
        self.get(id)?;
        let index = id.index();
        let socket = self.slots.get_mut(index as usize)?.take()?;
        if let Some(generation) = self.generations.get_mut(index as usize) {
            *generation = generation.wrapping_add(1);
        }
        if let Some(indices) = self.by_port.get_mut(&socket.local.port()) {
            indices.retain(|other| *other != index);
            if indices.is_empty() {
                self.by_port.remove(&socket.local.port());
            }
        }
        self.free.push(index);
        Some(socket)
    }

    /// The socket for a datagram; `hash` chooses among those that share.
    pub(crate) fn find(&self, to: SocketAddr, from: SocketAddr, hash: u64) -> Option<u32> {
        let ranked = || self.with_port(to.port()).filter_map(|s| Some((s.rank(to, from)?, s)));
        let best = ranked().map(|(rank, _)| rank).min()?;
        let all = || ranked().filter(|(rank, _)| *rank == best);
        let chosen = if all().all(|(_, socket)| socket.options.share) {
            let count = all().count() as u64;
            all().nth((hash % count.max(1)) as usize)
        } else {
            all().last()
        };
        chosen.map(|(_, socket)| socket.id.index())
    }

    /// The sockets for a datagram to many: a group's members, or for a broadcast all that are bound to
    /// any address.
    pub(crate) fn find_all(&self, to: SocketAddr, from: SocketAddr) -> Vec<u32> {
        let wanted = |socket: &&Socket| {
            let fits = socket.rank(to, from).is_some();
            fits && (!to.ip().is_multicast() || socket.has_joined(to.ip(), from.ip()))
        };
        self.with_port(to.port()).filter(wanted).map(|socket| socket.id.index()).collect()
    }

    /// Joins or leaves a group.
    pub(crate) fn set_group(
        &mut self,
        id: UdpId,
        group: IpAddr,
        source: Option<IpAddr>,
        joins: bool,
    ) -> Result<(), UdpError> {
        let socket = self.get_mut(id).ok_or(UdpError::Gone)?;
        let versions = source.is_none_or(|source| source.is_ipv4() == group.is_ipv4());
        if !group.is_multicast() || !versions || !socket.takes_version_of(group) {
            return Err(UdpError::Group);
        }
        let known = socket.groups.iter().position(|member| *member == (group, source));
        match (known, joins) {
            (None, true) => socket.groups.push((group, source)),
            (Some(place), false) => drop(socket.groups.swap_remove(place)),
            (Some(_), true) => {}
            (None, false) => return Err(UdpError::Group),
        }
        Ok(())
    }
}
