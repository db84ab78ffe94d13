//! The routing table: all that the control thread does to routes and next hops.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use graph::InterfaceId;
use tables::{Epoch, LpmCapacity, OutOfMemory};

use super::layer::{Chosen, Slot};
use super::link::{Links, NextHopMacs};
use super::next_hop::Hops;
use super::pass::Passes;
use super::route::{Goal, Step};
use super::target::Targets;
use super::users::LISTED;
use super::vrf::VrfList;
use super::{ApplyError, Change, Place, Prefix, RouteError};
use crate::flow;
use crate::state::{
    Interfaces, Kind, NextHop, NextHops, Published, Settings, State, VrfId, Vrfs, reserved,
};

/// What fits. Reaching a limit is a refusal; what was there stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// IPv4 routes of all VRFs together, those apart that interfaces and neighbours imply.
    pub routes4: usize,
    /// The same of IPv6.
    pub routes6: usize,
    /// Next hops and neighbours together.
    pub next_hops: usize,
    /// Different sets of next hops.
    pub groups: usize,
}

/// What a look-up that finds no route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// The sender is told.
    Unreachable,
    /// Nothing is said.
    Drop,
    /// The packet goes back out of the port that it came in by.
    Reflect,
}

/// Routes to own addresses, broadcast addresses and connected networks that surely fit.
const IMPLIED: usize = 4096;

/// Targets that are looked for, and routes that are shown again, at once, at most: as many as one target's list has.
pub(super) const AT_ONCE: usize = LISTED;

/// The reserved next hops.
fn answers(miss: Miss) -> [(u32, Kind); 5] {
    let miss = match miss {
        Miss::Unreachable => Kind::MissUnreachable,
        Miss::Drop => Kind::MissDrop,
        Miss::Reflect => Kind::MissReflect,
    };
    [
        (reserved::MISS, miss),
        (reserved::BLACKHOLE, Kind::Blackhole),
        (reserved::UNREACHABLE, Kind::Unreachable),
        (reserved::LOCAL, Kind::Local),
        (reserved::BROADCAST, Kind::Broadcast),
    ]
}

/// The routing tables of all VRFs, of both families.
pub struct Rib {
    pub(super) vrfs: VrfList,
    /// Where workers find the tables of `vrfs` that they are to use.
    shown: Arc<Published<Vrfs>>,
    pub(super) targets: Targets,
    pub(super) hops: Hops,
    pub(super) links: Links,
    pub(super) passes: Passes,
    pub(super) limits: Limits,
    settings: Arc<Published<Settings>>,
}

impl Rib {
    /// Empty tables, and the handles on them for the workers, which announce themselves in `epoch`.
    /// Errors: `OutOfMemory` when the system refuses the tables' address space.
    pub fn new(
        limits: Limits,
        miss: Miss,
        settings: Settings,
        epoch: &Epoch,
    ) -> Result<(Self, State), OutOfMemory> {
        // Neighbours and interfaces have routes besides the static ones.
        let routes = |limit: usize| LpmCapacity::routes(limit + limits.next_hops + IMPLIED);
        let capacities = [routes(limits.routes4), routes(limits.routes6)];
        Self::with_capacities(capacities, limits, miss, settings, epoch)
    }

    /// As [`Self::new`], with look-up tables of another size.
    pub(super) fn with_capacities(
        capacities: [LpmCapacity; 2],
        limits: Limits,
        miss: Miss,
        settings: Settings,
        epoch: &Epoch,
    ) -> Result<(Self, State), OutOfMemory> {
        let vrfs = VrfList::new(capacities, epoch)?;
        let tables = vrfs.main().tables.clone();
        let shown = Arc::new(Published::default());
        let first = reserved::FIRST as usize;
        let own = limits.next_hops + first;
        let next_hops = Arc::new(NextHops::new(own + flow::NEXT_HOPS, limits.groups));
        let settings = Arc::new(Published::new(settings));
        let state = State {
            interfaces: Arc::new(Published::default()),
            next_hops: next_hops.clone(),
            routes4: tables.routes4,
            routes6: tables.routes6,
            vrfs: Arc::clone(&shown),
            settings: Arc::clone(&settings),
        };
        let rib = Self {
            vrfs,
            shown,
            targets: Targets::default(),
            hops: Hops::new(next_hops, epoch.clone()),
            links: Links::default(),
            passes: Passes::default(),
            limits,
            settings,
        };
        rib.set_answers(miss);
        Ok((rib, state))
    }

    fn set_answers(&self, miss: Miss) {
        for (index, kind) in answers(miss) {
            self.hops.table.set(index, &NextHop::of_kind(kind));
        }
    }

    /// Takes over what a miss does, and other switches. What is implied by addresses follows with
    /// the next [`Self::set_interfaces`].
    pub fn set_switches(&mut self, miss: Miss, settings: Settings) {
        self.set_answers(miss);
        self.settings.store(Arc::new(settings));
    }

    /// Changes routes that are given: all of them or, on an error, none.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), ApplyError> {
        let steps = self.prepare(changes);
        // What waits for its turn is right at once for those who name it now.
        let wanted = self.targets.take_wanted();
        let mut room = AT_ONCE;
        self.renew(wanted, &mut room);
        let steps = steps?;
        let mut done: Vec<Step> = Vec::with_capacity(steps.len());
        for (at, (place, chosen)) in steps.iter().copied().enumerate() {
            let set = self.set(place, chosen).map(|old| done.push((place, old)));
            if let Err(error) = set.and_then(|()| self.show(place.vrf, place.prefix)) {
                for (place, old) in done.into_iter().rev() {
                    // It was there and shown before, so it fits again.
                    let _ = self.set(place, old);
                    let _ = self.show(place.vrf, place.prefix);
                }
                self.release(steps.iter().filter_map(|(_, chosen)| *chosen));
                return Err(ApplyError { at, error });
            }
        }
        self.release(done.into_iter().filter_map(|(_, old)| old));
        Ok(())
    }

    /// Makes tables for the routes of a VRF, unless it has them. They are used when [`Interfaces::vrfs`] has the VRF, too;
    /// when it has not, the next [`Self::set_interfaces`] throws them away, unless routes that were given are in them.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the tables' address space.
    pub fn open_vrf(&mut self, id: VrfId) -> Result<(), OutOfMemory> {
        self.vrfs.open(id)
    }

    /// Takes over interfaces, VRFs and what addresses imply. If that concerns many next hops or routes besides, these are left to
    /// [`Self::converge`]. Returns the interfaces that have gone, whose link has gone down, whose frames look different now or
    /// whose VRF is another: all neighbours there are forgotten, and their users are to close them.
    pub fn set_interfaces(
        &mut self,
        interfaces: &Interfaces,
        macs: &NextHopMacs,
    ) -> Vec<InterfaceId> {
        let there = interfaces.vrfs.keys().copied().filter(|id| self.vrfs.get(*id).is_some());
        let links = Links::new(interfaces, macs, there.collect());
        let changes = self.links.changes(&links);
        let mut gone = Vec::new();
        for id in &changes.interfaces {
            match (self.links.live(*id), links.live(*id)) {
                (Some(old), Some(new)) if new.same_frames(old) => self.hops.rewrite(*id, new),
                (Some(_), _) => gone.push(*id),
                (None, _) => {}
            }
        }
        for id in &gone {
            self.forget_hosts(*id);
            self.hops.detach(*id);
        }
        self.links = links;
        self.show_vrfs();
        let directed = self.settings.load().directed_broadcast;
        let (mut implied, mut unnamed) = (Vec::new(), Vec::new());
        let vrfs: Vec<VrfId> = self.vrfs.iter().map(|(id, _)| id).collect();
        for vrf in vrfs {
            let own = self.links.own_routes(vrf, directed).into_iter();
            let own = own.map(|(prefix, target)| (prefix, Goal::Route(vrf, target))).collect();
            let networks = self.links.connected_routes(vrf).into_iter();
            let networks = networks.map(|(prefix, id)| (prefix, Goal::Connected(id))).collect();
            for (slot, wanted) in [(Slot::LOCAL, own), (Slot::CONNECTED, networks)] {
                let (prefixes, before) = self.replace(vrf, slot, wanted);
                implied.extend(prefixes.into_iter().map(|prefix| (vrf, prefix)));
                unnamed.extend(before);
            }
        }
        let mut concerned = self.targets.concern(&changes);
        concerned.extend(self.targets.take_due(AT_ONCE));
        let (changed, left) = self.targets.resolve(concerned, &self.links, &mut self.hops);
        for (vrf, prefix) in implied {
            // A look-up table that is full leaves a network out of reach.
            if let Some(vrf) = self.vrfs.get_mut(vrf) {
                vrf.show_if_it_fits(prefix, &self.targets, &self.hops);
            }
        }
        let mut room = AT_ONCE;
        self.show_changed(&changed, left, &mut room);
        // Until here, workers may have found the implied routes of before.
        self.release(unnamed.into_iter());
        self.vrfs.close(|id| self.links.has_vrf(id));
        gone
    }

    /// Shows the workers the tables of the VRFs that are there.
    fn show_vrfs(&self) {
        let there = self.vrfs.others().filter(|(id, _)| self.links.has_vrf(*id));
        self.shown.store(Arc::new(there.map(|(id, vrf)| (id, vrf.tables.clone())).collect()));
    }

    /// Indices of next hops that routes leave alone: the flows' own.
    #[must_use]
    pub fn flow_next_hops(&self) -> Range<u32> {
        let end = self.hops.table.capacity() as u32;
        end - flow::NEXT_HOPS as u32..end
    }

    /// Makes indices free that no worker can still hold.
    pub fn reclaim(&mut self) {
        self.hops.reclaim();
    }

    /// Routes that were given, of all VRFs: IPv4, IPv6.
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), more: (usize, usize)| (sum.0 + more.0, sum.1 + more.1);
        self.vrfs.iter().map(|(_, vrf)| vrf.len()).fold((0, 0), add)
    }

    /// Routes that were given, of a VRF: IPv4, IPv6.
    #[must_use]
    pub fn len_of(&self, vrf: VrfId) -> (usize, usize) {
        self.vrfs.get(vrf).map_or((0, 0), |vrf| vrf.len())
    }

    /// Whether no route was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    fn set(&mut self, place: Place, chosen: Option<Chosen>) -> Result<Option<Chosen>, RouteError> {
        let vrf = self.vrfs.get_mut(place.vrf);
        vrf.map_or(Ok(None), |vrf| vrf.set(place.slot(), place.prefix, chosen))
    }

    pub(super) fn show(&mut self, vrf: VrfId, prefix: Prefix) -> Result<(), RouteError> {
        let shown = self.vrfs.get_mut(vrf).map(|vrf| vrf.show(prefix, &self.targets, &self.hops));
        shown.unwrap_or(Ok(()))
    }

    pub(super) fn release(&mut self, chosen: impl Iterator<Item = Chosen>) {
        chosen.for_each(|chosen| self.targets.release(chosen.target, &mut self.hops));
    }

    /// Makes the routes of a slot of implied ones in a VRF be `wanted`. Returns the prefixes that have another one now, and what
    /// they had before, which is to be released once the prefixes are shown.
    fn replace(
        &mut self,
        vrf: VrfId,
        slot: Slot,
        mut wanted: BTreeMap<Prefix, Goal>,
    ) -> (Vec<Prefix>, Vec<Chosen>) {
        let Some(known) = self.vrfs.get_mut(vrf) else { return Default::default() };
        let mut different = Vec::new();
        for (prefix, target) in known.prefixes(slot) {
            match wanted.remove(&prefix) {
                Some(goal) if self.targets.goal(target) == Some(&goal) => {}
                goal => different.push((prefix, goal)),
            }
        }
        different.extend(wanted.into_iter().map(|(prefix, goal)| (prefix, Some(goal))));
        let mut unused = Vec::new();
        for (prefix, goal) in &different {
            // Without a free next-hop index, a network stays out of reach.
            let acquired = goal
                .clone()
                .and_then(|goal| self.targets.acquire(goal, &self.links, &mut self.hops).ok());
            let chosen = acquired.map(|target| Chosen { target, metric: 0 });
            // There is always a slot for these.
            unused.extend(known.set(slot, *prefix, chosen).unwrap_or_default());
        }
        (different.into_iter().map(|(prefix, _)| prefix).collect(), unused)
    }
}
