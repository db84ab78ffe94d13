//! The routes of one family by source, and the look-up table that shows the best of them.

use std::collections::{BTreeMap, HashSet};

use super::next_hop::Hops;
use super::prefix::Key;
use super::target::Targets;
use super::{RouteError, Source};

/// A look-up table that workers read.
pub(super) trait Table<K> {
    /// Adds or replaces. Errors: `TableFull`, and nothing changed.
    fn insert(&mut self, key: K, value: u32) -> Result<(), RouteError>;

    /// Removes, where it is.
    fn remove(&mut self, key: K);
}

/// The sources that name targets; neighbours name next hops.
#[derive(Debug, Clone, Copy)]
pub(super) enum Named {
    Own,
    Static,
    Connected,
}

/// The routes of one family.
pub(super) struct Fib<K, T> {
    named: [BTreeMap<K, u32>; 3],
    hosts: BTreeMap<K, u32>,
    /// Routes in `named`, by length.
    lengths: Vec<u32>,
    table: T,
}

impl<K: Key, T: Table<K>> Fib<K, T> {
    pub(super) fn new(table: T) -> Self {
        let lengths = vec![0; usize::from(K::WIDTH) + 1];
        Self { named: Default::default(), hosts: BTreeMap::new(), lengths, table }
    }

    pub(super) fn named(&self, source: Named) -> &BTreeMap<K, u32> {
        &self.named[source as usize]
    }

    pub(super) fn hosts(&self) -> &BTreeMap<K, u32> {
        &self.hosts
    }

    /// Sets or removes the target of a prefix, without showing it yet. Returns what was there.
    pub(super) fn set(&mut self, source: Named, key: K, target: Option<u32>) -> Option<u32> {
        let map = &mut self.named[source as usize];
        let old = match target {
            Some(target) => map.insert(key, target),
            None => map.remove(&key),
        };
        if let Some(count) = self.lengths.get_mut(usize::from(key.length())) {
            *count = (*count + u32::from(target.is_some())) - u32::from(old.is_some());
        }
        old
    }

    /// Sets or removes a neighbour's next hop, without showing it yet.
    pub(super) fn set_host(&mut self, key: K, hop: Option<u32>) {
        match hop {
            Some(hop) => self.hosts.insert(key, hop),
            None => self.hosts.remove(&key),
        };
    }

    /// Shows the best route of a prefix to the workers, and of the neighbours in it.
    /// Errors: `TableFull`; neighbours that do not fit are left out without an error.
    pub(super) fn show(
        &mut self,
        key: K,
        targets: &Targets,
        hops: &Hops,
    ) -> Result<(), RouteError> {
        self.show_one(key, targets, hops)?;
        if key.length() < K::WIDTH && !self.hosts.is_empty() {
            let (first, last) = key.hosts();
            let inside: Vec<K> = self.hosts.range(first..=last).map(|(key, _)| *key).collect();
            for host in inside {
                let _ = self.show_one(host, targets, hops);
            }
        }
        Ok(())
    }

    /// Shows all static routes with these targets again, and all neighbours.
    pub(super) fn show_again(&mut self, changed: &HashSet<u32>, targets: &Targets, hops: &Hops) {
        if !changed.is_empty() {
            let routes = &self.named[Named::Static as usize];
            let touched = routes.iter().filter(|(_, target)| changed.contains(target));
            let touched: Vec<K> = touched.map(|(key, _)| *key).collect();
            for key in touched {
                // What does not fit now is a miss, as if it were unusable.
                let _ = self.show_one(key, targets, hops);
            }
        }
        let hosts: Vec<K> = self.hosts.keys().copied().collect();
        for host in hosts {
            let _ = self.show_one(host, targets, hops);
        }
    }

    fn show_one(&mut self, key: K, targets: &Targets, hops: &Hops) -> Result<(), RouteError> {
        match self.best(key, targets, hops) {
            Some((_, value)) => self.table.insert(key, value),
            None => {
                self.table.remove(key);
                Ok(())
            }
        }
    }

    /// The route of exactly this prefix that packets follow.
    pub(super) fn best(&self, key: K, targets: &Targets, hops: &Hops) -> Option<(Source, u32)> {
        let named = |source: Named| targets.value(*self.named(source).get(&key)?);
        let host = || {
            let hop = *self.hosts.get(&key)?;
            self.is_on_link(key, hop, targets, hops).then_some(hop)
        };
        None.or_else(|| named(Named::Own).map(|value| (Source::Own, value)))
            .or_else(|| named(Named::Static).map(|value| (Source::Static, value)))
            .or_else(|| host().map(|value| (Source::Neighbor, value)))
            .or_else(|| named(Named::Connected).map(|value| (Source::Connected, value)))
    }

    /// The route that packets to this address follow.
    pub(super) fn look_up(
        &self,
        host: K,
        targets: &Targets,
        hops: &Hops,
    ) -> Option<(K, Source, u32)> {
        if let Some((source, value)) = self.best(host, targets, hops) {
            return Some((host, source, value));
        }
        self.covering(host, targets, hops)
    }

    /// As [`Self::look_up`], but of the shorter prefixes only.
    pub(super) fn covering(
        &self,
        host: K,
        targets: &Targets,
        hops: &Hops,
    ) -> Option<(K, Source, u32)> {
        let lengths = (0..K::WIDTH).rev().zip(self.lengths.iter().rev().skip(1));
        lengths.filter(|(_, count)| **count > 0).find_map(|(length, _)| {
            let key = host.truncated(length);
            let (source, value) = self.best(key, targets, hops)?;
            Some((key, source, value))
        })
    }

    /// A neighbour has a route of its own only inside its interface's network: a longer static
    /// route in there keeps its say.
    fn is_on_link(&self, host: K, hop: u32, targets: &Targets, hops: &Hops) -> bool {
        let Some((interface, _)) = hops.neighbor(hop) else { return false };
        let covering = self.covering(host, targets, hops);
        covering.is_some_and(|(_, _, value)| hops.glean(value) == Some(interface))
    }
}
