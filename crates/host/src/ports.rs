//! Local ports that were leased to this stack, for connections that are opened from here (RFC 6056 3.3.4, the double-hash
//! algorithm: one after the other, from where the last to the same peer was found, so that ports in TIME-WAIT come last), and for
//! sockets that are bound to any (3.3.1: a random one, then those behind it).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// Counters, so that the steps to one peer tell nothing of the steps to another.
const TABLE: usize = 256;

/// The leased ranges.
#[derive(Debug)]
pub(crate) struct Leases {
    ranges: Vec<(u16, u16)>,
    /// How many ports there are up to the end of each.
    ends: Vec<u32>,
    /// Random numbers are hashes of a secret and a count.
    secret: [u64; 2],
    count: u64,
    /// How far the walks to some peers have come.
    steps: Box<[u32; TABLE]>,
}

impl Leases {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { ranges: Vec::new(), ends: Vec::new(), secret, count: 0, steps: Box::new([0; TABLE]) }
    }

    /// `count` ports from `first` on are this stack's.
    pub(crate) fn add(&mut self, first: u16, count: u16) {
        let count = count.min(u16::MAX - first);
        if first != 0 && count > 0 && !self.ranges.contains(&(first, count)) {
            self.ranges.push((first, count));
            self.ends.push(self.total() + u32::from(count));
        }
    }

    pub(crate) fn ranges(&self) -> &[(u16, u16)] {
        &self.ranges
    }

    /// The range that begins there is this stack's no more.
    pub(crate) fn remove(&mut self, first: u16) {
        self.ranges.retain(|range| range.0 != first);
        let ends = self.ranges.iter().scan(0, |end, (_, count)| {
            *end += u32::from(*count);
            Some(*end)
        });
        self.ends = ends.collect();
    }

    /// Ports of all ranges.
    fn total(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn at(&self, place: u32) -> Option<u16> {
        let range = self.ends.partition_point(|end| *end <= place);
        let (end, (first, count)) = (self.ends.get(range)?, self.ranges.get(range)?);
        // Counted from the range's end: `place` is before it.
        Some(first + (u32::from(*count) - (end - place)) as u16)
    }

    /// All leased ports, from a random one on: each once.
    pub(crate) fn anywhere(&mut self) -> Walk {
        self.count = self.count.wrapping_add(1);
        let start = self.hash(self.count);
        Walk { start: start as u32, at: 0, left: self.total(), counter: None }
    }

    /// All leased ports for a connection to a peer, from behind the one that was found last: each once.
    pub(crate) fn towards(&self, source: IpAddr, remote: SocketAddr) -> Walk {
        let hash = self.hash((source, remote));
        let counter = (hash >> 32) as usize % TABLE;
        let at = self.steps.get(counter).copied().unwrap_or(0);
        Walk { start: hash as u32, at, left: self.total(), counter: Some(counter) }
    }

    fn hash(&self, of: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        of.hash(&mut hasher);
        hasher.finish()
    }
}

/// A walk over all leased ports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    start: u32,
    at: u32,
    left: u32,
    /// Where it is noted how far it has come.
    counter: Option<usize>,
}

impl Walk {
    pub(crate) fn next(&mut self, leases: &mut Leases) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        let place = u64::from(self.start) + u64::from(self.at);
        let place = (place % u64::from(leases.total().max(1))) as u32;
        self.at = self.at.wrapping_add(1);
        if let Some(step) = self.counter.and_then(|counter| leases.steps.get_mut(counter)) {
            *step = self.at;
        }
        leases.at(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_comes_once_from_a_random_start() {
        let mut leases = Leases::new([1, 2]);
        leases.add(10_240, 3);
        leases.add(20_000, 2);
        leases.add(20_000, 2);
        let mut starts = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let mut walk = leases.anywhere();
            let mut all: Vec<_> = std::iter::from_fn(|| walk.next(&mut leases)).collect();
            starts.insert(all[0]);
            all.sort_unstable();
            assert_eq!(all, [10_240, 10_241, 10_242, 20_000, 20_001]);
        }
        assert_eq!(starts.len(), 5);
        leases.remove(10_240);
        assert_eq!(leases.ranges(), [(20_000, 2)]);
        let mut walk = leases.anywhere();
        let mut rest: Vec<_> = std::iter::from_fn(|| walk.next(&mut leases)).collect();
        rest.sort_unstable();
        assert_eq!(rest, [20_000, 20_001]);
        assert_eq!(Leases::new([0; 2]).anywhere().next(&mut leases), None);
    }

    #[test]
    fn a_port_comes_again_after_all_others() {
        let mut leases = Leases::new([1, 2]);
        leases.add(10_240, 3);
        leases.add(20_000, 2);
        let source = IpAddr::from([10, 0, 0, 1]);
        let remote = SocketAddr::from(([10, 0, 0, 2], 80));
        let mut found: Vec<_> =
            (0..10).map(|_| leases.towards(source, remote).next(&mut leases)).collect();
        assert_eq!(found[..5], found[5..]);
        found.truncate(5);
        found.sort_unstable();
        assert_eq!(found, [10_240, 10_241, 10_242, 20_000, 20_001].map(Some));
        let mut walk = leases.towards(source, remote);
        assert_eq!(std::iter::from_fn(|| walk.next(&mut leases)).count(), 5);
        // The same where the count passes 2^32.
        let mut walk = Walk { start: u32::MAX, at: 0, left: 5, counter: None };
        let all: std::collections::BTreeSet<_> =
            std::iter::from_fn(|| walk.next(&mut leases)).collect();
        assert_eq!(all.len(), 5);
        // Where a walk begins, and how far it has come, differs from peer to peer.
        let firsts: std::collections::BTreeSet<_> = (1..100)
            .map(|port| leases.towards(source, (source, port).into()).next(&mut leases))
            .collect();
        assert_eq!(firsts.len(), 5);
    }
}
