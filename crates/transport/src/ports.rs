//! Ephemeral ports: RFC 6056 3.3.4, the double-hash algorithm.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use crate::ends::Ends;
use crate::siphash::Secret;

/// Counters, so that the steps to one peer tell nothing of the steps to another.
const TABLE: usize = 256;

/// Chooses ports.
#[derive(Debug)]
pub(crate) struct Ports {
    range: RangeInclusive<u16>,
    next: Box<[u32; TABLE]>,
}

impl Ports {
    pub(crate) fn new(range: RangeInclusive<u16>) -> Self {
        Self { range, next: Box::new([0; TABLE]) }
    }

    /// Chooses none.
    pub(crate) fn none() -> Self {
        #[allow(clippy::reversed_empty_ranges)]
        Self::new(1..=0)
    }

    /// A port from which `is_free` ends to `remote` lead; tries all.
    pub(crate) fn choose(
        &mut self,
        secret: &Secret,
        local: IpAddr,
        remote: SocketAddr,
        mut is_free: impl FnMut(&Ends) -> bool,
    ) -> Option<Ends> {
        let (low, high) = (u32::from(*self.range.start()), u32::from(*self.range.end()));
        let count = (high + 1).checked_sub(low)?;
        let base = Ends { local: SocketAddr::new(local, 0), remote };
        let offset = secret.hash_ends(&base, [3, 0]) as u32;
        let place = secret.hash_ends(&base, [4, 0]) as usize % TABLE;
        let counter = self.next.get_mut(place)?;
        for _ in 0..count {
            let port = low + offset.wrapping_add(*counter) % count;
            *counter = counter.wrapping_add(1);
            let ends = Ends { local: SocketAddr::new(local, port as u16), remote };
            if is_free(&ends) {
                return Some(ends);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_every_port_once() {
        let mut ports = Ports::new(100..=109);
        let remote: SocketAddr = "10.0.0.2:80".parse().unwrap();
        let mut taken = std::collections::BTreeSet::new();
        for _ in 0..10 {
            let local: IpAddr = "10.0.0.1".parse().unwrap();
            let free = |ends: &Ends| !taken.contains(&ends.local.port());
            let ends = ports.choose(&Secret([5, 6]), local, remote, free).unwrap();
            assert!((100..=109).contains(&ends.local.port()));
            taken.insert(ends.local.port());
        }
        let none = ports.choose(&Secret([5, 6]), "10.0.0.1".parse().unwrap(), remote, |_| false);
        assert_eq!((taken.len(), none), (10, None));
    }
}
