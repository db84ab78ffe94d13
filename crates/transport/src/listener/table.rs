//! All sockets that have an address of their own: by handle, by port, and those that listen by address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tables::{PagedArray, PagedQueue};

use super::binding::{ANY, Binding, Claim, Spread};
use super::{Listener, Socket};
use crate::ends::Ends;
use crate::handle::ListenerId;
use crate::options::Options;

/// Where a socket is, or was.
#[derive(Debug, Default)]
struct Slot {
    socket: Option<Socket>,
    generation: u32,
}

/// The sockets of a stack.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    slots: PagedArray<Slot>,
    /// Slots that are or were taken.
    count: u32,
    free: PagedQueue<u32>,
    by_port: PagedArray<PagedQueue<u32>>,
    /// Those that listen; several at one address are a group.
    by_address: BTreeMap<SocketAddr, PagedQueue<u32>>,
    /// Connections that were opened from each port without a socket that is bound to it.
    opened: PagedArray<u32>,
}

impl Listeners {
    /// Binds a socket. Whether the address is free was asked before.
    pub(crate) fn add(&mut self, address: SocketAddr, binding: Binding) -> ListenerId {
        let index = self.free.pop_front().unwrap_or(self.count);
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        let id = ListenerId::new(index, generation);
        let claim = Claim { address, binding, listens: false };
        let socket = Some(Socket { id, claim, users: 0, is_open: true, listener: None });
        self.slots.put(index as usize, Slot { socket, generation });
        self.count = self.count.max(index + 1);
        let port = usize::from(address.port());
        if self.by_port.get(port).is_none() {
            self.by_port.put(port, PagedQueue::new());
        }
        if let Some(sockets) = self.by_port.get_mut(port) {
            sockets.push_back(index);
        }
        id
    }

    fn at(&self, index: u32) -> Option<&Socket> {
        self.slots.get(index as usize)?.socket.as_ref()
    }

    fn any_mut(&mut self, id: ListenerId) -> Option<&mut Socket> {
        let socket = self.slots.get_mut(id.index() as usize)?.socket.as_mut()?;
        (socket.id == id).then_some(socket)
    }

    /// A socket that the application holds, listening or not.
    pub(crate) fn socket(&self, id: ListenerId) -> Option<&Socket> {
        self.at(id.index()).filter(|socket| socket.id == id && socket.is_open)
    }

    /// One that listens.
    pub(crate) fn get(&self, id: ListenerId) -> Option<&Listener> {
        self.socket(id)?.listener.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.any_mut(id).filter(|socket| socket.is_open)?.listener.as_deref_mut()
    }

    /// Whether `claim` could stand beside all others at its port but `own`. `strict`: any overlap counts,
    /// as for ports that the stack chooses.
    pub(crate) fn is_free(&self, claim: &Claim, own: Option<ListenerId>, strict: bool) -> bool {
        let others = self.by_port.get(usize::from(claim.address.port()));
        let others = others.into_iter().flat_map(PagedQueue::iter);
        others.filter_map(|index| self.at(*index)).all(|other| {
            let conflicts =
                if strict { claim.overlaps(&other.claim) } else { claim.conflicts(&other.claim) };
            Some(other.id) == own || !conflicts
        })
    }

    /// Whether a socket is bound to this port at any address: connections do not get it by themselves.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.by_port.get(usize::from(port)).is_some_and(|sockets| !sockets.is_empty())
    }

    /// A connection was opened from `port`, which no socket is bound to, or is over.
    pub(crate) fn count_opened(&mut self, port: u16, one_more: bool) {
        let count = self.opened.get(usize::from(port)).copied().unwrap_or(0);
        let count = if one_more { count.saturating_add(1) } else { count.saturating_sub(1) };
        self.opened.put(usize::from(port), count);
    }

    /// Whether there are such connections.
    pub(crate) fn has_opened(&self, port: u16) -> bool {
        self.opened.get(usize::from(port)).is_some_and(|count| *count > 0)
    }

    /// Has a socket listen.
    pub(crate) fn listen(&mut self, id: ListenerId, backlog: usize, options: Arc<Options>) {
        let Some(socket) = self.any_mut(id) else { return };
        socket.claim.listens = true;
        socket.listener = Some(Box::new(Listener::new(id, backlog, options)));
        let address = socket.claim.address;
        self.by_address.entry(address).or_default().push_back(id.index());
    }

    /// A connection holds the socket's address now.
    pub(crate) fn enter(&mut self, id: ListenerId) {
        if let Some(socket) = self.any_mut(id) {
            socket.users += 1;
        }
    }

    /// It does no longer.
    pub(crate) fn leave(&mut self, id: ListenerId) {
        if let Some(socket) = self.any_mut(id) {
            socket.users = socket.users.saturating_sub(1);
            if socket.users == 0 && !socket.is_open {
                self.forget(id);
            }
        }
    }

    /// The application lets go of a socket. Its address stays taken for as long as connections have it.
    pub(crate) fn close(&mut self, id: ListenerId) -> Option<Box<Listener>> {
        let socket = self.any_mut(id).filter(|socket| socket.is_open)?;
        socket.is_open = false;
        socket.claim.listens = false;
        let (address, users) = (socket.claim.address, socket.users);
        let listener = socket.listener.take();
        if let Some(group) = self.by_address.get_mut(&address) {
            group.retain(|other| *other != id.index());
            if group.is_empty() {
                self.by_address.remove(&address);
            }
        }
        if users == 0 {
            self.forget(id);
        }
        listener
    }

    fn forget(&mut self, id: ListenerId) {
        let index = id.index();
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let Some(socket) = slot.socket.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        let port = socket.claim.address.port();
        if let Some(sockets) = self.by_port.get_mut(usize::from(port)) {
            sockets.retain(|other| *other != index);
        }
        self.free.push_back(index);
    }

    /// The group for packets to `local`: its own address before any address of the version before any
    /// address at all.
    fn group(&self, local: SocketAddr) -> impl Iterator<Item = &Socket> {
        let any_v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let both = |index: &u32| self.at(*index).is_some_and(|s| !s.claim.binding.v6_only);
        let at = |ip| self.by_address.get(&SocketAddr::new(ip, local.port()));
        let own = at(local.ip());
        let found = if local.is_ipv4() {
            own.or_else(|| at(any_v4)).or_else(|| at(ANY).filter(|group| group.iter().any(both)))
        } else {
            own.or_else(|| at(ANY))
        };
        found.into_iter().flat_map(PagedQueue::iter).filter_map(|index| self.at(*index))
    }

    /// Whether somebody listens for packets to `local`.
    pub(crate) fn is_listening(&self, local: SocketAddr) -> bool {
        self.group(local).next().is_some()
    }

    /// The listener for a connection between `ends`; `hash`: of them, chooses within a group.
    pub(crate) fn find(&mut self, ends: &Ends, hash: u64) -> Option<&mut Listener> {
        let id = self.choose(ends.local, hash)?;
        self.get_mut(id)
    }

    fn choose(&self, local: SocketAddr, hash: u64) -> Option<ListenerId> {
        let takes = |socket: &&Socket| {
            socket.claim.address.is_ipv4() == local.is_ipv4() || !socket.claim.binding.v6_only
        };
        let members = || self.group(local).filter(takes);
        let count = members().count() as u64;
        if count < 2 {
            return members().next().map(|socket| socket.id);
        }
        let spread = members().next().map(|socket| socket.claim.binding.spread);
        let place = (hash % count) as usize;
        match spread? {
            Spread::Hash => members().nth(place).map(|socket| socket.id),
            // Equally busy ones take turns by the hash.
            Spread::Load => members()
                .enumerate()
                .min_by_key(|(at, socket)| {
                    (socket.users, (at + count as usize - place) % count as usize)
                })
                .map(|(_, socket)| socket.id),
        }
    }

    /// Whether one of those that listen at `local` has sent cookies not long ago.
    pub(crate) fn takes_cookies(&self, local: SocketAddr, now: u64) -> bool {
        self.group(local)
            .filter_map(|s| s.listener.as_ref())
            .any(|listener| now < listener.cookies_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(all: &mut Listeners, text: &str, binding: Binding) -> ListenerId {
        let id = all.add(text.parse().unwrap(), binding);
        all.listen(id, 1, Arc::default());
        id
    }

    fn find(all: &mut Listeners, local: &str, hash: u64) -> Option<ListenerId> {
        let local: SocketAddr = local.parse().unwrap();
        let ends = Ends { local, remote: local };
        all.find(&ends, hash).map(|listener| listener.id)
    }

    #[test]
    fn the_closest_address_wins() {
        let mut all = Listeners::default();
        let [any6, any4, one] = ["[::]:80", "0.0.0.0:80", "10.0.0.1:80"]
            .map(|a| listen(&mut all, a, Binding::default()));
        assert_eq!(find(&mut all, "10.0.0.1:80", 0), Some(one));
        assert_eq!(find(&mut all, "10.0.0.2:80", 0), Some(any4));
        assert_eq!(find(&mut all, "[fd00::1]:80", 0), Some(any6));
        assert_eq!(find(&mut all, "10.0.0.1:81", 0), None);
        assert!(all.close(any4).is_some() && all.close(any4).is_none());
        assert_eq!(find(&mut all, "10.0.0.2:80", 0), Some(any6));
        all.close(any6);
        let only = listen(&mut all, "[::]:80", Binding { v6_only: true, ..Binding::default() });
        assert_eq!(find(&mut all, "10.0.0.2:80", 0), None);
        assert_eq!(find(&mut all, "[fd00::2]:80", 0), Some(only));
    }

    #[test]
    fn a_group_shares_by_hash_or_by_load() {
        for spread in [Spread::Hash, Spread::Load] {
            let mut all = Listeners::default();
            let binding = Binding { reuse_port: true, spread, ..Binding::default() };
            let ids = [(); 3].map(|()| listen(&mut all, "10.0.0.1:80", binding));
            let chosen = [0, 1, 2, 3].map(|hash| find(&mut all, "10.0.0.1:80", hash).unwrap());
            assert_eq!(chosen, [ids[0], ids[1], ids[2], ids[0]]);
            all.enter(ids[1]);
            let expected = if spread == Spread::Hash { ids[1] } else { ids[2] };
            assert_eq!(find(&mut all, "10.0.0.1:80", 1), Some(expected));
            all.close(ids[0]);
            let chosen = [0, 1].map(|hash| find(&mut all, "10.0.0.1:80", hash).unwrap());
            assert!(!chosen.contains(&ids[0]) && chosen.contains(&ids[2]));
        }
    }

    #[test]
    fn an_address_is_taken_for_as_long_as_connections_have_it() {
        let mut all = Listeners::default();
        let id = listen(&mut all, "0.0.0.0:80", Binding::default());
        all.enter(id);
        all.close(id);
        let claim = |reuse_address| Claim {
            address: "10.0.0.1:80".parse().unwrap(),
            binding: Binding { reuse_address, ..Binding::default() },
            listens: false,
        };
        assert!(!all.is_free(&claim(true), None, false) && all.get_mut(id).is_none());
        all.leave(id);
        assert!(all.is_free(&claim(false), None, false) && !all.has_port(80));
        let next = all.add("10.0.0.1:80".parse().unwrap(), Binding::default());
        assert_ne!(next, id, "another generation");
    }
}
