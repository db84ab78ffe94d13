//! The routes of one VRF, and of all.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tables::{Epoch, Lpm4, Lpm6, LpmCapacity, OutOfMemory};
use wire::prefix::{Ipv4Prefix, Ipv6Prefix};

use super::fib::Fib;
use super::layer::{Chosen, Slot};
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

    /// The route of exactly this prefix in a slot.
    pub(super) fn chosen(&self, slot: Slot, prefix: Prefix) -> Option<Chosen> {
        match prefix {
            Prefix::V4(key) => self.v4.chosen(slot, key),
            Prefix::V6(key) => self.v6.chosen(slot, key),
        }
    }

    /// Routes that were given: IPv4, IPv6.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.v4.len(), self.v6.len())
    }

    /// Where there are given routes, and how many: IPv4, IPv6.
    pub(super) fn given(&self) -> impl Iterator<Item = (Slot, [usize; 2])> + '_ {
        let v4 = self.v4.given().map(|(slot, layer)| (slot, [layer.len(), 0]));
        v4.chain(self.v6.given().map(|(slot, layer)| (slot, [0, layer.len()])))
    }

    /// The prefixes of a slot, with their targets.
    pub(super) fn prefixes(&self, slot: Slot) -> impl Iterator<Item = (Prefix, u32)> + '_ {
        let v4 = self.v4.layer(slot).into_iter().flat_map(|layer| layer.behind(None));
        let v6 = self.v6.layer(slot).into_iter().flat_map(|layer| layer.behind(None));
        let v4 = v4.map(|(key, target)| (Prefix::V4(key), target));
        v4.chain(v6.map(|(key, target)| (Prefix::V6(key), target)))
    }

    /// As [`Fib::set`].
    pub(super) fn set(
        &mut self,
        slot: Slot,
        prefix: Prefix,
        chosen: Option<Chosen>,
    ) -> Result<Option<Chosen>, RouteError> {
        match prefix {
            Prefix::V4(key) => self.v4.set(slot, key, chosen),
            Prefix::V6(key) => self.v6.set(slot, key, chosen),
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

    /// As [`Fib::show_if_it_fits`].
    pub(super) fn show_if_it_fits(&mut self, prefix: Prefix, targets: &Targets, hops: &Hops) {
        match prefix {
            Prefix::V4(key) => self.v4.show_if_it_fits(key, targets, hops),
            Prefix::V6(key) => self.v6.show_if_it_fits(key, targets, hops),
        }
    }

    /// As [`Fib::show_again`].
    pub(super) fn show_again(
        &mut self,
        changed: &[u32],
        room: &mut usize,
        targets: &Targets,
        hops: &Hops,
    ) -> bool {
        let v4 = self.v4.show_again(changed, room, targets, hops);
        let v6 = self.v6.show_again(changed, room, targets, hops);
        v4 && v6
    }

    /// As [`Fib::begin_pass`].
    pub(super) fn begin_pass(&mut self) -> bool {
        let [v4, v6] = [self.v4.begin_pass(), self.v6.begin_pass()];
        v4 || v6
    }

    /// As [`Fib::go_on`].
    pub(super) fn go_on(&mut self, room: &mut usize, targets: &Targets, hops: &Hops) -> bool {
        self.v4.go_on(room, targets, hops) && self.v6.go_on(room, targets, hops)
    }

    /// What workers see of an address.
    pub(super) fn look_up(&self, address: IpAddr, targets: &Targets, hops: &Hops) -> Option<u32> {
        match Prefix::host(address) {
            Prefix::V4(key) => self.v4.look_up(key, targets, hops).map(|hit| hit.1.value),
            Prefix::V6(key) => self.v6.look_up(key, targets, hops).map(|hit| hit.1.value),
        }
    }

    /// The same, but for a route of the address alone.
    pub(super) fn covering(&self, address: IpAddr, targets: &Targets, hops: &Hops) -> Option<u32> {
        match Prefix::host(address) {
            Prefix::V4(key) => self.v4.covering(key, targets, hops).map(|hit| hit.1.value),
            Prefix::V6(key) => self.v6.covering(key, targets, hops).map(|hit| hit.1.value),
        }
    }

    /// A neighbour's next hop.
    pub(super) fn host(&self, address: IpAddr) -> Option<u32> {
        match Prefix::host(address) {
            Prefix::V4(key) => self.v4.host(key),
            Prefix::V6(key) => self.v6.host(key),
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
