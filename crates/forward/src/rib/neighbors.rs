//! What the neighbour state machine does to the routing table: next hops of neighbours, and their
//! routes.

use std::net::IpAddr;

use graph::InterfaceId;

use super::link::is_link_local;
use super::next_hop::Owner;
use super::{Prefix, Rib, RouteError, Status};
use crate::state::VrfId;

impl Rib {
    /// The next hop of a neighbour, for one user more: unresolved at first. Errors:
    /// `NoSuchInterface` (also while its link is down), `TooManyHops`.
    pub(crate) fn open_neighbor(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
    ) -> Result<u32, RouteError> {
        let link = self.links.live(interface).ok_or(RouteError::NoSuchInterface(interface))?;
        let limit = self.hops.table.capacity();
        let index = self.hops.acquire(interface, link, Owner::Neighbor(address));
        index.ok_or(RouteError::TooManyHops { limit })
    }

    /// Shows the workers what is known of a neighbour, and gives it a route of its own where it is
    /// on a connected network. Errors: `TableFull`; the neighbour has no route of its own then.
    pub(crate) fn set_neighbor(&mut self, index: u32, status: Status) -> Result<(), RouteError> {
        let Some((interface, address)) = self.hops.neighbor(index) else { return Ok(()) };
        let Some(link) = self.links.get(interface) else { return Ok(()) };
        let before = self.hops.rank(index);
        self.hops.set_status(index, link, status);
        if self.hops.rank(index) != before {
            let targets: Vec<u32> = self.hops.targets(index).to_vec();
            for target in targets {
                self.targets.refill(target, &self.hops);
            }
        }
        if is_link_local(address) {
            return Ok(());
        }
        let wanted = (status != Status::Unresolved).then_some(index);
        let vrf = link.vrf;
        if self.vrfs.get(vrf).and_then(|vrf| vrf.host(address)) == wanted {
            return Ok(());
        }
        self.set_host(vrf, address, wanted)
    }

    /// One user less of a neighbour's next hop, and no route of its own.
    pub(crate) fn close_neighbor(&mut self, index: u32) {
        // An entry that nobody answers for is unresolved to the routes that still name it.
        let _ = self.set_neighbor(index, Status::Unresolved);
        self.hops.release(index);
    }

    /// The next hop of a neighbour, where it has one.
    pub(crate) fn neighbor_index(&self, interface: InterfaceId, address: IpAddr) -> Option<u32> {
        self.hops.find(interface, Owner::Neighbor(address))
    }

    /// Interface and address of the neighbour at an index.
    pub(crate) fn neighbor_at(&self, index: u32) -> Option<(InterfaceId, IpAddr)> {
        self.hops.neighbor(index)
    }

    /// Interface of the connected network at an index.
    pub(crate) fn glean_at(&self, index: u32) -> Option<InterfaceId> {
        self.hops.glean(index)
    }

    /// Interfaces that neighbours can be on now.
    pub(crate) fn live_interfaces(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.links.up()
    }

    /// Whether packets to the address look for it as a neighbour on this interface.
    pub(crate) fn is_on_link(&self, interface: InterfaceId, address: IpAddr) -> bool {
        if is_link_local(address) {
            return self.links.live(interface).is_some();
        }
        let vrf = self.vrfs.get(self.links.vrf_of(interface));
        let value = vrf.and_then(|vrf| vrf.covering(address, &self.targets, &self.hops));
        value.is_some_and(|value| self.hops.glean(value) == Some(interface))
    }

    /// Whether packets to the address, in the VRF of this interface, are still handed up as unknown.
    pub(crate) fn is_gleaned(&self, interface: InterfaceId, address: IpAddr) -> bool {
        let vrf = self.vrfs.get(self.links.vrf_of(interface));
        let value = vrf.and_then(|vrf| vrf.look_up(address, &self.targets, &self.hops));
        value.is_some_and(|value| self.hops.glean(value).is_some())
    }

    /// Users of a next hop: sets of next hops, and its neighbour entry.
    pub(crate) fn users(&self, index: u32) -> u32 {
        self.hops.users(index)
    }

    /// Next hops that fit.
    pub(crate) fn hop_limit(&self) -> usize {
        self.limits.next_hops
    }

    /// Whether any route has several next hops.
    pub(crate) fn has_groups(&self) -> bool {
        self.targets.groups() > 0
    }

    /// Whether a route with several next hops waits for this one.
    pub(crate) fn is_member(&self, index: u32) -> bool {
        !self.hops.targets(index).is_empty()
    }

    /// Unresolved next hops of routes with several: nobody sends to them, so nobody would ask.
    pub(crate) fn unresolved_members(&self) -> Vec<(InterfaceId, IpAddr)> {
        self.hops.waiting().filter_map(|index| self.hops.neighbor(index)).collect()
    }

    fn set_host(
        &mut self,
        vrf: VrfId,
        address: IpAddr,
        hop: Option<u32>,
    ) -> Result<(), RouteError> {
        let prefix = Prefix::host(address);
        self.keep_host(vrf, prefix, hop);
        let shown = self.show(vrf, prefix);
        if shown.is_err() {
            self.keep_host(vrf, prefix, None);
        }
        shown
    }

    fn keep_host(&mut self, vrf: VrfId, prefix: Prefix, hop: Option<u32>) {
        if let Some(vrf) = self.vrfs.get_mut(vrf) {
            vrf.set_host(prefix, hop);
        }
    }

    /// Takes the routes of all neighbours on an interface away.
    pub(super) fn forget_hosts(&mut self, interface: InterfaceId) {
        let vrf = self.links.vrf_of(interface);
        let all = self.hops.on(interface).filter_map(|(owner, hop)| match owner {
            Owner::Neighbor(address) => Some((address, hop)),
            Owner::Glean | Owner::Fixed(_) => None,
        });
        let has_route = |(address, hop): &(IpAddr, u32)| {
            self.vrfs.get(vrf).and_then(|v| v.host(*address)) == Some(*hop)
        };
        let gone: Vec<IpAddr> = all.filter(has_route).map(|(address, _)| address).collect();
        for prefix in gone.into_iter().map(Prefix::host) {
            self.keep_host(vrf, prefix, None);
            let _ = self.show(vrf, prefix);
        }
    }
}
