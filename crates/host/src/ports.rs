//! Local ports that were leased to this stack, for connections that are opened from here (RFC 6056 3.3.1:
//! a random one, then those behind it).

use std::hash::{DefaultHasher, Hasher};

/// The leased ranges.
#[derive(Debug)]
pub(crate) struct Leases {
    ranges: Vec<(u16, u16)>,
    total: u32,
    /// Random numbers are hashes of a secret and a count.
    secret: [u64; 2],
    count: u64,
}

impl Leases {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { ranges: Vec::new(), total: 0, secret, count: 0 }
    }

    /// `count` ports from `first` on are this stack's.
    pub(crate) fn add(&mut self, first: u16, count: u16) {
        let count = count.min(u16::MAX - first);
        if first != 0 && count > 0 && !self.ranges.contains(&(first, count)) {
            self.ranges.push((first, count));
            self.total += u32::from(count);
        }
    }

    pub(crate) fn ranges(&self) -> &[(u16, u16)] {
        &self.ranges
    }

    /// The range that begins there is this stack's no more.
    pub(crate) fn remove(&mut self, first: u16) {
        self.ranges.retain(|range| range.0 != first);
        self.total = self.ranges.iter().map(|(_, count)| u32::from(*count)).sum();
    }

    fn at(&self, place: u32) -> Option<u16> {
        let mut place = place;
        for (first, count) in &self.ranges {
            if place < u32::from(*count) {
                return Some(first + place as u16);
            }
            place -= u32::from(*count);
        }
        None
    }

    /// All leased ports in a random order of a kind: each once.
    pub(crate) fn shuffled(&mut self) -> Shuffled {
        let mut hasher = DefaultHasher::new();
        self.count = self.count.wrapping_add(1);
        for word in [self.secret[0], self.secret[1], self.count] {
            hasher.write_u64(word);
        }
        let start = hasher.finish() % u64::from(self.total.max(1));
        Shuffled { next: start as u32, left: self.total }
    }
}

/// A walk over all leased ports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shuffled {
    next: u32,
    left: u32,
}

impl Shuffled {
    pub(crate) fn next(&mut self, leases: &Leases) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        let port = leases.at(self.next);
        self.next = (self.next + 1) % leases.total.max(1);
        port
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
            let mut walk = leases.shuffled();
            let mut all: Vec<_> = std::iter::from_fn(|| walk.next(&leases)).collect();
            starts.insert(all[0]);
            all.sort_unstable();
            assert_eq!(all, [10_240, 10_241, 10_242, 20_000, 20_001]);
        }
        assert_eq!(starts.len(), 5);
        leases.remove(10_240);
        assert_eq!(leases.ranges(), [(20_000, 2)]);
        assert_eq!(Leases::new([0; 2]).shuffled().next(&leases), None);
    }
}
