//! Listening sockets: where connections come in, and wait to be accepted.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::handle::{ConnectionId, ListenerId};
use crate::options::{Options, SECOND};

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: ListenerId,
    pub(crate) address: SocketAddr,
    pub(crate) options: Arc<Options>,
    /// Connections that wait at most, half-open ones too.
    pub(crate) backlog: usize,
    /// Connections whose handshake goes on.
    pub(crate) half_open: usize,
    /// Of those that wait or were accepted: made by Fast Open, handshake not over.
    pub(crate) fast_open: usize,
    /// Until then those that were reset during the handshake are counted too (RFC 7413 5.1): ns.
    pub(crate) fast_resets: VecDeque<u64>,
    /// Connections that wait to be accepted.
    pub(crate) queue: VecDeque<ConnectionId>,
    /// `Incoming` is in the queue of events.
    pub(crate) told: bool,
    /// SYN cookies were sent: their answers are taken until then: ns.
    pub(crate) cookies_until: u64,
}

/// How long a connection that was reset during its handshake counts (RFC 7413 5.1): ns.
const RESET_LIFE: u64 = 60 * SECOND;

impl Listener {
    /// Whether one more connection may be made by Fast Open.
    pub(crate) fn takes_fast_open(&mut self, now: u64) -> bool {
        while self.fast_resets.front().is_some_and(|until| *until <= now) {
            self.fast_resets.pop_front();
        }
        self.fast_open + self.fast_resets.len() < usize::from(self.options.fast_open_pending)
    }

    /// The handshake of a connection that Fast Open made is over; `reset`: by a reset.
    pub(crate) fn end_fast_open(&mut self, reset: bool, now: u64) {
        self.fast_open = self.fast_open.saturating_sub(1);
        if reset {
            self.fast_resets.push_back(now.saturating_add(RESET_LIFE));
        }
    }
}

/// All listeners. There are few, so they are a list by port.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    slots: Vec<Option<Listener>>,
    generations: Vec<u32>,
}

impl Listeners {
    pub(crate) fn add(
        &mut self,
        address: SocketAddr,
        backlog: usize,
        options: Arc<Options>,
    ) -> ListenerId {
        let index = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(None);
            self.generations.push(0);
        }
        let generation = self.generations.get(index).copied().unwrap_or(0);
        let id = ListenerId::new(index as u32, generation);
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(Listener {
                id,
                address,
                options,
                backlog: backlog.max(1),
                half_open: 0,
                fast_open: 0,
                fast_resets: VecDeque::new(),
                queue: VecDeque::new(),
                told: false,
                cookies_until: 0,
            });
        }
        id
    }

    pub(crate) fn get_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        let listener = self.slots.get_mut(id.index() as usize)?.as_mut()?;
        (listener.id == id).then_some(listener)
    }

    pub(crate) fn remove(&mut self, id: ListenerId) -> Option<Listener> {
        self.get_mut(id)?;
        let generation = self.generations.get_mut(id.index() as usize)?;
        *generation = generation.wrapping_add(1);
        self.slots.get_mut(id.index() as usize)?.take()
    }

    /// Whether a listener has exactly this address.
    pub(crate) fn has(&self, address: SocketAddr) -> bool {
        self.slots.iter().flatten().any(|listener| listener.address == address)
    }

    /// The listener for packets to `local`: its own address before any address of the version
    /// before any address at all.
    pub(crate) fn find(&mut self, local: SocketAddr) -> Option<&mut Listener> {
        let rank = |listener: &Listener| {
            let address = listener.address;
            if address.port() != local.port() {
                return None;
            }
            match () {
                () if address.ip() == local.ip() => Some(0),
                () if !address.ip().is_unspecified() => None,
                () if address.is_ipv4() == local.is_ipv4() => Some(1),
                // A dual-stack listener takes both.
                () if address.is_ipv6() => Some(2),
                () => None,
            }
        };
        self.slots
            .iter_mut()
            .flatten()
            .filter_map(|listener| Some((rank(listener)?, listener)))
            .min_by_key(|(rank, _)| *rank)
            .map(|(_, listener)| listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_address_wins() {
        let mut all = Listeners::default();
        let options = Arc::new(Options::default());
        let mut add = |text: &str| all.add(text.parse().unwrap(), 1, Arc::clone(&options));
        let (any6, any4, one) = (add("[::]:80"), add("0.0.0.0:80"), add("10.0.0.1:80"));
        let mut find = |text: &str| all.find(text.parse().unwrap()).map(|found| found.id);
        assert_eq!(find("10.0.0.1:80"), Some(one));
        assert_eq!(find("10.0.0.2:80"), Some(any4));
        assert_eq!(find("[fd00::1]:80"), Some(any6));
        assert_eq!(find("10.0.0.1:81"), None);
        assert!(all.remove(any4).is_some() && all.remove(any4).is_none());
        assert_eq!(all.find("10.0.0.2:80".parse().unwrap()).map(|found| found.id), Some(any6));
    }
}
