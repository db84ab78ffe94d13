//! Interfaces as routes see them, and the routes that their addresses imply.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use graph::{InterfaceId, PortId};
use wire::MacAddr;
use wire::special::{Special, classify_v6};

use super::{Prefix, Target};
use crate::state::{DEFAULT_VRF, Interface, Interfaces, Kind, Mode, NextHop, NextNode, VrfId};

/// Fixed destination MAC addresses of what is beyond an interface, for routes by egress port.
pub type NextHopMacs = BTreeMap<InterfaceId, MacAddr>;

/// What frames through an interface look like: when that changes, its next hops are made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Egress {
    port: PortId,
    vlan: Option<u16>,
    mac: MacAddr,
    next: NextNode,
    features: bool,
}

/// An interface that routes may lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    id: InterfaceId,
    /// Its addresses and neighbours are in this VRF.
    pub(super) vrf: VrfId,
    up: bool,
    egress: Egress,
    mtu: u16,
    /// Destination MAC of routes by egress port.
    pub(super) next_hop_mac: Option<MacAddr>,
    addresses: Vec<(IpAddr, u8)>,
}

impl Link {
    fn new(id: InterfaceId, interface: &Interface, next_hop_mac: Option<MacAddr>) -> Option<Self> {
        let bridge = matches!(interface.mode, Mode::BridgeIp(_));
        if !bridge && interface.mode != Mode::Routed {
            return None;
        }
        let port = interface.port.unwrap_or_default();
        let next = if bridge { NextNode::Bridge } else { NextNode::Port };
        let features = !interface.features.output().is_empty();
        let egress = Egress { port, vlan: interface.vlan, mac: interface.mac, next, features };
        let v4 = interface.addresses4.iter().map(|(address, length)| ((*address).into(), *length));
        let v6 = interface.addresses6.iter().map(|(address, length)| ((*address).into(), *length));
        let addresses = v4.chain(v6).collect();
        let (vrf, up, mtu) = (interface.vrf, interface.up, interface.mtu);
        Some(Self { id, vrf, up, egress, mtu, next_hop_mac, addresses })
    }

    /// Whether packets can leave by it now. Its addresses are the router's own in any case.
    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// A next hop through this interface.
    pub(super) fn next_hop(&self, kind: Kind, destination: MacAddr) -> NextHop {
        NextHop {
            kind,
            next: self.egress.next,
            features: self.egress.features,
            port: self.egress.port,
            interface: self.id,
            mtu: self.mtu,
            vlan: self.egress.vlan,
            destination,
            source: self.egress.mac,
        }
    }

    /// Whether next hops and neighbours of `other` serve this one too.
    pub(super) fn same_frames(&self, other: &Self) -> bool {
        self.egress == other.egress && self.vrf == other.vrf
    }

    /// Length of the longest network of this interface that the address lies in.
    fn match_length(&self, address: IpAddr) -> Option<u8> {
        let networks = self.addresses.iter().filter(|(own, length)| {
            Prefix::containing(*own, *length).is_ok_and(|network| network.contains(address))
        });
        networks.map(|(_, length)| *length).max()
    }
}

/// What is different between two states of all links.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Interfaces that came, went or are different.
    pub(super) interfaces: BTreeSet<InterfaceId>,
    /// Networks that they have or had.
    pub(super) networks: Vec<Prefix>,
    /// Addresses that they have or had.
    pub(super) addresses: Vec<IpAddr>,
    /// VRFs that came or went.
    pub(super) vrfs: BTreeSet<VrfId>,
}

/// All interfaces that routes may lead to, and the VRFs that there are.
#[derive(Debug, Default)]
pub(super) struct Links {
    list: BTreeMap<InterfaceId, Link>,
    /// Besides the default one.
    vrfs: BTreeSet<VrfId>,
}

impl Links {
    pub(super) fn new(interfaces: &Interfaces, macs: &NextHopMacs, vrfs: BTreeSet<VrfId>) -> Self {
        let list = interfaces.iter().filter_map(|(id, interface)| {
            Some((id, Link::new(id, interface, macs.get(&id).copied())?))
        });
        Self { list: list.collect(), vrfs }
    }

    /// Interfaces whose link is up.
    pub(super) fn up(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.list.iter().filter(|(_, link)| link.up).map(|(id, _)| *id)
    }

    pub(super) fn get(&self, id: InterfaceId) -> Option<&Link> {
        self.list.get(&id)
    }

    /// What is different in `new`.
    pub(super) fn changes(&self, new: &Self) -> Changes {
        let ids = self.list.keys().chain(new.list.keys());
        let mut changes = Changes {
            interfaces: ids.copied().filter(|id| self.get(*id) != new.get(*id)).collect(),
            vrfs: self.vrfs.symmetric_difference(&new.vrfs).copied().collect(),
            ..Changes::default()
        };
        let both = changes.interfaces.iter().flat_map(|id| [self.get(*id), new.get(*id)]);
        for (address, length) in both.flatten().flat_map(|link| &link.addresses) {
            changes.addresses.push(*address);
            // No next hop is looked for on all networks by an address that means something on one link only.
            let network = Prefix::containing(*address, *length);
            changes.networks.extend(network.ok().filter(|_| !is_link_local(*address)));
        }
        changes
    }

    /// Whether there is that VRF.
    pub(super) fn has_vrf(&self, id: VrfId) -> bool {
        id == DEFAULT_VRF || self.vrfs.contains(&id)
    }

    /// The VRF of an interface.
    pub(super) fn vrf_of(&self, id: InterfaceId) -> VrfId {
        self.get(id).map_or(DEFAULT_VRF, |link| link.vrf)
    }

    /// The interfaces of a VRF.
    fn of(&self, vrf: VrfId) -> impl DoubleEndedIterator<Item = (&InterfaceId, &Link)> {
        self.list.iter().filter(move |(_, link)| link.vrf == vrf)
    }

    /// The interface, if its link is up.
    pub(super) fn live(&self, id: InterfaceId) -> Option<&Link> {
        self.get(id).filter(|link| link.up)
    }

    /// The interface of a VRF on whose network the address lies, up or not: longest match, then lowest number.
    pub(super) fn interface_of(&self, vrf: VrfId, address: IpAddr) -> Option<InterfaceId> {
        self.interface_where(vrf, address, |_| true)
    }

    /// The same of those that are up.
    pub(super) fn live_interface_of(&self, vrf: VrfId, address: IpAddr) -> Option<InterfaceId> {
        self.interface_where(vrf, address, Link::is_up)
    }

    fn interface_where(
        &self,
        vrf: VrfId,
        address: IpAddr,
        fits: impl Fn(&Link) -> bool,
    ) -> Option<InterfaceId> {
        let matches = self.of(vrf).rev().filter(|(_, link)| fits(link) && !is_link_local(address));
        matches
            .filter_map(|(id, link)| Some((link.match_length(address)?, *id)))
            .max_by_key(|(length, _)| *length)
            .map(|(_, id)| id)
    }

    /// Whether the address is one of the router's own in that VRF.
    pub(super) fn is_own(&self, vrf: VrfId, address: IpAddr) -> bool {
        self.of(vrf).any(|(_, link)| link.addresses.iter().any(|(own, _)| *own == address))
    }

    /// Routes of a VRF to the router itself, and to broadcast addresses; `directed`: these are forwarded.
    pub(super) fn own_routes(&self, vrf: VrfId, directed: bool) -> BTreeMap<Prefix, Target> {
        let mut routes = BTreeMap::new();
        for (id, link) in self.of(vrf) {
            let flood = directed.then_some(Target::Flood(*id));
            for (address, length) in &link.addresses {
                match *address {
                    IpAddr::V4(address) => broadcasts(address, *length, &flood, &mut routes),
                    IpAddr::V6(address) => anycast(address, *length, &mut routes),
                }
            }
        }
        // After the rest: an own address is local even where another network's broadcast is the same.
        for (address, _) in self.of(vrf).flat_map(|(_, link)| &link.addresses) {
            routes.insert(Prefix::host(*address), Target::Local);
        }
        routes
    }

    /// Routes of a VRF to the networks of the addresses of interfaces that are up.
    pub(super) fn connected_routes(&self, vrf: VrfId) -> BTreeMap<Prefix, InterfaceId> {
        let mut routes = BTreeMap::new();
        for (id, link) in self.of(vrf).filter(|(_, link)| link.up) {
            for (address, length) in &link.addresses {
                let Ok(network) = Prefix::containing(*address, *length) else { continue };
                if !is_link_local(*address) {
                    routes.entry(network).or_insert(*id);
                }
            }
        }
        routes
    }
}

/// All ones, and all zeros as hosts once had it (RFC 1812 4.2.3.1); none in /31 (RFC 3021) and /32.
/// Only the first, and that of a network, is ever forwarded: as `flood`.
fn broadcasts(
    address: Ipv4Addr,
    length: u8,
    flood: &Option<Target>,
    routes: &mut BTreeMap<Prefix, Target>,
) {
    routes.insert(Prefix::host(Ipv4Addr::BROADCAST.into()), Target::Broadcast);
    if length > 30 {
        return;
    }
    let Ok(network) = wire::Ipv4Prefix::containing(address, length) else { return };
    routes.insert(Prefix::host(network.address().into()), Target::Broadcast);
    let last = flood.clone().unwrap_or(Target::Broadcast);
    routes.insert(Prefix::host(network.last().into()), last);
}

/// RFC 4291 2.6.1: a network's first address means any of its routers; not between two routers
/// (RFC 6164 5).
fn anycast(address: Ipv6Addr, length: u8, routes: &mut BTreeMap<Prefix, Target>) {
    let Ok(network) = wire::Ipv6Prefix::containing(address, length) else { return };
    if length < 127 && !is_link_local(address.into()) {
        routes.insert(Prefix::host(network.address().into()), Target::Local);
    }
}

/// Whether the address means something on its link only. IPv4's 169.254/16 has a route where an interface has an address of
/// it, by which the router speaks to that link; `ip4-input` keeps others from using it.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if classify_v6(address) == Some(Special::LinkLocal))
}
