//! Whether a batch of changes makes sense, before any of it is done.

use std::collections::HashMap;
use std::net::IpAddr;

use wire::special::{Special, classify_v4, classify_v6};

use super::layer::Chosen;
use super::link::is_link_local;
use super::route::{Goal, MOST_DISTANCE, Step};
use super::{ApplyError, Change, Place, Prefix, Rib, Route, RouteError, Target, Via};
use crate::state::{GROUP_SLOTS, VrfId};

impl Rib {
    /// The steps of a batch. On an error nothing has happened.
    pub(super) fn prepare(&mut self, changes: &[Change]) -> Result<Vec<Step>, ApplyError> {
        self.check_presence(changes)?;
        let mut steps: Vec<Step> = Vec::with_capacity(changes.len());
        for (at, change) in changes.iter().enumerate() {
            let step = match change {
                Change::Remove(place) => Ok((*place, None)),
                Change::Add(route) => self.step(route),
            };
            match step {
                Ok(step) => steps.push(step),
                Err(error) => {
                    self.release(steps.into_iter().filter_map(|(_, chosen)| chosen));
                    return Err(ApplyError { at, error });
                }
            }
        }
        Ok(steps)
    }

    /// Whether what is removed is there, and what is added fits.
    fn check_presence(&self, changes: &[Change]) -> Result<(), ApplyError> {
        let limits = [self.limits.routes4, self.limits.routes6];
        let mut counts = <[usize; 2]>::from(self.len());
        let fit = counts.iter().zip(&limits).all(|(count, limit)| count + changes.len() <= *limit);
        if fit && changes.iter().all(|change| matches!(change, Change::Add(_))) {
            return Ok(());
        }
        let mut after: HashMap<Place, bool> = HashMap::new();
        for (at, change) in changes.iter().enumerate() {
            let (place, adds) = match change {
                Change::Add(route) => (route.place, true),
                Change::Remove(place) => (*place, false),
            };
            let present = after.insert(place, adds).unwrap_or_else(|| self.has(place));
            let family = usize::from(matches!(place.prefix, Prefix::V6(_)));
            match (present, adds) {
                (false, false) => {
                    return Err(ApplyError { at, error: RouteError::NoSuchRoute(place) });
                }
                (false, true) => counts[family] += 1,
                (true, false) => counts[family] -= 1,
                (true, true) => {}
            }
            if counts[family] > limits[family] {
                let (family, limit) = ([4, 6][family], limits[family]);
                return Err(ApplyError { at, error: RouteError::TooManyRoutes { family, limit } });
            }
        }
        Ok(())
    }

    fn step(&mut self, route: &Route) -> Result<Step, RouteError> {
        let Place { vrf: of, prefix, source, distance } = route.place;
        if source.is_implied() {
            return Err(RouteError::Implied(source));
        }
        if distance > MOST_DISTANCE {
            return Err(RouteError::Distance(distance));
        }
        if !is_routed(prefix) {
            return Err(RouteError::NotRouted(prefix));
        }
        if self.vrfs.get(of).is_none() {
            return Err(RouteError::NoSuchVrf(of));
        }
        let target = match &route.target {
            Target::Vrf(vrf) if *vrf == of => return Err(RouteError::SameVrf(prefix)),
            Target::Vrf(vrf) if self.vrfs.get(*vrf).is_none() => {
                return Err(RouteError::NoSuchVrf(*vrf));
            }
            Target::Broadcast | Target::Flood(_) => return Err(RouteError::Broadcast(prefix)),
            Target::Port(interface) if self.links.get(*interface).is_none() => {
                return Err(RouteError::NoSuchInterface(*interface));
            }
            Target::Port(interface) if self.links.vrf_of(*interface) != of => {
                return Err(RouteError::OtherVrf(*interface));
            }
            Target::Via(via) => Target::Via(self.checked_hops(of, prefix, via)?),
            target => target.clone(),
        };
        let goal = Goal::Route(of, target);
        let target = self.targets.acquire(goal, &self.links, &mut self.hops)?;
        Ok((route.place, Some(Chosen { target, metric: route.metric })))
    }

    /// The next hops of a route checked, sorted, each once.
    fn checked_hops(
        &self,
        vrf: VrfId,
        prefix: Prefix,
        via: &[Via],
    ) -> Result<Vec<Via>, RouteError> {
        match via.len() {
            0 => return Err(RouteError::NoNextHop(prefix)),
            1..=GROUP_SLOTS => {}
            count => return Err(RouteError::TooManyNextHops { prefix, count }),
        }
        for hop in via {
            self.check_hop(vrf, prefix, hop)?;
        }
        let mut sorted = via.to_vec();
        sorted.sort_unstable_by_key(|hop| (hop.address, hop.interface));
        sorted.dedup_by(|later, kept| {
            let same = (later.address, later.interface) == (kept.address, kept.interface);
            if same {
                kept.weight = kept.weight.saturating_add(later.weight);
            }
            same
        });
        if let [only] = sorted.as_mut_slice() {
            only.weight = 1;
        }
        Ok(sorted)
    }

    fn check_hop(&self, vrf: VrfId, prefix: Prefix, hop: &Via) -> Result<(), RouteError> {
        let address = hop.address;
        let on = hop.interface.map_or(vrf, |id| self.links.vrf_of(id));
        if matches!(prefix, Prefix::V4(_)) != address.is_ipv4() {
            return Err(RouteError::FamilyMismatch { prefix, address });
        }
        if hop.weight == 0 {
            return Err(RouteError::Weight(address));
        }
        if !is_host(address) || self.links.is_own(on, address) {
            return Err(RouteError::NotAHost(address));
        }
        match hop.interface {
            Some(interface) if self.links.get(interface).is_none() => {
                Err(RouteError::NoSuchInterface(interface))
            }
            None if is_link_local(address) => Err(RouteError::LinkLocal(address)),
            None if self.links.interface_of(vrf, address).is_none() => {
                Err(RouteError::NextHopUnreachable(address))
            }
            _ => Ok(()),
        }
    }
}

/// Whether an address can be a single host's on a link.
pub(crate) fn is_host(address: IpAddr) -> bool {
    let special = match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    };
    matches!(special, None | Some(Special::LinkLocal))
}

fn is_routed(prefix: Prefix) -> bool {
    let address = prefix.address();
    let (group, link) = match prefix {
        Prefix::V4(_) => (4, u8::MAX),
        Prefix::V6(_) => (8, 10),
    };
    let inside = |length| prefix.length() >= length;
    !(address.is_multicast() && inside(group) || is_link_local(address) && inside(link))
}
