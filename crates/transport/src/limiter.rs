//! How many answers that nobody is owed may leave in a second.
//!
//! A fixed limit for all tells whoever shares it how many of them others were sent: that is how the numbers of
//! a connection between others were guessed (CVE-2016-5696), and the ports of a resolver (SAD DNS,
//! CVE-2020-25705). So each second has an allowance of its own, and each destination a share of it that others
//! cannot use up.

use std::net::IpAddr;

use crate::ends::to_v6;
use crate::options::SECOND;
use crate::siphash::Secret;

/// Counters for destinations; which share one is a secret.
const PLACES: usize = 1024;
/// Bits of an IPv6 address that are a network's: who has one has all in it.
const NETWORK: u32 = 64;

/// Counts answers of one kind.
#[derive(Debug)]
pub(crate) struct Limiter {
    secret: Secret,
    /// Keeps this kind's hashes apart from others'.
    kind: u64,
    second: u64,
    /// Left of this second's allowance.
    left: u32,
    /// Second, modulo 2^32, and answers in it, by destination; nothing before the first.
    used: Vec<(u32, u32)>,
}

impl Limiter {
    pub(crate) fn new(secret: Secret, kind: u64) -> Self {
        // Now, so that no packet waits for it.
        Self { secret, kind, second: u64::MAX, left: 0, used: vec![(0, 0); PLACES] }
    }

    /// Whether one may go to `peer` at `now` (ns), `mean` being how many may in a second on average.
    pub(crate) fn allow(&mut self, peer: IpAddr, now: u64, mean: u32) -> bool {
        let second = now / SECOND;
        if second != self.second {
            self.second = second;
            let random = self.secret.hash(&[self.kind, second]);
            // Half to one and a half times the mean.
            let span = u64::from(mean) + 1;
            self.left =
                (u64::from(mean.div_ceil(2)) + random % span).min(u64::from(u32::MAX)) as u32;
        }
        // The destination's share first: what it is refused takes nothing from others.
        if !self.allow_one(peer, second as u32, mean.div_ceil(4)) || self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }

    fn allow_one(&mut self, peer: IpAddr, second: u32, most: u32) -> bool {
        let bits = to_v6(peer).to_bits();
        let bits = if peer.is_ipv4() { bits } else { bits >> (128 - NETWORK) };
        let hash = self.secret.hash(&[self.kind, (bits >> 64) as u64, bits as u64]);
        let Some((when, used)) = self.used.get_mut(hash as usize % PLACES) else { return false };
        if *when != second {
            (*when, *used) = (second, 0);
        }
        *used = used.saturating_add(1);
        *used <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(n).into()
    }

    /// Answers of `tries` to as many peers in a second.
    fn allowed(limiter: &mut Limiter, second: u64, tries: u32, peers: u32) -> usize {
        let now = second * SECOND;
        (0..tries).filter(|n| limiter.allow(peer(n % peers), now, 1000)).count()
    }

    #[test]
    fn a_second_has_an_allowance_that_nobody_foresees() {
        let mut limiter = Limiter::new(Secret([1, 2]), 1);
        let counts: Vec<usize> =
            (5..45).map(|second| allowed(&mut limiter, second, 4000, 4000)).collect();
        assert!(counts.iter().all(|count| (500..=1500).contains(count)), "{counts:?}");
        let mut different = counts.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > 30, "{counts:?}");
        let mean = counts.iter().sum::<usize>() / counts.len();
        assert!((850..1150).contains(&mean), "{mean}");
        let mut other = Limiter::new(Secret([1, 3]), 1);
        assert_ne!(allowed(&mut other, 5, 4000, 4000), counts[0]);
    }

    #[test]
    fn one_peer_uses_up_its_own_share() {
        let mut limiter = Limiter::new(Secret([1, 2]), 1);
        assert_eq!(limiter.used.len(), PLACES, "memory is there before the first packet");
        assert_eq!(allowed(&mut limiter, 5, 4000, 1), 250);
        assert!(limiter.allow(peer(77), 5 * SECOND, 1000));
        // All addresses of an IPv6 network are one.
        let of = |n: u16| IpAddr::from([0xfd00, 0, 0, 1, n, n, n, n]);
        let count = (0..4000).filter(|n| limiter.allow(of(*n), 6 * SECOND, 1000)).count();
        assert_eq!(count, 250);
    }
}
