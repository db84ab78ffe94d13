//! Path MTUs that outlive a connection, per peer (RFC 1191 6.2 and 6.3, RFC 8201 5.2 and 5.3).

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::options::SECOND;

/// How long a path MTU is believed: ns (RFC 1191 6.3: 10 minutes).
pub(crate) const LIFE: u64 = 600 * SECOND;

/// Packets are not made smaller than these: bytes, IPv4 (Linux's `min_pmtu`) and IPv6 (RFC 8200 5).
pub(crate) const LEAST: (u16, u16) = (552, 1280);

/// What a path takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Bytes of an IP packet.
    pub(crate) mtu: u16,
    /// The path takes even less, so routers may cut packets (RFC 1191 3: a host may cease to set DF; as Linux does).
    pub(crate) narrow: bool,
}

impl Limit {
    /// A router says that the path to `peer` takes `mtu` bytes.
    pub(crate) fn told(peer: IpAddr, mtu: u16) -> Self {
        let least = if peer.is_ipv4() { LEAST.0 } else { LEAST.1 };
        Self { mtu: mtu.max(least), narrow: mtu < least && peer.is_ipv4() }
    }
}

/// What is known of a path.
#[derive(Debug, Clone, Copy)]
struct Path {
    limit: Limit,
    /// ns.
    expires: u64,
}

/// Paths that take less than the port does, so many at most.
#[derive(Debug)]
pub(crate) struct Paths {
    known: BTreeMap<IpAddr, Path>,
    most: usize,
}

impl Paths {
    pub(crate) fn new(most: usize) -> Self {
        Self { known: BTreeMap::new(), most }
    }

    /// What the path to `peer` takes. `None`: nothing is known that still holds.
    pub(crate) fn find(&mut self, peer: IpAddr, now: u64) -> Option<Limit> {
        let path = self.known.get(&peer)?;
        if path.expires <= now {
            self.known.remove(&peer);
            return None;
        }
        Some(path.limit)
    }

    /// Bytes of a packet to `peer`, at a glance.
    pub(crate) fn known(&self, peer: IpAddr, now: u64) -> Option<u16> {
        self.known.get(&peer).filter(|path| path.expires > now).map(|path| path.limit.mtu)
    }

    /// The path to `peer` takes packets up to `limit`.
    pub(crate) fn learn(&mut self, peer: IpAddr, limit: Limit, now: u64) {
        if self.known.len() >= self.most && !self.known.contains_key(&peer) {
            let oldest = self.known.iter().min_by_key(|(_, path)| path.expires);
            match oldest.map(|(peer, _)| *peer) {
                Some(peer) => self.known.remove(&peer),
                None => return,
            };
        }
        self.known.insert(peer, Path { limit, expires: now.saturating_add(LIFE) });
    }

    /// The path to `peer` takes all that the port does.
    pub(crate) fn forget(&mut self, peer: IpAddr) {
        self.known.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_bounded_and_expires() {
        let mut paths = Paths::new(2);
        let peer = |n: u8| IpAddr::from([10, 0, 0, n]);
        let of = |mtu: u16| Limit { mtu, narrow: false };
        paths.learn(peer(1), of(1300), 5);
        paths.learn(peer(2), of(1400), 6);
        paths.learn(peer(1), of(1200), 7);
        paths.learn(peer(3), of(1100), 8);
        assert_eq!(paths.find(peer(2), 9), None, "the oldest made room");
        let found = (paths.find(peer(1), 9), paths.find(peer(3), 9));
        assert_eq!(found, (Some(of(1200)), Some(of(1100))));
        assert_eq!((paths.known(peer(1), 9), paths.known(peer(1), 7 + LIFE)), (Some(1200), None));
        assert_eq!(paths.find(peer(1), 7 + LIFE), None);
        paths.forget(peer(3));
        assert_eq!((paths.find(peer(3), 9), paths.known.len()), (None, 0));
        let mut none = Paths::new(0);
        none.learn(peer(1), of(1300), 5);
        assert_eq!(none.find(peer(1), 5), None);
    }

    #[test]
    fn what_is_told_has_a_least() {
        let (v4, v6) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([1u16; 8]));
        let told = Limit::told;
        assert_eq!(told(v4, 1400), Limit { mtu: 1400, narrow: false });
        assert_eq!(told(v4, 552), Limit { mtu: 552, narrow: false });
        assert_eq!(told(v4, 551), Limit { mtu: 552, narrow: true });
        assert_eq!(told(v6, 1000), Limit { mtu: 1280, narrow: false });
    }
}
