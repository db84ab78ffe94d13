//! The routes of one VRF, and of all.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use tables::{Epoch, Lpm4, Lpm6, LpmCapacity, OutOfMemory};
use wire::prefix::{Ipv4Prefix, Ipv6Prefix};

use super::fib::{Fib, Named};
use super::next_hop::Hops;
use super::target::Targets;
use super::{Prefix, RouteError};
use crate::state::{DEFAULT_VRF, VrfId, VrfTables};

/// The routes of one VRF, of both families.
pub(super) struct Vrf {
    pub(super) v4: Fib<Ipv4Prefix, Lpm4>,
    pub(super) v6: Fib<Ipv6Prefix, Lpm6>,
    /// For the workers.
    pub(super) tables: VrfTables,
}

impl Vrf {
    /// Without routes. Errors: `OutOfMemory` when the system refuses the tables' address space.
    pub(super) fn new(
        [routes4, routes6]: [LpmCapacity; 2],
        epoch: &Epoch,
    ) -> Result<Self, OutOfMemory> {
        let v4 = Lpm4::new(routes4, epoch)?;
        let v6 = Lpm6::new(routes6, epoch)?;
        let tables = VrfTables { routes4: v4.reader(), routes6: v6.reader() };
        Ok(Self { v4: Fib::new(v4), v6: Fib::new(v6), tables })
    }

    /// Whether there is a static route of exactly this prefix.
    pub(super) fn has_static(&self, prefix: Prefix) -> bool {
        match prefix {
            Prefix::V4(key) => self.v4.named(Named::Static).contains_key(&key),
            Prefix::V6(key) => self.v6.named(Named::Static).contains_key(&key),
        }
    }

    /// Static routes: IPv4, IPv6.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.v4.named(Named::Static).len(), self.v6.named(Named::Static).len())
    }

    /// The prefixes of a source.
    pub(super) fn prefixes(&self, source: Named) -> impl Iterator<Item = Prefix> + '_ {
        let v4 = self.v4.named(source).keys().map(|key| Prefix::V4(*key));
        v4.chain(self.v6.named(source).keys().map(|key| Prefix::V6(*key)))
    }

    /// Sets or removes the target of a prefix, without showing it yet. Returns what was there.
    pub(super) fn set(
        &mut self,
        source: Named,
        prefix: Prefix,
        target: Option<u32>,
    ) -> Option<u32> {
        match prefix {
            Prefix::V4(key) => self.v4.set(source, key, target),
            Prefix::V6(key) => self.v6.set(source, key, target),
        }
    }

    /// As [`Fib::show`].
    pub(super) fn show(
        &mut self,
        prefix: Prefix,
        targets: &Targets,
        hops: &Hops,
    ) -> Result<(), RouteError> {
        match prefix {
            Prefix::V4(key) => self.v4.show(key, targets, hops),
            Prefix::V6(key) => self.v6.show(key, targets, hops),
        }
    }

    /// As [`Fib::show_again`].
    pub(super) fn show_again(&mut self, changed: &HashSet<u32>, targets: &Targets, hops: &Hops) {
        self.v4.show_again(changed, targets, hops);
        self.v6.show_again(changed, targets, hops);
    }

    /// What workers see of an address.
    pub(super) fn look_up(&self, address: IpAddr, targets: &Targets, hops: &Hops) -> Option<u32> {
        match Prefix::host(address) {
            Prefix::V4(key) => self.v4.look_up(key, targets, hops).map(|hit| hit.2),
            Prefix::V6(key) => self.v6.look_up(key, targets, hops).map(|hit| hit.2),
        }
    }

    /// The same, but for a route of the address alone.
    pub(super) fn covering(&self, address: IpAddr, targets: &Targets, hops: &Hops) -> Option<u32> {
        match Prefix::host(address) {
            Prefix::V4(key) => self.v4.covering(key, targets, hops).map(|hit| hit.2),
            Prefix::V6(key) => self.v6.covering(key, targets, hops).map(|hit| hit.2),
        }
    }

    /// All neighbours' next hops.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (Prefix, u32)> + '_ {
        let v4 = self.v4.hosts().iter().map(|(key, hop)| (Prefix::V4(*key), *hop));
        v4.chain(self.v6.hosts().iter().map(|(key, hop)| (Prefix::V6(*key), *hop)))
    }

    /// A neighbour's next hop.
    pub(super) fn host(&self, address: IpAddr) -> Option<u32> {
        match Prefix::host(address) {
            Prefix::V4(key) => self.v4.hosts().get(&key).copied(),
            Prefix::V6(key) => self.v6.hosts().get(&key).copied(),
        }
    }

    /// Sets or removes a neighbour's next hop, without showing it yet.
    pub(super) fn set_host(&mut self, prefix: Prefix, hop: Option<u32>) {
        match prefix {
            Prefix::V4(key) => self.v4.set_host(key, hop),
            Prefix::V6(key) => self.v6.set_host(key, hop),
        }
    }
}

/// The routes of all VRFs.
pub(super) struct VrfList {
    /// The default one, which is always there.
    main: Vrf,
    others: BTreeMap<VrfId, Vrf>,
    capacities: [LpmCapacity; 2],
    epoch: Epoch,
}

impl VrfList {
    /// The default one. Errors: as [`Vrf::new`].
    pub(super) fn new(capacities: [LpmCapacity; 2], epoch: &Epoch) -> Result<Self, OutOfMemory> {
        let main = Vrf::new(capacities, epoch)?;
        Ok(Self { main, others: BTreeMap::new(), capacities, epoch: epoch.clone() })
    }

    /// Makes one more, unless it is there. Errors: as [`Vrf::new`].
    pub(super) fn open(&mut self, id: VrfId) -> Result<(), OutOfMemory> {
        if self.get(id).is_none() {
            self.others.insert(id, Vrf::new(self.capacities, &self.epoch)?);
        }
        Ok(())
    }

    pub(super) fn main(&self) -> &Vrf {
        &self.main
    }

    pub(super) fn get(&self, id: VrfId) -> Option<&Vrf> {
        if id == DEFAULT_VRF { Some(&self.main) } else { self.others.get(&id) }
    }

    pub(super) fn get_mut(&mut self, id: VrfId) -> Option<&mut Vrf> {
        if id == DEFAULT_VRF { Some(&mut self.main) } else { self.others.get_mut(&id) }
    }

    /// All, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (VrfId, &Vrf)> {
        let others = self.others.iter().map(|(id, vrf)| (*id, vrf));
        std::iter::once((DEFAULT_VRF, &self.main)).chain(others)
    }

    /// All, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Vrf> {
        std::iter::once(&mut self.main).chain(self.others.values_mut())
    }

    /// Those besides the default one.
    pub(super) fn others(&self) -> impl Iterator<Item = (VrfId, &Vrf)> {
        self.others.iter().map(|(id, vrf)| (*id, vrf))
    }

    /// Closes those that nobody needs, which have no routes any more.
    pub(super) fn close(&mut self, is_needed: impl Fn(VrfId) -> bool) {
        self.others.retain(|id, vrf| is_needed(*id) || vrf.len() != (0, 0));
    }
}
