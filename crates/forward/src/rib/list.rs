//! Routes and next hops for people to see.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

use graph::InterfaceId;

use super::fib::{Fib, Named, Table};
use super::next_hop::Owner;
use super::prefix::Key;
use super::target::Goal;
use super::{Prefix, Rib, RouteInfo, Source, Target, Via};
use crate::state::{NextHop, VrfId, reserved};

/// Which route packets to an address follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The route; `None`: there is none, and the packets are a miss.
    pub route: Option<RouteInfo>,
    /// What the workers' tables say: a next-hop index, or a group.
    pub value: u32,
    /// Indices and weights of its next hops.
    pub next_hops: Vec<(u32, u32)>,
}

impl Explanation {
    fn miss() -> Self {
        Self { route: None, value: reserved::MISS, next_hops: Vec::new() }
    }
}

/// A next hop as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHopInfo {
    /// Its index.
    pub index: u32,
    /// Egress interface.
    pub interface: InterfaceId,
    /// The neighbour that it is; `None`: a connected network or a fixed MAC address.
    pub address: Option<IpAddr>,
    /// Sets of next hops and neighbour entries that use it.
    pub users: u32,
    /// What the workers read.
    pub hop: NextHop,
}

impl Rib {
    /// Routes of a VRF in the order of their prefixes, IPv4 first: those behind `after` (or from the start
    /// of the family that it is not given for), until at least `limit` are found. All routes of one
    /// prefix come together, the one of the best source first.
    #[must_use]
    pub fn routes(
        &self,
        vrf: VrfId,
        ipv6: bool,
        after: Option<Prefix>,
        limit: usize,
    ) -> Vec<RouteInfo> {
        let Some(routes) = self.vrfs.get(vrf) else { return Vec::new() };
        match (ipv6, after) {
            (false, Some(Prefix::V4(after))) => self.page((vrf, &routes.v4), Some(after), limit),
            (false, _) => self.page((vrf, &routes.v4), None, limit),
            (true, Some(Prefix::V6(after))) => self.page((vrf, &routes.v6), Some(after), limit),
            (true, _) => self.page((vrf, &routes.v6), None, limit),
        }
    }

    /// All routes of one prefix in a VRF.
    #[must_use]
    pub fn routes_of(&self, vrf: VrfId, prefix: Prefix) -> Vec<RouteInfo> {
        let Some(routes) = self.vrfs.get(vrf) else { return Vec::new() };
        match prefix {
            Prefix::V4(key) => self.routes_at((vrf, &routes.v4), key),
            Prefix::V6(key) => self.routes_at((vrf, &routes.v6), key),
        }
    }

    /// Which route packets of a VRF to an address follow. One that leads to another VRF is not followed further.
    #[must_use]
    pub fn lookup(&self, vrf: VrfId, address: IpAddr) -> Explanation {
        let found = self.vrfs.get(vrf).map(|routes| match Prefix::host(address) {
            Prefix::V4(key) => self.explain((vrf, &routes.v4), key),
            Prefix::V6(key) => self.explain((vrf, &routes.v6), key),
        });
        found.unwrap_or_else(Explanation::miss)
    }

    /// Interfaces that static routes name, those too that are not there; some more than once.
    pub fn named_interfaces(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.targets.interfaces()
    }

    /// VRFs with routes or room for them: the default one, those that are there, and those whose routes wait for them.
    pub fn vrfs(&self) -> impl Iterator<Item = VrfId> + '_ {
        self.vrfs.iter().map(|(id, _)| id)
    }

    /// VRFs that static routes are in or name, those too that are not there; some more than once.
    pub fn named_vrfs(&self) -> impl Iterator<Item = VrfId> + '_ {
        let with_routes = self.vrfs.others().filter(|(_, routes)| routes.len() != (0, 0));
        with_routes.map(|(id, _)| id).chain(self.targets.vrfs())
    }

    /// All next hops in use.
    pub fn next_hops(&self) -> impl Iterator<Item = NextHopInfo> + '_ {
        self.hops.iter().map(|(index, interface, owner, users)| {
            let address = match owner {
                Owner::Neighbor(address) => Some(address),
                Owner::Glean | Owner::Fixed(_) => None,
            };
            NextHopInfo { index, interface, address, users, hop: self.hops.table.get(index) }
        })
    }

    fn explain<K: Key, T: Table<K>>(
        &self,
        (vrf, fib): (VrfId, &Fib<K, T>),
        host: K,
    ) -> Explanation {
        let Some((key, source, value)) = fib.look_up(host, &self.targets, &self.hops) else {
            return Explanation::miss();
        };
        let next_hops = match named(source).and_then(|named| fib.named(named).get(&key)) {
            Some(target) => self.targets.members(*target).to_vec(),
            None => vec![(value, 1)],
        };
        let route =
            self.routes_at((vrf, fib), key).into_iter().find(|route| route.source == source);
        Explanation { route, value, next_hops }
    }

    fn page<K: Key, T: Table<K>>(
        &self,
        (vrf, fib): (VrfId, &Fib<K, T>),
        after: Option<K>,
        limit: usize,
    ) -> Vec<RouteInfo> {
        let mut page = Vec::new();
        let mut last = after;
        while page.len() < limit {
            let maps =
                [Named::Own, Named::Static, Named::Connected].map(|source| fib.named(source));
            let next = maps.into_iter().chain([fib.hosts()]).filter_map(|map| behind(map, last));
            let Some(key) = next.min() else { break };
            page.extend(self.routes_at((vrf, fib), key));
            last = Some(key);
        }
        page
    }

    fn routes_at<K: Key, T: Table<K>>(
        &self,
        (vrf, fib): (VrfId, &Fib<K, T>),
        key: K,
    ) -> Vec<RouteInfo> {
        let there = self.links.has_vrf(vrf);
        let best = fib.best(key, &self.targets, &self.hops).map(|(source, _)| source);
        let sources = [Source::Own, Source::Static, Source::Neighbor, Source::Connected];
        let found = sources.into_iter().filter_map(|source| {
            let (target, usable) = match named(source) {
                Some(named) => {
                    let id = *fib.named(named).get(&key)?;
                    (shown(self.targets.goal(id)?), self.targets.value(id).is_some())
                }
                None => {
                    let (interface, address) = self.hops.neighbor(*fib.hosts().get(&key)?)?;
                    let hop = Via { address, interface: Some(interface), weight: 1 };
                    (Target::Via(vec![hop]), true)
                }
            };
            let (usable, active) = (usable && there, best == Some(source) && there);
            Some(RouteInfo { vrf, prefix: key.into(), source, target, usable, active })
        });
        found.collect()
    }
}

fn behind<K: Key>(map: &BTreeMap<K, u32>, after: Option<K>) -> Option<K> {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    map.range((from, Bound::Unbounded)).next().map(|(key, _)| *key)
}

fn named(source: Source) -> Option<Named> {
    match source {
        Source::Own => Some(Named::Own),
        Source::Static => Some(Named::Static),
        Source::Connected => Some(Named::Connected),
        Source::Neighbor => None,
    }
}

fn shown(goal: &Goal) -> Target {
    match goal {
        Goal::Route(_, target) => target.clone(),
        Goal::Connected(interface) => Target::Port(*interface),
    }
}
