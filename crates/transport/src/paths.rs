//! Path MTUs that outlive a connection, per peer (RFC 1191 6.2 and 6.3, RFC 8201 5.2 and 5.3).

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::options::SECOND;

/// How long a path MTU is believed: ns (RFC 1191 6.3: 10 minutes).
pub(crate) const LIFE: u64 = 600 * SECOND;

/// What is known of a path.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// Bytes of an IP packet.
    mtu: u16,
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

    /// What a packet to `peer` may be: bytes. `None`: nothing is known that still holds.
    pub(crate) fn mtu(&mut self, peer: IpAddr, now: u64) -> Option<u16> {
        let path = self.known.get(&peer)?;
        if path.expires <= now {
            self.known.remove(&peer);
            return None;
        }
        Some(path.mtu)
    }

    /// The same, at a glance.
    pub(crate) fn known(&self, peer: IpAddr, now: u64) -> Option<u16> {
        self.known.get(&peer).filter(|path| path.expires > now).map(|path| path.mtu)
    }

    /// The path to `peer` takes `mtu` bytes.
    pub(crate) fn learn(&mut self, peer: IpAddr, mtu: u16, now: u64) {
        if self.known.len() >= self.most && !self.known.contains_key(&peer) {
            let oldest = self.known.iter().min_by_key(|(_, path)| path.expires);
            match oldest.map(|(peer, _)| *peer) {
                Some(peer) => self.known.remove(&peer),
                None => return,
            };
        }
        self.known.insert(peer, Path { mtu, expires: now.saturating_add(LIFE) });
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
        paths.learn(peer(1), 1300, 5);
        paths.learn(peer(2), 1400, 6);
        paths.learn(peer(1), 1200, 7);
        paths.learn(peer(3), 1100, 8);
        assert_eq!(paths.mtu(peer(2), 9), None, "the oldest made room");
        assert_eq!((paths.mtu(peer(1), 9), paths.mtu(peer(3), 9)), (Some(1200), Some(1100)));
        assert_eq!((paths.known(peer(1), 9), paths.known(peer(1), 7 + LIFE)), (Some(1200), None));
        assert_eq!(paths.mtu(peer(1), 7 + LIFE), None);
        paths.forget(peer(3));
        assert_eq!((paths.mtu(peer(3), 9), paths.known.len()), (None, 0));
        let mut none = Paths::new(0);
        none.learn(peer(1), 1300, 5);
        assert_eq!(none.mtu(peer(1), 5), None);
    }
}
