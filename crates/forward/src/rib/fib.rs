//! The routes of one family in one VRF, and the look-up table that shows the best of them.

use std::ops::Bound;

use super::hosts::Hosts;
use super::layer::{Chosen, Layer, Slot};
use super::next_hop::Hops;
use super::pass::Pass;
use super::prefix::Key;

use super::target::Targets;
use super::users::Users;
use super::{RouteError, Source};

/// Pairs of source and distance at most: each is asked for the routes of a prefix.
pub(super) const SLOTS: usize = 64;

/// A look-up table that workers read.
pub(super) trait Table<K> {
    /// Adds or replaces; `false`: it was there already. Errors: `TableFull`, and nothing changed.
    fn insert(&mut self, key: K, value: u32) -> Result<bool, RouteError>;

    /// Removes; `false`: it was not there.
    fn remove(&mut self, key: K) -> bool;
}

/// The route of a prefix that packets follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Best {
    pub(super) slot: Slot,
    /// `None`: it is a neighbour.
    pub(super) target: Option<u32>,
    /// What workers see.
    pub(super) value: u32,
}

/// The routes of one family.
pub(super) struct Fib<K, T> {
    local: Layer<K>,
    connected: Layer<K>,
    /// What is given, least distance first.
    given: Vec<(Slot, Layer<K>)>,
    hosts: Hosts<K>,
    users: Users<K>,
    pass: Pass<K>,
    /// Routes but those of neighbours, by length.
    lengths: Vec<u32>,
    table: T,
    /// How often the workers' table was written or compared, for tests that count work.
    #[cfg(test)]
    pub(super) shown: usize,
}

impl<K: Key, T: Table<K>> Fib<K, T> {
    pub(super) fn new(table: T) -> Self {
        Self {
            local: Layer::new(),
            connected: Layer::new(),
            given: Vec::new(),
            hosts: Hosts::new(),
            users: Users::new(),
            pass: Pass::new(),
            lengths: vec![0; usize::from(K::WIDTH) + 1],
            table,
            #[cfg(test)]
            shown: 0,
        }
    }

    /// All routes but those of neighbours, best first.
    pub(super) fn layers(&self) -> impl Iterator<Item = (Slot, &Layer<K>)> {
        let implied = [(Slot::LOCAL, &self.local), (Slot::CONNECTED, &self.connected)];
        implied.into_iter().chain(self.given())
    }

    /// The routes that were given, least distance first.
    pub(super) fn given(&self) -> impl Iterator<Item = (Slot, &Layer<K>)> {
        self.given.iter().map(|(slot, layer)| (*slot, layer))
    }

    pub(super) fn layer(&self, slot: Slot) -> Option<&Layer<K>> {
        match slot {
            Slot::LOCAL => Some(&self.local),
            Slot::CONNECTED => Some(&self.connected),
            _ => self.given.iter().find(|(of, _)| *of == slot).map(|(_, layer)| layer),
        }
    }

    /// The route of exactly this prefix in a slot.
    pub(super) fn chosen(&self, slot: Slot, key: K) -> Option<Chosen> {
        let layer = self.layer(slot)?;
        Some(Chosen { target: layer.target(key)?, metric: layer.metric(key) })
    }

    /// Routes that were given.
    pub(super) fn len(&self) -> usize {
        self.given.iter().map(|(_, layer)| layer.len()).sum()
    }

    /// A neighbour's next hop.
    pub(super) fn host(&self, key: K) -> Option<u32> {
        self.hosts.get(key)
    }

    /// The first prefix behind `after` that has a route, from any source or that one.
    pub(super) fn behind(&self, after: Option<K>, source: Option<Source>) -> Option<K> {
        let wanted = |of: Source| source.is_none_or(|source| source == of);
        let layers = self.layers().filter(|(slot, _)| wanted(slot.source));
        let named = layers.filter_map(|(_, layer)| layer.behind(after).next());
        let host = self.hosts.behind(after.map_or(Bound::Unbounded, Bound::Excluded));
        let host = host.filter(|_| wanted(Source::NEIGHBOR));
        named.map(|(key, _)| key).chain(host).min()
    }

    /// Sets or removes a route, without showing it yet. Returns what was there. Errors: `TooManySources`.
    pub(super) fn set(
        &mut self,
        slot: Slot,
        key: K,
        chosen: Option<Chosen>,
    ) -> Result<Option<Chosen>, RouteError> {
        let layer = match slot {
            Slot::LOCAL => Some(&mut self.local),
            Slot::CONNECTED => Some(&mut self.connected),
            _ => given(&mut self.given, slot, chosen.is_some())?,
        };
        let Some(layer) = layer else { return Ok(None) };
        let old = layer.set(key, chosen);
        if layer.len() == 0 {
            self.given.retain(|(_, layer)| layer.len() > 0);
        }
        if let Some(count) = self.lengths.get_mut(usize::from(key.length())) {
            *count = (*count + u32::from(chosen.is_some())) - u32::from(old.is_some());
        }
        let [before, after] = [old, chosen].map(|route| route.map(|route| route.target));
        if before != after {
            after.into_iter().for_each(|target| self.users.add(target, key));
            let named = |target| self.layers().any(|(_, layer)| layer.target(key) == Some(target));
            if let Some(target) = before.filter(|target| !named(*target)) {
                self.users.remove(target, key);
            }
        }
        Ok(old)
    }

    /// Sets or removes a neighbour's next hop, without showing it yet.
    pub(super) fn set_host(&mut self, key: K, hop: Option<u32>) {
        self.hosts.set(key, hop);
    }

    /// Shows the best route of a prefix to the workers, and the neighbours that depend on it.
    /// Errors: `TableFull`; neighbours that do not fit are left out without an error.
    pub(super) fn show(
        &mut self,
        key: K,
        targets: &Targets,
        hops: &Hops,
    ) -> Result<(), RouteError> {
        // What a pass has not come to yet may look the same and have changed since the neighbours were shown.
        if self.show_one(key, targets, hops)? || self.pass.is_behind() {
            self.follow(key, targets, hops);
        }
        Ok(())
    }

    /// The same; what does not fit is a miss, as if it were unusable.
    pub(super) fn show_if_it_fits(&mut self, key: K, targets: &Targets, hops: &Hops) {
        if self.show(key, targets, hops).is_err() {
            self.follow(key, targets, hops);
        }
    }

    /// Shows routes with these targets again, `room` of them at most, which is lowered by as many. `false`: the rest is left to
    /// the next pass.
    pub(super) fn show_again(
        &mut self,
        changed: &[u32],
        room: &mut usize,
        targets: &Targets,
        hops: &Hops,
    ) -> bool {
        let (keys, many) = self.users.of(changed, room);
        let all = many.is_empty();
        self.pass.add(many);
        for key in keys {
            self.show_if_it_fits(key, targets, hops);
        }
        all
    }

    /// Begins a pass over all routes for what was left to it. `false`: nothing was.
    pub(super) fn begin_pass(&mut self) -> bool {
        self.users.begin_search(self.pass.begin());
        !self.pass.is_over()
    }

    /// Goes on with the pass, over `room` routes at most, which is lowered by as many. `true`: it is over.
    pub(super) fn go_on(&mut self, room: &mut usize, targets: &Targets, hops: &Hops) -> bool {
        if self.pass.is_over() {
            return true;
        }
        let mut at = self.pass.at;
        let (slot, after) = at;
        let ahead = self.layers().skip_while(|(of, _)| of.order() < slot.order());
        let routes = ahead.flat_map(|(of, layer)| {
            let behind = layer.behind(after.filter(|_| of == slot));
            behind.map(move |(key, target)| (of, key, target))
        });
        let (mut found, mut count) = (Vec::new(), 0);
        for (of, key, target) in routes.take(*room) {
            (at, count) = ((of, Some(key)), count + 1);
            if self.pass.is_for(target) {
                found.push((target, key));
            }
        }
        let is_over = count < *room;
        *room -= count;
        self.pass.at = at;
        for (target, key) in found {
            self.users.found(target, key);
            self.show_if_it_fits(key, targets, hops);
        }
        if is_over {
            self.users.end_search(&self.pass.end());
        }
        is_over
    }

    /// Shows the neighbours again whose own route depends on a prefix that has changed: those that it is the longest around
    /// which has a usable route, and those that the next shorter one was until now.
    fn follow(&mut self, key: K, targets: &Targets, hops: &Hops) {
        let (first, last) = key.hosts();
        if key.length() == K::WIDTH || !self.hosts.any(first, last) {
            return;
        }
        let shorter = self.covering(key, targets, hops).map(|(cover, _)| cover);
        let mut depend: Vec<K> = self.hosts.covered(Some(key), (first, last)).collect();
        depend.extend(self.hosts.covered(shorter, (first, last)));
        for host in depend {
            let _ = self.show_one(host, targets, hops);
        }
    }

    /// `false`: the workers see it already.
    fn show_one(&mut self, key: K, targets: &Targets, hops: &Hops) -> Result<bool, RouteError> {
        #[cfg(test)]
        {
            self.shown += 1;
        }
        if key.length() == K::WIDTH && self.hosts.get(key).is_some() {
            let cover = self.covering(key, targets, hops).map(|(cover, _)| cover);
            self.hosts.cover(key, cover);
        }
        match self.best(key, targets, hops) {
            Some(best) => self.table.insert(key, best.value),
            None => Ok(self.table.remove(key)),
        }
    }

    /// The route of exactly this prefix that packets follow: the router's own addresses and networks first, then what is given by
    /// distance and metric, and last the neighbour.
    pub(super) fn best(&self, key: K, targets: &Targets, hops: &Hops) -> Option<Best> {
        let of = |slot: Slot, layer: &Layer<K>| {
            let target = layer.target(key)?;
            Some(Best { slot, target: Some(target), value: targets.value(target)? })
        };
        let mut best: Option<(Best, u32)> = None;
        for (slot, layer) in self.layers() {
            // Connected networks have the least distance and metric that there are.
            let is_worse = |(best, _): &(Best, u32)| {
                best.slot.source.is_implied() || best.slot.distance < slot.distance
            };
            if best.as_ref().is_some_and(is_worse) {
                break;
            }
            let Some(found) = of(slot, layer) else { continue };
            let metric = layer.metric(key);
            if best.as_ref().is_none_or(|(_, least)| metric < *least) {
                best = Some((found, metric));
            }
        }
        best.map(|(best, _)| best).or_else(|| {
            let value = self.hosts.get(key)?;
            let slot = Slot { distance: u8::MAX, source: Source::NEIGHBOR };
            let on_link = self.is_on_link(key, value, targets, hops);
            on_link.then_some(Best { slot, target: None, value })
        })
    }

    /// The route that packets to this address follow.
    pub(super) fn look_up(&self, host: K, targets: &Targets, hops: &Hops) -> Option<(K, Best)> {
        let best = self.best(host, targets, hops).map(|best| (host, best));
        best.or_else(|| self.covering(host, targets, hops))
    }

    /// The best route of the longest prefix around this one, without it, that has a usable one.
    pub(super) fn covering(&self, inner: K, targets: &Targets, hops: &Hops) -> Option<(K, Best)> {
        let lengths = (0..inner.length()).zip(&self.lengths).rev();
        lengths.filter(|(_, count)| **count > 0).find_map(|(length, _)| {
            let key = inner.truncated(length);
            Some((key, self.best(key, targets, hops)?))
        })
    }

    /// A neighbour has a route of its own only inside its interface's network: a longer static
    /// route in there keeps its say.
    pub(super) fn is_on_link(&self, host: K, hop: u32, targets: &Targets, hops: &Hops) -> bool {
        let Some((interface, _)) = hops.neighbor(hop) else { return false };
        let covering = self.covering(host, targets, hops);
        covering.is_some_and(|(_, best)| hops.glean(best.value) == Some(interface))
    }
}

/// The routes that were given of a source at a distance, made if `wanted`. Errors: `TooManySources`.
fn given<K: Copy + Ord>(
    list: &mut Vec<(Slot, Layer<K>)>,
    slot: Slot,
    wanted: bool,
) -> Result<Option<&mut Layer<K>>, RouteError> {
    let at = match list.binary_search_by_key(&slot, |(of, _)| *of) {
        Ok(at) => at,
        Err(_) if !wanted => return Ok(None),
        Err(_) if list.len() >= SLOTS => {
            return Err(RouteError::TooManySources { limit: SLOTS });
        }
        Err(at) => {
            list.insert(at, (slot, Layer::new()));
            at
        }
    };
    Ok(list.get_mut(at).map(|(_, layer)| layer))
}
