//! The routing table: all that the control thread does to routes and next hops.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;
use graph::InterfaceId;
use tables::{Epoch, Lpm4, Lpm6, LpmCapacity, OutOfMemory};
use wire::prefix::{Ipv4Prefix, Ipv6Prefix};

use super::fib::{Fib, Named};
use super::link::{Links, NextHopMacs};
use super::next_hop::Hops;
use super::route::Step;
use super::target::{Goal, Targets};
use super::{ApplyError, Change, Prefix, RouteError};
use crate::flow;
use crate::state::{Interfaces, Kind, NextHop, NextHops, Settings, State, reserved};

/// What fits. Reaching a limit is a refusal; what was there stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Static IPv4 routes.
    pub routes4: usize,
    /// Static IPv6 routes.
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

/// The routing table of both families.
pub struct Rib {
    pub(super) v4: Fib<Ipv4Prefix, Lpm4>,
    pub(super) v6: Fib<Ipv6Prefix, Lpm6>,
    pub(super) targets: Targets,
    pub(super) hops: Hops,
    pub(super) links: Links,
    pub(super) limits: Limits,
    settings: Arc<ArcSwap<Settings>>,
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
        [routes4, routes6]: [LpmCapacity; 2],
        limits: Limits,
        miss: Miss,
        settings: Settings,
        epoch: &Epoch,
    ) -> Result<(Self, State), OutOfMemory> {
        let v4 = Lpm4::new(routes4, epoch)?;
        let v6 = Lpm6::new(routes6, epoch)?;
        let first = reserved::FIRST as usize;
        let own = limits.next_hops + first;
        let next_hops = Arc::new(NextHops::new(own + flow::NEXT_HOPS, limits.groups));
        let settings = Arc::new(ArcSwap::from_pointee(settings));
        let state = State {
            interfaces: Arc::new(ArcSwap::default()),
            next_hops: next_hops.clone(),
            routes4: v4.reader(),
            routes6: v6.reader(),
            settings: Arc::clone(&settings),
        };
        let rib = Self {
            v4: Fib::new(v4),
            v6: Fib::new(v6),
            targets: Targets::default(),
            hops: Hops::new(next_hops, epoch.clone()),
            links: Links::default(),
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

    /// Changes static routes: all of them or, on an error, none.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), ApplyError> {
        let steps = self.prepare(changes)?;
        let mut done: Vec<Step> = Vec::with_capacity(steps.len());
        for (at, (prefix, target)) in steps.iter().copied().enumerate() {
            let old = self.set(Named::Static, prefix, target);
            done.push((prefix, old));
            if let Err(error) = self.show(prefix) {
                for (prefix, old) in done.into_iter().rev() {
                    self.set(Named::Static, prefix, old);
                    // It was shown before, so it fits again.
                    let _ = self.show(prefix);
                }
                self.release(steps.iter().filter_map(|(_, target)| *target));
                return Err(ApplyError { at, error });
            }
        }
        self.release(done.into_iter().filter_map(|(_, old)| old));
        Ok(())
    }

    /// Takes over interfaces and what their addresses imply. Returns the interfaces that have gone, whose link
    /// has gone down or whose frames look different now: all neighbours there are forgotten, and their users are
    /// to close them.
    pub fn set_interfaces(
        &mut self,
        interfaces: &Interfaces,
        macs: &NextHopMacs,
    ) -> Vec<InterfaceId> {
        let links = Links::new(interfaces, macs);
        let mut gone = Vec::new();
        for (id, old) in self.links.0.iter().filter(|(_, old)| old.is_up()) {
            match links.live(*id) {
                Some(new) if new.same_frames(old) => {
                    if new != old {
                        self.hops.rewrite(*id, new);
                    }
                }
                _ => gone.push(*id),
            }
        }
        for id in &gone {
            self.forget_hosts(*id);
            self.hops.detach(*id);
        }
        self.links = links;
        let directed = self.settings.load().directed_broadcast;
        let own = self.links.own_routes(directed).into_iter();
        let own = own.map(|(prefix, target)| (prefix, Goal::Route(target))).collect();
        let (mut implied, mut unnamed) = self.replace(Named::Own, own);
        let connected = self.links.connected_routes().into_iter();
        let connected = connected.map(|(prefix, id)| (prefix, Goal::Connected(id))).collect();
        let (networks, before) = self.replace(Named::Connected, connected);
        implied.extend(networks);
        unnamed.extend(before);
        let (changed, left) = self.targets.resolve_all(&self.links, &mut self.hops);
        for prefix in implied {
            // A look-up table that is full leaves a network out of reach.
            let _ = self.show(prefix);
        }
        self.v4.show_again(&changed, &self.targets, &self.hops);
        self.v6.show_again(&changed, &self.targets, &self.hops);
        // Until here, workers may have found the next hops of before.
        self.release(unnamed.into_iter());
        left.into_iter().for_each(|hop| self.hops.release(hop));
        gone
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

    /// Static routes: IPv4, IPv6.
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        (self.v4.named(Named::Static).len(), self.v6.named(Named::Static).len())
    }

    /// Whether there is no static route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    fn set(&mut self, source: Named, prefix: Prefix, target: Option<u32>) -> Option<u32> {
        match prefix {
            Prefix::V4(key) => self.v4.set(source, key, target),
            Prefix::V6(key) => self.v6.set(source, key, target),
        }
    }

    pub(super) fn show(&mut self, prefix: Prefix) -> Result<(), RouteError> {
        match prefix {
            Prefix::V4(key) => self.v4.show(key, &self.targets, &self.hops),
            Prefix::V6(key) => self.v6.show(key, &self.targets, &self.hops),
        }
    }

    pub(super) fn release(&mut self, targets: impl Iterator<Item = u32>) {
        targets.for_each(|target| self.targets.release(target, &mut self.hops));
    }

    /// Makes the routes of a source be `wanted`. Returns the prefixes that were or are there, and the targets of before,
    /// which are to be released once the prefixes are shown.
    fn replace(
        &mut self,
        source: Named,
        wanted: BTreeMap<Prefix, Goal>,
    ) -> (BTreeSet<Prefix>, Vec<u32>) {
        let old4 = self.v4.named(source).keys().map(|key| Prefix::V4(*key));
        let old6 = self.v6.named(source).keys().map(|key| Prefix::V6(*key));
        let mut touched: BTreeSet<Prefix> = old4.chain(old6).collect();
        touched.extend(wanted.keys());
        let mut unused = Vec::new();
        for prefix in &touched {
            let goal = wanted.get(prefix).cloned();
            // Without a free next-hop index, a network stays out of reach.
            let target =
                goal.and_then(|goal| self.targets.acquire(goal, &self.links, &mut self.hops).ok());
            unused.extend(self.set(source, *prefix, target));
        }
        (touched, unused)
    }
}
