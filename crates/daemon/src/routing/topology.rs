//! From the configuration to what the nodes read: interfaces, bridges, cross-connects.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use control::config::{self, Config};
use control::net::{InterfaceAddress, MacAddr};
use forward::state::{
    Bridge, BridgeMember, DEFAULT_VRF, Features, Interface, Interfaces, MOST_VRFS, Mode, PortEntry,
    VRF_NUMBERS, VrfId,
};
use graph::{InterfaceId, PortId};

use super::ids::{Ids, TooMany};
use crate::ports::{Attachments, port_of, takes_unnumbered};
use crate::workers::PORTS;

/// Interfaces at most: their number is 16 bits, and 0xffff means none.
const INTERFACES: usize = 0xffff;

/// Bridges at most.
const BRIDGES: usize = 0xffff;

// A configuration has as many VRFs as there are tables for.
const _: () = assert!(config::MOST_VRFS == MOST_VRFS);

/// Numbers that something says, whether what they mean is there or not.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    pub(crate) interfaces: HashSet<InterfaceId>,
    pub(crate) vrfs: HashSet<VrfId>,
}

/// The numbers of interfaces, bridges and VRFs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topology {
    /// Numbers of interfaces: ports, VLAN sub-interfaces and bridges with addresses.
    interfaces: Ids,
    /// Numbers of bridges.
    pub(crate) bridges: Ids,
    /// VRFs besides the default one: one less than their [`VrfId`].
    vrfs: Ids,
}

impl Topology {
    /// Numbers what the configuration names, keeping the numbers of what was there. A number that is `in_use` stays that
    /// of the name also while the interface or VRF is gone: so what says it waits for that, and never means another.
    ///
    /// Errors: [`TooMany`], and nothing changes.
    pub(crate) fn renumber(&mut self, config: &Config, in_use: &InUse) -> Result<(), TooMany> {
        let mut next = self.clone();
        let ports = config.ports.iter().map(|port| port.name.as_str());
        let mut interfaces: Vec<&str> = ports.collect();
        interfaces.extend(config.vlans.iter().map(|vlan| vlan.name.as_str()));
        let with_ip = config.bridges.iter().filter(|bridge| !bridge.addresses.is_empty());
        interfaces.extend(with_ip.map(|bridge| bridge.name.as_str()));
        let bridges: Vec<&str> = config.bridges.iter().map(|bridge| bridge.name.as_str()).collect();
        let vrfs: Vec<&str> = config.vrfs.iter().map(|vrf| vrf.name.as_str()).collect();
        // What says the number of a name that is gone keeps nothing for the one that has it now.
        let named = in_use.interfaces.iter().filter(|id| self.interface_name(**id).is_some());
        let interfaces_in_use = named.map(|id| id.number()).collect();
        let vrfs_in_use = in_use.vrfs.iter().filter_map(|id| id.checked_sub(1)).collect();
        let limit = (INTERFACES, "names of interfaces");
        next.interfaces.renumber(&interfaces, &interfaces_in_use, limit)?;
        next.bridges.renumber(&bridges, &HashSet::new(), (BRIDGES, "names of bridges"))?;
        let limit = (VRF_NUMBERS, "names of VRFs, with those that routes still name");
        next.vrfs.renumber(&vrfs, &vrfs_in_use, limit)?;
        *self = next;
        Ok(())
    }

    /// The interface of a name, which may be gone.
    pub(crate) fn interface(&self, name: &str) -> Option<InterfaceId> {
        self.interfaces.interface(name)
    }

    /// The name of an interface, which may be gone.
    pub(crate) fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        self.interfaces.interface_name(id)
    }

    /// The number of a VRF, which may be gone; without a name it is the default one.
    pub(crate) fn vrf(&self, name: Option<&str>) -> Option<VrfId> {
        match name {
            None | Some(config::DEFAULT_VRF) => Some(DEFAULT_VRF),
            Some(name) => self.vrfs.number(name)?.checked_add(1),
        }
    }

    /// The name of a VRF, which may be gone. The default one has none.
    pub(crate) fn vrf_name(&self, id: VrfId) -> Option<&str> {
        self.vrfs.name(id.checked_sub(1)?)
    }

    /// All VRFs but the default one, those too that are gone.
    pub(crate) fn vrfs(&self) -> impl Iterator<Item = VrfId> + '_ {
        self.vrfs.numbers().filter_map(|number| number.checked_add(1))
    }

    /// The VRF of an interface. One that has no number is none that there is: nothing of it is forwarded.
    fn vrf_of(&self, name: Option<&str>) -> VrfId {
        self.vrf(name).unwrap_or(VrfId::MAX)
    }

    /// What the nodes read.
    pub(crate) fn interfaces(&self, config: &Config, ports: &Attachments) -> Interfaces {
        let mut all = Interfaces {
            list: vec![None; self.interfaces.len()],
            ports: vec![PortEntry::default(); PORTS],
            bridges: Vec::new(),
            vrfs: config
                .vrfs
                .iter()
                .filter_map(|vrf| Some((self.vrf(Some(vrf.name.as_str()))?, vrf.name.clone())))
                .collect(),
        };
        let modes = self.modes(config);
        let unnumbered = takes_unnumbered(config);
        let parts = config.ports.iter().map(|port| Part {
            name: &port.name,
            port: &port.name,
            vlan: None,
            mtu: port.mtu,
            vrf: self.vrf_of(port.vrf.as_deref()),
            addresses: &port.addresses,
            features: &port.features,
            any_mac: port.promiscuous,
        });
        let tagged = config.vlans.iter().map(|vlan| Part {
            name: &vlan.name,
            port: &vlan.port,
            vlan: Some(vlan.id),
            mtu: vlan.mtu,
            vrf: self.vrf_of(vlan.vrf.as_deref()),
            addresses: &vlan.addresses,
            features: &vlan.features,
            any_mac: false,
        });
        for part in parts.chain(tagged) {
            let Some(id) = self.interface(part.name) else { continue };
            let Some(attachment) = ports.get(part.port) else { continue };
            let mode = modes.get(&id).copied().unwrap_or(Mode::Routed);
            let mut interface = part.interface(mode, attachment.mac);
            // No worker has a way to a port that is gone: packets for it are dropped as `port-down`.
            interface.port = Some(attachment.id.unwrap_or(PortId::NONE));
            interface.up = attachment.up;
            let bare = part.addresses.is_empty() && mode == Mode::Routed && unnumbered;
            interface.unnumbered = bare;
            interface.any_mac = part.any_mac || bare;
            put(&mut all.list, id, interface);
            let Some(port) = attachment.id else { continue };
            let Some(entry) = all.ports.get_mut(port.number()) else { continue };
            entry.id = port;
            match part.vlan {
                Some(vlan) => entry.vlans.push((vlan, id)),
                None => entry.untagged = Some(id),
            }
        }
        self.add_bridges(config, ports, &mut all);
        all
    }

    fn no_bridge() -> Bridge {
        Bridge {
            name: String::new(),
            members: Vec::new(),
            ip: None,
            ip_vlan: 0,
            ageing: 0,
            mac_limit: 0,
            vlan_filtering: false,
            flood_rate: 0,
        }
    }

    fn add_bridges(&self, config: &Config, ports: &Attachments, all: &mut Interfaces) {
        all.bridges = vec![Self::no_bridge(); self.bridges.len()];
        for bridge in &config.bridges {
            let Some(number) = self.bridges.number(&bridge.name) else { continue };
            let ip = self.interface(&bridge.name);
            let members = bridge.members.iter().filter_map(|member| {
                Some(BridgeMember {
                    interface: self.interface(&member.interface)?,
                    vlans: member.vlans.clone(),
                    untagged: member.untagged,
                })
            });
            if let Some(place) = all.bridges.get_mut(usize::from(number)) {
                *place = Bridge {
                    name: bridge.name.clone(),
                    members: members.collect(),
                    ip,
                    // VLAN 1 is what a switch's untagged ports are in unless told otherwise.
                    ip_vlan: bridge.members.iter().find_map(|m| m.untagged).unwrap_or(1),
                    ageing: u32::try_from(bridge.ageing.as_secs()).unwrap_or(u32::MAX),
                    mac_limit: bridge.mac_limit,
                    vlan_filtering: bridge.vlan_filtering,
                    flood_rate: bridge.flood_rate,
                };
            }
            let Some(id) = ip else { continue };
            let first = bridge.members.first().map(|member| port_of(config, &member.interface));
            let first = first.and_then(|port| ports.get(port)).map(|port| port.mac);
            let part = Part {
                name: &bridge.name,
                port: "",
                vlan: None,
                mtu: bridge.mtu,
                vrf: self.vrf_of(bridge.vrf.as_deref()),
                addresses: &bridge.addresses,
                features: &bridge.features,
                any_mac: false,
            };
            let mac = bridge.mac.or(first).unwrap_or(MacAddr::new([0; 6]));
            let mut interface = part.interface(Mode::BridgeIp(number), mac);
            let members = bridge.members.iter().filter_map(|m| self.interface(&m.interface));
            interface.up = members.filter_map(|id| all.get(id)).any(|member| member.up);
            put(&mut all.list, id, interface);
        }
    }

    /// Interfaces that are not routed.
    fn modes(&self, config: &Config) -> HashMap<InterfaceId, Mode> {
        let mut modes = HashMap::new();
        for bridge in &config.bridges {
            let Some(number) = self.bridges.number(&bridge.name) else { continue };
            // The members' numbers are their places among those that exist, as in `bridges`.
            let ids = bridge.members.iter().filter_map(|m| self.interface(&m.interface));
            for (member, id) in (0u16..).zip(ids) {
                modes.insert(id, Mode::Member { bridge: number, member });
            }
        }
        for connect in &config.cross_connects {
            let ends = (self.interface(&connect.from), self.interface(&connect.to));
            let (Some(from), Some(to)) = ends else { continue };
            modes.insert(from, Mode::CrossConnect(to));
            if connect.both_ways {
                modes.insert(to, Mode::CrossConnect(from));
            }
        }
        modes
    }
}

fn put(list: &mut [Option<Interface>], id: InterfaceId, mut interface: Interface) {
    interface.generation = id.generation();
    if let Some(place) = list.get_mut(usize::from(id.number())) {
        *place = Some(interface);
    }
}

/// What all kinds of interfaces have in the configuration.
struct Part<'a> {
    name: &'a str,
    port: &'a str,
    vlan: Option<u16>,
    mtu: u16,
    vrf: VrfId,
    addresses: &'a [InterfaceAddress],
    features: &'a config::Features,
    any_mac: bool,
}

impl Part<'_> {
    fn interface(&self, mode: Mode, mac: MacAddr) -> Interface {
        let mut addresses4 = Vec::new();
        let mut addresses6 = Vec::new();
        for address in self.addresses {
            match address.address() {
                IpAddr::V4(ip) => addresses4.push((ip, address.length())),
                IpAddr::V6(ip) => addresses6.push((ip, address.length())),
            }
        }
        let has_link_local = addresses6.iter().any(|(ip, _)| ip.is_unicast_link_local());
        if !addresses6.is_empty() && !has_link_local {
            addresses6.push((link_local(mac), 64));
        }
        Interface {
            name: self.name.to_owned(),
            generation: 0,
            port: None,
            up: false,
            vlan: self.vlan,
            mac: mac.into(),
            mtu: self.mtu,
            addresses4,
            addresses6,
            any_mac: false,
            unnumbered: false,
            mode,
            vrf: self.vrf,
            features: Features { tcp_mss: self.features.tcp_mss },
        }
    }
}

/// RFC 4291 2.5.6 and appendix A: fe80::/64 and the modified EUI-64 of the MAC address.
fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = wire::MacAddr::from(mac).octets();
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

#[cfg(test)]
mod tests;
