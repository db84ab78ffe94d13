//! New addresses and ports of flows, read by workers while the control thread adds more.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Rewrite;

/// A next hop and what changes in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// Where the packet goes.
    pub next_hop: u32,
    /// What changes.
    pub rewrite: Rewrite,
}

const SOURCE: u64 = 1;
const DESTINATION: u64 = 2;
const SOURCE_PORT: u64 = 4;
const DESTINATION_PORT: u64 = 8;
const IPV6: u64 = 16;

/// next hop (32 bits), flags (16), unused; source (128); destination (128); two ports (32).
const WORDS: usize = 6;

/// All translations. An entry is written before a flow names it, and again only when no worker can
/// see such a flow any more.
pub struct Translations(Box<[[AtomicU64; WORDS]]>);

impl Translations {
    /// Room for `capacity` translations.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self((0..capacity).map(|_| [const { AtomicU64::new(0) }; WORDS]).collect())
    }

    /// Translations that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.len()
    }

    /// The translation of that number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Translation> {
        let words = self.0.get(number as usize)?;
        let [head, s0, s1, d0, d1, ports] = words.each_ref().map(|w| w.load(Ordering::Relaxed));
        let has = |flag: u64| head >> 32 & flag != 0;
        let address = |high: u64, low: u64| {
            let bits = u128::from(high) << 64 | u128::from(low);
            if has(IPV6) {
                IpAddr::V6(Ipv6Addr::from(bits))
            } else {
                IpAddr::V4(Ipv4Addr::from(low as u32))
            }
        };
        let rewrite = Rewrite {
            source: has(SOURCE).then(|| address(s0, s1)),
            destination: has(DESTINATION).then(|| address(d0, d1)),
            source_port: has(SOURCE_PORT).then_some((ports >> 16) as u16),
            destination_port: has(DESTINATION_PORT).then_some(ports as u16),
        };
        Some(Translation { next_hop: head as u32, rewrite })
    }

    /// Writes the translation of that number; nothing beyond the capacity.
    pub(super) fn set(&self, number: u32, translation: &Translation) {
        let Some(words) = self.0.get(number as usize) else { return };
        let rewrite = &translation.rewrite;
        let halves = |address: Option<IpAddr>| match address {
            Some(IpAddr::V4(address)) => [0, u64::from(u32::from(address))],
            Some(IpAddr::V6(address)) => {
                [(u128::from(address) >> 64) as u64, u128::from(address) as u64]
            }
            None => [0, 0],
        };
        let six = [rewrite.source, rewrite.destination].iter().flatten().any(IpAddr::is_ipv6);
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(rewrite.source.is_some(), SOURCE)
            | flag(rewrite.destination.is_some(), DESTINATION)
            | flag(rewrite.source_port.is_some(), SOURCE_PORT)
            | flag(rewrite.destination_port.is_some(), DESTINATION_PORT)
            | flag(six, IPV6);
        let [s0, s1] = halves(rewrite.source);
        let [d0, d1] = halves(rewrite.destination);
        let ports = u64::from(rewrite.source_port.unwrap_or(0)) << 16
            | u64::from(rewrite.destination_port.unwrap_or(0));
        let values = [flags << 32 | u64::from(translation.next_hop), s0, s1, d0, d1, ports];
        for (word, value) in words.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read() {
        let table = Translations::new(2);
        let four = Translation {
            next_hop: 77,
            rewrite: Rewrite {
                source: Some(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3))),
                destination_port: Some(53),
                ..Rewrite::default()
            },
        };
        let six = Translation {
            next_hop: u32::MAX >> 2,
            rewrite: Rewrite {
                destination: Some(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6))),
                source_port: Some(65535),
                ..Rewrite::default()
            },
        };
        table.set(0, &four);
        table.set(1, &six);
        assert_eq!(table.get(0), Some(four));
        assert_eq!(table.get(1), Some(six));
        assert_eq!(table.get(2), None);
    }
}
