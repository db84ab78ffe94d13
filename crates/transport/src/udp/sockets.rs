//! All UDP sockets: by handle, and by port.

use std::net::{IpAddr, SocketAddr};

use tables::PagedArray;

use super::{Memory, Queue, Reports, Socket, UdpError, UdpOptions};
use crate::handle::UdpId;

/// No place.
const NONE: u32 = u32::MAX;

/// Where a socket is, or was.
#[derive(Debug)]
struct Place {
    socket: Option<Socket>,
    generation: u32,
    /// The next at its port, in the order in which they came; of one that is free, the next that is.
    next: u32,
    /// The one before at its port; of the first, the last.
    previous: u32,
}

impl Default for Place {
    fn default() -> Self {
        Self { socket: None, generation: 0, next: NONE, previous: NONE }
    }
}

/// The sockets of a stack. However many there are, one more moves none of them.
#[derive(Debug)]
pub(crate) struct Sockets {
    places: PagedArray<Place>,
    /// Places that are or were taken.
    count: u32,
    free: u32,
    /// The first at each port, plus one; 0: there is none.
    first: PagedArray<u32>,
    memory: Memory,
}

impl Default for Sockets {
    fn default() -> Self {
        let (places, first) = (PagedArray::new(), PagedArray::new());
        Self { places, count: 0, free: NONE, first, memory: Memory::default() }
    }
}

impl Sockets {
    /// Bytes of a socket's place.
    pub(crate) const PLACE: usize = size_of::<Place>();

    /// Bytes of memory of what waits in all of them.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.held()
    }

    /// There may be so many.
    pub(crate) fn limit_memory(&mut self, most: usize) {
        self.memory.limit(most);
    }

    /// Changes what waits in a socket, which may take the bytes more that `act` is told.
    pub(crate) fn change<R>(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Socket, usize) -> R,
    ) -> Option<R> {
        let Self { places, memory, .. } = self;
        let socket = places.get_mut(index as usize)?.socket.as_mut()?;
        let room = memory.room();
        memory.leave(socket);
        let result = act(socket, room);
        memory.enter(socket);
        Some(result)
    }

    /// The same by its handle.
    pub(crate) fn change_own<R>(
        &mut self,
        id: UdpId,
        act: impl FnOnce(&mut Socket, usize) -> R,
    ) -> Option<R> {
        self.get(id)?;
        self.change(id.index(), act)
    }

    pub(crate) fn get(&self, id: UdpId) -> Option<&Socket> {
        self.at(id.index()).filter(|socket| socket.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: UdpId) -> Option<&mut Socket> {
        self.at_mut(id.index()).filter(|socket| socket.id == id)
    }

    pub(crate) fn at(&self, index: u32) -> Option<&Socket> {
        self.places.get(index as usize)?.socket.as_ref()
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut Socket> {
        self.places.get_mut(index as usize)?.socket.as_mut()
    }

    /// Places that are or were taken.
    pub(crate) fn places(&self) -> u32 {
        self.count
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Socket> {
        self.places.iter().filter_map(|(_, place)| place.socket.as_ref())
    }

    fn first(&self, port: u16) -> u32 {
        self.first.get(usize::from(port)).map_or(NONE, |first| first.wrapping_sub(1))
    }

    fn set_first(&mut self, port: u16, index: u32) {
        self.first.put(usize::from(port), index.wrapping_add(1));
    }

    /// Those with this port, in the order in which they came.
    pub(crate) fn with_port(&self, port: u16) -> impl Iterator<Item = &Socket> {
        let first = self.places.get(self.first(port) as usize);
        let next = |place: &&Place| self.places.get(place.next as usize);
        std::iter::successors(first, next).filter_map(|place| place.socket.as_ref())
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
        if self.free == NONE {
            self.free = self.count;
            self.places.put(self.count as usize, Place::default());
            self.count += 1;
        }
        let (index, port) = (self.free, local.port());
        let first = self.first(port);
        let last = self.places.get(first as usize).map_or(index, |first| first.previous);
        let mut id = UdpId::new(index, 0);
        if let Some(place) = self.places.get_mut(index as usize) {
            id = UdpId::new(index, place.generation);
            self.free = std::mem::replace(&mut place.next, NONE);
            place.previous = last;
            place.socket = Some(Socket {
                id,
                local,
                remote: None,
                options,
                queue: Queue::default(),
                groups: Vec::new(),
                trouble: None,
                reports: Reports::default(),
                dropped: 0,
                told: false,
            });
        }
        if first == NONE {
            self.set_first(port, index);
            return id;
        }
        if let Some(last) = self.places.get_mut(last as usize) {
            last.next = index;
        }
        if let Some(first) = self.places.get_mut(first as usize) {
            first.previous = index;
        }
        id
    }

    pub(crate) fn remove(&mut self, id: UdpId) -> Option<Socket> {
        self.get(id)?;
        let index = id.index();
        let place = self.places.get_mut(index as usize)?;
        let socket = place.socket.take()?;
        self.memory.leave(&socket);
        place.generation = place.generation.wrapping_add(1);
        let (next, previous) = (place.next, place.previous);
        place.next = std::mem::replace(&mut self.free, index);
        let port = socket.local.port();
        let first = self.first(port);
        // Behind the last comes none, but before the first the last.
        if first == index {
            self.set_first(port, next);
        } else if let Some(previous) = self.places.get_mut(previous as usize) {
            previous.next = next;
        }
        let behind = if next == NONE { self.first(port) } else { next };
        if let Some(behind) = self.places.get_mut(behind as usize) {
            behind.previous = previous;
        }
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

    /// The next socket at its port behind `after`, or the first of all, for a datagram to many: a group's members, or for
    /// a broadcast all that are bound to any address.
    pub(crate) fn find_next(
        &self,
        after: Option<u32>,
        to: SocketAddr,
        from: SocketAddr,
    ) -> Option<u32> {
        let mut at = match after {
            Some(index) => self.places.get(index as usize)?.next,
            None => self.first(to.port()),
        };
        loop {
            let place = self.places.get(at as usize)?;
            let socket = place.socket.as_ref()?;
            let fits = socket.rank(to, from).is_some();
            if fits && (!to.ip().is_multicast() || socket.has_joined(to.ip(), from.ip())) {
                return Some(at);
            }
            at = place.next;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at_port(port: u16) -> SocketAddr {
        ([0; 4], port).into()
    }

    #[test]
    fn one_more_moves_no_other() {
        let mut sockets = Sockets::default();
        let first = sockets.add(at_port(1), UdpOptions::default());
        let place = std::ptr::from_ref(sockets.get(first).unwrap());
        for count in 1..5000 {
            sockets.add(at_port(1 + count % 3), UdpOptions::default());
            assert_eq!(std::ptr::from_ref(sockets.get(first).unwrap()), place, "after {count}");
        }
    }

    proptest! {
        #[test]
        fn a_port_has_its_own_in_order(steps in proptest::collection::vec((0..3u8, 0..3u16, any::<usize>()), 0..120)) {
            let (mut sockets, mut model) = (Sockets::default(), Vec::<(UdpId, u16)>::new());
            for (kind, port, which) in steps {
                if kind < 2 || model.is_empty() {
                    model.push((sockets.add(at_port(port), UdpOptions::default()), port));
                } else {
                    let (id, _) = model.remove(which % model.len());
                    prop_assert!(sockets.remove(id).is_some_and(|socket| socket.id == id));
                    prop_assert!(sockets.remove(id).is_none() && sockets.get(id).is_none());
                }
                for port in 0..3 {
                    let own = model.iter().filter(|(_, other)| *other == port).map(|(id, _)| *id);
                    let own: Vec<UdpId> = own.collect();
                    let listed: Vec<UdpId> = sockets.with_port(port).map(|socket| socket.id).collect();
                    prop_assert_eq!(&listed, &own);
                    let (to, from) = (([255; 4], port).into(), ([10, 0, 0, 1], 9).into());
                    let next = |after: &u32| sockets.find_next(Some(*after), to, from);
                    let all: Vec<u32> = std::iter::successors(sockets.find_next(None, to, from), next).collect();
                    prop_assert_eq!(all, own.iter().map(|id| id.index()).collect::<Vec<_>>());
                }
                prop_assert_eq!(sockets.all().count(), model.len());
            }
        }
    }
}
