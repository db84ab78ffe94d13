//! Routes and next hops for people to see.

use std::collections::BTreeMap;
use std::net::IpAddr;

use graph::InterfaceId;

use super::fib::{Fib, Table};
use super::layer::{Chosen, Slot};
use super::next_hop::Owner;
use super::prefix::Key;
use super::route::Goal;
use super::{Place, Prefix, Rib, Route, RouteInfo, Source, Target, Via};
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
    /// Routes of a VRF, from all sources or one, in the order of their prefixes: those behind `after` (or from the start
    /// of the family that it is not given for), until at least `limit` are found. All routes of one
    /// prefix come together, the best first.
    #[must_use]
    pub fn routes(
        &self,
        (vrf, source): (VrfId, Option<Source>),
        ipv6: bool,
        after: Option<Prefix>,
        limit: usize,
    ) -> Vec<RouteInfo> {
        let Some(routes) = self.vrfs.get(vrf) else { return Vec::new() };
        let which = (vrf, source);
        match (ipv6, after) {
            (false, Some(Prefix::V4(after))) => self.page(which, &routes.v4, Some(after), limit),
            (false, _) => self.page(which, &routes.v4, None, limit),
            (true, Some(Prefix::V6(after))) => self.page(which, &routes.v6, Some(after), limit),
            (true, _) => self.page(which, &routes.v6, None, limit),
        }
    }

    /// All routes of one prefix in a VRF, the best first.
    #[must_use]
    pub fn routes_of(&self, vrf: VrfId, prefix: Prefix) -> Vec<RouteInfo> {
        let Some(routes) = self.vrfs.get(vrf) else { return Vec::new() };
        match prefix {
            Prefix::V4(key) => self.routes_at((vrf, &routes.v4), key),
            Prefix::V6(key) => self.routes_at((vrf, &routes.v6), key),
        }
    }

    /// Whether a route was given there.
    #[must_use]
    pub fn has(&self, place: Place) -> bool {
        self.given(place).is_some()
    }

    fn given(&self, place: Place) -> Option<Chosen> {
        let vrf = self.vrfs.get(place.vrf).filter(|_| !place.source.is_implied());
        vrf?.chosen(place.slot(), place.prefix)
    }

    /// The route that was given there, as it would be given again.
    #[must_use]
    pub fn route_at(&self, place: Place) -> Option<Route> {
        let chosen = self.given(place)?;
        let target = shown(self.targets.goal(chosen.target)?);
        Some(Route { place, metric: chosen.metric, target })
    }

    /// Where a source has given routes to a prefix of a VRF.
    #[must_use]
    pub fn places_at(&self, vrf: VrfId, prefix: Prefix, source: Source) -> Vec<Place> {
        let Some(routes) = self.vrfs.get(vrf) else { return Vec::new() };
        let slots = routes.given().map(|(slot, _)| slot).filter(|slot| slot.source == source);
        let there = slots.filter(|slot| routes.chosen(*slot, prefix).is_some());
        let mut found: Vec<Place> =
            there.map(|Slot { distance, .. }| Place { vrf, prefix, source, distance }).collect();
        // A distance with routes of both families is there twice.
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Where a source has routes in a VRF: some of the places, `limit` at most.
    #[must_use]
    pub fn places_of(&self, vrf: VrfId, source: Source, limit: usize) -> Vec<Place> {
        let Some(routes) = self.vrfs.get(vrf) else { return Vec::new() };
        let slots = routes.given().map(|(slot, _)| slot).filter(|slot| slot.source == source);
        let places = slots.flat_map(|Slot { distance, source }| {
            let prefixes = routes.prefixes(Slot { distance, source });
            prefixes.map(move |(prefix, _)| Place { vrf, prefix, source, distance })
        });
        // A distance with routes of both families is there twice.
        let mut found: Vec<Place> = places.take(limit).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Sources that have given routes to a VRF, and how many: IPv4, IPv6.
    #[must_use]
    pub fn sources(&self, vrf: VrfId) -> BTreeMap<Source, [usize; 2]> {
        let mut sources = BTreeMap::new();
        for (slot, [v4, v6]) in self.vrfs.get(vrf).into_iter().flat_map(|vrf| vrf.given()) {
            let counts: &mut [usize; 2] = sources.entry(slot.source).or_default();
            counts[0] += v4;
            counts[1] += v6;
        }
        sources
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

    /// Interfaces that routes name which were given, those too that are not there; some more than once.
    pub fn named_interfaces(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.targets.interfaces()
    }

    /// VRFs with routes or room for them: the default one, those that are there, and those whose routes wait for them.
    pub fn vrfs(&self) -> impl Iterator<Item = VrfId> + '_ {
        self.vrfs.iter().map(|(id, _)| id)
    }

    /// VRFs that routes are in or name which were given, those too that are not there; some more than once.
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
        let Some((key, best)) = fib.look_up(host, &self.targets, &self.hops) else {
            return Explanation::miss();
        };
        let next_hops = match best.target {
            Some(target) => self.targets.members(target).to_vec(),
            None => vec![(best.value, 1)],
        };
        let is_best = |route: &RouteInfo| route.place.slot() == best.slot;
        let route = self.routes_at((vrf, fib), key).into_iter().find(is_best);
        Explanation { route, value: best.value, next_hops }
    }

    fn page<K: Key, T: Table<K>>(
        &self,
        (vrf, source): (VrfId, Option<Source>),
        fib: &Fib<K, T>,
        after: Option<K>,
        limit: usize,
    ) -> Vec<RouteInfo> {
        let mut page = Vec::new();
        let mut last = after;
        while page.len() < limit {
            let Some(key) = fib.behind(last, source) else { break };
            let wanted = |route: &RouteInfo| source.is_none_or(|of| of == route.place.source);
            page.extend(self.routes_at((vrf, fib), key).into_iter().filter(wanted));
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
        let best = fib.best(key, &self.targets, &self.hops).map(|best| best.slot);
        let info = |Slot { distance, source }, metric, target, usable: bool| {
            let place = Place { vrf, prefix: key.into(), source, distance };
            let active = there && best == Some(Slot { distance, source });
            RouteInfo { place, metric, target, usable: usable && there, active }
        };
        let layers = fib.layers().filter_map(|(slot, layer)| {
            let target = layer.target(key)?;
            let usable = self.targets.value(target).is_some();
            Some(info(slot, layer.metric(key), shown(self.targets.goal(target)?), usable))
        });
        let mut routes: Vec<RouteInfo> = layers.collect();
        // Stable: sources of one metric stay in their order.
        routes.sort_by_key(|route| (route.place.distance, route.metric));
        let host = fib.host(key).and_then(|hop| Some((hop, self.hops.neighbor(hop)?)));
        if let Some((hop, (interface, address))) = host {
            let via = Via { address, interface: Some(interface), weight: 1 };
            let slot = Slot { distance: u8::MAX, source: Source::NEIGHBOR };
            let usable = fib.is_on_link(key, hop, &self.targets, &self.hops);
            routes.push(info(slot, 0, Target::Via(vec![via]), usable));
        }
        routes
    }
}

fn shown(goal: &Goal) -> Target {
    match goal {
        Goal::Route(_, target) => target.clone(),
        Goal::Connected(interface) => Target::Port(*interface),
    }
}
