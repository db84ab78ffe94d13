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
            addresses: &port.addresses,
            mtu: port.mtu,
        });
        let vlans = self.vlans.iter().map(|vlan| Interface {
            name: &vlan.name,
            kind: InterfaceKind::Vlan,
            addresses: &vlan.addresses,
            mtu: vlan.mtu,
        });
        let bridges = self.bridges.iter().map(|bridge| Interface {
            name: &bridge.name,
            kind: InterfaceKind::Bridge,
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

    /// The interface on whose network `address` lies.
    #[must_use]
    pub fn connected(&self, address: IpAddr) -> Option<Interface<'_>> {
        let on = |own: &InterfaceAddress| own.network().contains(address);
        self.interfaces().find(|interface| interface.addresses.iter().any(on))
    }

    /// Whether `address` is one of the configured own addresses.
    #[must_use]
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.interfaces().any(|i| i.addresses.iter().any(|own| own.address() == address))
    }

    /// Whether that interface's frames are bridged or cross-connected, so that it cannot route.
    #[must_use]
    pub fn is_layer2(&self, name: &str) -> bool {
        self.bridges.iter().any(|bridge| bridge.members.iter().any(|m| m.interface == name))
            || self.cross_connects.iter().any(|c| c.from == name || (c.both_ways && c.to == name))
    }

    /// Names of the interfaces that can route, for remedies.
    pub(super) fn routed_names(&self) -> String {
        /// More would not help a reader.
        const MOST: usize = 12;
        let routed = self.interfaces().filter(|i| !self.is_layer2(i.name));
        let mut names: Vec<_> = routed.take(MOST + 1).map(|i| i.name).collect();
        if names.len() > MOST {
            names.truncate(MOST);
            names.push("...");
        }
        if names.is_empty() { "(none declared)".to_owned() } else { names.join(", ") }
    }
}

/// Whether an address can be that of one neighbour.
pub(super) fn is_host(address: IpAddr) -> bool {
    let reserved = matches!(address, IpAddr::V4(a) if a.octets()[0] >= 240 || a.octets()[0] == 0);
    !(address.is_multicast() || address.is_unspecified() || address.is_loopback() || reserved)
}

/// Whether an address means something on one link only (RFC 4291 2.5.6).
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(a) if a.is_unicast_link_local())
}
