//! Neighbours' next hops by address, each with the route around it that decides whether the neighbour has a route of its own.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy)]
struct Host<K> {
    hop: u32,
    /// The longest prefix around the address that has a usable route; `None`: there is none.
    cover: Option<K>,
}

/// The neighbours of one family in one VRF.
#[derive(Debug)]
pub(super) struct Hosts<K> {
    hosts: BTreeMap<K, Host<K>>,
    /// The same by cover.
    by_cover: BTreeSet<(Option<K>, K)>,
}

impl<K: Copy + Ord> Hosts<K> {
    pub(super) fn new() -> Self {
        Self { hosts: BTreeMap::new(), by_cover: BTreeSet::new() }
    }

    /// Sets or removes a neighbour's next hop.
    pub(super) fn set(&mut self, key: K, hop: Option<u32>) {
        match (hop, self.hosts.get_mut(&key)) {
            (Some(hop), Some(host)) => host.hop = hop,
            (Some(hop), None) => {
                self.hosts.insert(key, Host { hop, cover: None });
                self.by_cover.insert((None, key));
            }
            (None, _) => {
                let host = self.hosts.remove(&key);
                host.map(|host| self.by_cover.remove(&(host.cover, key)));
            }
        }
    }

    pub(super) fn get(&self, key: K) -> Option<u32> {
        self.hosts.get(&key).map(|host| host.hop)
    }

    /// Notes the route around a neighbour's address.
    pub(super) fn cover(&mut self, key: K, cover: Option<K>) {
        let Some(host) = self.hosts.get_mut(&key) else { return };
        if host.cover != cover {
            self.by_cover.remove(&(host.cover, key));
            self.by_cover.insert((cover, key));
            host.cover = cover;
        }
    }

    /// Whether any neighbour's address lies between these.
    pub(super) fn any(&self, first: K, last: K) -> bool {
        self.hosts.range(first..=last).next().is_some()
    }

    /// Neighbours with that cover whose addresses lie between these.
    pub(super) fn covered(
        &self,
        cover: Option<K>,
        (first, last): (K, K),
    ) -> impl Iterator<Item = K> + '_ {
        self.by_cover.range((cover, first)..=(cover, last)).map(|(_, key)| *key)
    }

    /// The first one behind `after`.
    pub(super) fn behind(&self, after: std::ops::Bound<K>) -> Option<K> {
        self.hosts.range((after, std::ops::Bound::Unbounded)).next().map(|(key, _)| *key)
    }
}
