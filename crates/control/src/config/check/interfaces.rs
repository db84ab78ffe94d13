//! All interfaces of a configuration as one list.

use std::net::IpAddr;

use crate::config::{Config, Port};
use crate::net::InterfaceAddress;

/// A port, VLAN sub-interface or bridge, as routes see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub kind: InterfaceKind,
    /// Its VRF; none: the default one.
    pub vrf: Option<&'a str>,
    /// Its own addresses.
    pub addresses: &'a [InterfaceAddress],
    /// Largest IP packet: bytes.
    pub mtu: u16,
}

/// What an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfaceKind {
    /// A port.
    Port,
    /// A VLAN sub-interface.
    Vlan,
    /// The IP interface of a bridge.
    Bridge,
}

impl Config {
    /// All interfaces: ports, VLAN sub-interfaces, bridges.
    pub fn interfaces(&self) -> impl Iterator<Item = Interface<'_>> {
        let ports = self.ports.iter().map(|port| Interface {
            name: &port.name,
            kind: InterfaceKind::Port,
            vrf: port.vrf.as_deref(),
            addresses: &port.addresses,
            mtu: port.mtu,
        });
        let vlans = self.vlans.iter().map(|vlan| Interface {
            name: &vlan.name,
            kind: InterfaceKind::Vlan,
            vrf: vlan.vrf.as_deref(),
            addresses: &vlan.addresses,
            mtu: vlan.mtu,
        });
        let bridges = self.bridges.iter().map(|bridge| Interface {
            name: &bridge.name,
            kind: InterfaceKind::Bridge,
            vrf: bridge.vrf.as_deref(),
            addresses: &bridge.addresses,
            mtu: bridge.mtu,
        });
        ports.chain(vlans).chain(bridges)
    }

    /// The interface of that name.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<Interface<'_>> {
        self.interfaces().find(|interface| interface.name == name)
    }

    /// The port of that name.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<&Port> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// The interface of a VRF on whose network `address` lies.
    #[must_use]
    pub fn connected(&self, vrf: Option<&str>, address: IpAddr) -> Option<Interface<'_>> {
        let on = |own: &InterfaceAddress| own.network().contains(address);
        self.interfaces().find(|it| it.vrf == vrf && it.addresses.iter().any(on))
    }

    /// Whether `address` is one of the configured own addresses of a VRF.
    #[must_use]
    pub fn is_own(&self, vrf: Option<&str>, address: IpAddr) -> bool {
        let has = |own: &InterfaceAddress| own.address() == address;
        self.interfaces().any(|it| it.vrf == vrf && it.addresses.iter().any(has))
    }

    /// Whether `address` can be that of one other host in a VRF.
    pub(super) fn is_host(&self, vrf: Option<&str>, address: IpAddr) -> bool {
        let stands_for_all = |own: &InterfaceAddress| own.has_broadcast(address);
        let mut connected = self.interfaces().filter(|it| it.vrf == vrf);
        is_host(address) && !connected.any(|it| it.addresses.iter().any(stands_for_all))
    }

    /// Whether that interface's frames are bridged or cross-connected, so that it cannot route.
    #[must_use]
    pub fn is_layer2(&self, name: &str) -> bool {
        self.bridges.iter().any(|bridge| bridge.members.iter().any(|m| m.interface == name))
            || self.cross_connects.iter().any(|c| c.from == name || (c.both_ways && c.to == name))
    }

    /// Whether there is a VRF of that name.
    #[must_use]
    pub fn has_vrf(&self, name: &str) -> bool {
        self.vrfs.iter().any(|vrf| vrf.name == name)
    }

    /// Names of the VRFs, for remedies.
    pub(super) fn vrf_names(&self) -> String {
        listed(self.vrfs.iter().map(|vrf| vrf.name.as_str()))
    }

    /// Names of the interfaces that can route, for remedies.
    pub(super) fn routed_names(&self) -> String {
        let routed = self.interfaces().filter(|i| !self.is_layer2(i.name));
        listed(routed.map(|i| i.name))
    }
}

/// Some names, for people.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    /// More would not help a reader.
    const MOST: usize = 12;
    let mut names: Vec<_> = names.take(MOST + 1).collect();
    if names.len() > MOST {
        names.truncate(MOST);
        names.push("...");
    }
    if names.is_empty() { "(none declared)".to_owned() } else { names.join(", ") }
}

/// Whether an address can be that of one host on some network.
fn is_host(address: IpAddr) -> bool {
    let reserved = matches!(address, IpAddr::V4(a) if a.octets()[0] >= 240 || a.octets()[0] == 0);
    !(address.is_multicast() || address.is_unspecified() || address.is_loopback() || reserved)
}

/// Whether an address means something on one link only (RFC 4291 2.5.6).
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(a) if a.is_unicast_link_local())
}
