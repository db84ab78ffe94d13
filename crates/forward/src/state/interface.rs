//! Ports, interfaces and bridges as the nodes see them: an immutable snapshot.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use graph::{FeatureSet, InterfaceId, PortId};
use wire::{Ipv4Prefix, Ipv6Prefix, MacAddr};

use super::{DEFAULT_VRF, Features, InputFeature, NO_VRF, VrfId};

/// Everything about ports and interfaces, replaced as a whole when the configuration changes.
#[derive(Debug, Clone, Default)]
pub struct Interfaces {
    /// By the number of [`InterfaceId`]. `None`: that interface is gone.
    pub list: Vec<Option<Interface>>,
    /// By the number of [`PortId`].
    pub ports: Vec<PortEntry>,
    /// By [`Mode::Member`]'s and [`Mode::BridgeIp`]'s number.
    pub bridges: Vec<Bridge>,
    /// Names of the VRFs that there are besides the default one.
    pub vrfs: BTreeMap<VrfId, String>,
}

impl Interfaces {
    /// The interface of that id.
    #[inline]
    #[must_use]
    pub fn get(&self, id: InterfaceId) -> Option<&Interface> {
        let known = self.list.get(usize::from(id.number()))?.as_ref();
        known.filter(|known| known.generation == id.generation())
    }

    /// All that are there, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, &Interface)> {
        let numbered = (0..=u16::MAX).zip(&self.list);
        numbered.filter_map(|(number, interface)| {
            let interface = interface.as_ref()?;
            Some((InterfaceId::with_generation(number, interface.generation), interface))
        })
    }

    /// The VRF of an interface; of what came in on none, the default one. What came in on one that is gone belongs to
    /// [`NO_VRF`]: it may have been any.
    #[inline]
    #[must_use]
    pub fn vrf_of(&self, id: InterfaceId) -> VrfId {
        let otherwise = if id == InterfaceId::NONE { DEFAULT_VRF } else { NO_VRF };
        self.get(id).map_or(otherwise, |interface| interface.vrf)
    }

    /// An own address from which to speak to `to` about or through this interface: of its VRF, of the scope of `to` (RFC 6724 5
    /// rule 2), of this interface rather than another (RFC 1812 4.3.2.4, RFC 4443 2.2), and with the longest prefix in
    /// common with `to` (rule 8). A link-local address is never another interface's, and speaks to what is not on the
    /// link only when there is no other.
    #[must_use]
    pub fn source(&self, id: InterfaceId, to: IpAddr) -> Option<IpAddr> {
        let on_link = |address: IpAddr| match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let common = |own: IpAddr| match (own, to) {
            (IpAddr::V4(own), IpAddr::V4(to)) => {
                Some((own.to_bits() ^ to.to_bits()).leading_zeros())
            }
            (IpAddr::V6(own), IpAddr::V6(to)) => {
                Some((own.to_bits() ^ to.to_bits()).leading_zeros())
            }
            _ => None,
        };
        let vrf = self.vrf_of(id);
        self.iter()
            .map(|(other, interface)| (other == id, interface))
            .filter(|(_, interface)| interface.vrf == vrf)
            .flat_map(|(here, interface)| interface.addresses().map(move |own| (here, own)))
            .filter(|(here, own)| *here || !on_link(*own))
            .filter_map(|(here, own)| {
                Some(((on_link(own) == on_link(to), here, common(own)?), own))
            })
            // The first of equals.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, own)| own)
    }

    /// Whether an address is one of the router's own in the VRF of this interface. Link-local ones count on their own
    /// interface only.
    #[must_use]
    pub fn is_own(&self, id: InterfaceId, address: IpAddr) -> bool {
        let has = |known: &Interface| known.addresses().any(|own| own == address);
        match address {
            IpAddr::V6(link) if link.is_unicast_link_local() => self.get(id).is_some_and(has),
            _ => {
                let vrf = self.vrf_of(id);
                self.list.iter().flatten().any(|known| known.vrf == vrf && has(known))
            }
        }
    }

    /// Whether an address stands for all hosts of a network that the router is on, in the VRF of this interface: all ones, or all
    /// zeros as hosts once had it (RFC 1812 4.2.3.1).
    #[must_use]
    pub fn is_directed_broadcast(&self, id: InterfaceId, address: IpAddr) -> bool {
        let IpAddr::V4(asked) = address else { return false };
        let vrf = self.vrf_of(id);
        let mut known = self.list.iter().flatten().filter(|known| known.vrf == vrf);
        known.any(|known| known.has_broadcast(asked)) && !self.is_own(id, address)
    }

    /// Whether an address is that of all routers of a network that the router is on, in the VRF of this interface.
    #[must_use]
    pub fn is_anycast(&self, id: InterfaceId, address: Ipv6Addr) -> bool {
        let vrf = self.vrf_of(id);
        let routers = |known: &Interface| known.vrf == vrf && known.is_of_routers(address);
        !self.is_own(id, address.into()) && self.list.iter().flatten().any(routers)
    }

    /// From which address to answer `to`, whose packet came in on this interface to `asked`: from there, or from an own address
    /// where that stands for several hosts, as a group's and that of all routers of a network do (RFC 4443 4.2).
    #[must_use]
    pub fn answers_from(&self, id: InterfaceId, asked: IpAddr, to: IpAddr) -> Option<IpAddr> {
        let stands_for_several = match asked {
            IpAddr::V4(asked) => asked.is_multicast() || asked.is_broadcast(),
            IpAddr::V6(asked) => asked.is_multicast() || self.is_anycast(id, asked),
        };
        if stands_for_several { self.source(id, to) } else { Some(asked) }
    }

    /// Place of an interface among a bridge's members; `None`: it is not one of them.
    #[inline]
    #[must_use]
    pub fn member_of(&self, bridge: u16, id: InterfaceId) -> Option<u16> {
        match self.get(id)?.mode {
            Mode::Member { bridge: of, member } if of == bridge => Some(member),
            _ => None,
        }
    }

    /// The interface that takes frames of `port` with this VLAN id (`None`: untagged).
    #[inline]
    #[must_use]
    pub fn of_frame(&self, port: PortId, vlan: Option<u16>) -> Option<InterfaceId> {
        let entry = self.ports.get(port.number()).filter(|entry| entry.id == port)?;
        match vlan {
            None => entry.untagged,
            Some(id) => {
                entry.vlans.iter().find(|(known, _)| *known == id).map(|(_, interface)| *interface)
            }
        }
    }
}

/// Which interfaces take a port's frames.
#[derive(Debug, Clone, Default)]
pub struct PortEntry {
    /// The port whose frames these are.
    pub id: PortId,
    /// Interface for untagged frames: the port's own.
    pub untagged: Option<InterfaceId>,
    /// Sub-interfaces: (VLAN id, interface).
    pub vlans: Vec<(u16, InterfaceId)>,
}

/// A port's own interface, a VLAN sub-interface, or a bridge's IP interface.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name in the configuration.
    pub name: String,
    /// That of its [`InterfaceId`].
    pub generation: u16,
    /// Port that its frames go through. A bridge's IP interface has none.
    pub port: Option<PortId>,
    /// Its link is up: routes may lead through it.
    pub up: bool,
    /// VLAN id of a sub-interface.
    pub vlan: Option<u16>,
    /// MAC address.
    pub mac: MacAddr,
    /// Largest IP packet: bytes.
    pub mtu: u16,
    /// Own IPv4 addresses with prefix lengths; none: IPv4 is off.
    pub addresses4: Vec<(Ipv4Addr, u8)>,
    /// Own IPv6 addresses with prefix lengths, the link-local one included; none: IPv6 is off.
    pub addresses6: Vec<(Ipv6Addr, u8)>,
    /// Takes unicast frames for other MAC addresses too (the reflecting variant of the source
    /// document has no addresses and routes whatever comes in).
    pub any_mac: bool,
    /// IP packets are taken even without an address (routes by egress port).
    pub unnumbered: bool,
    /// What becomes of its frames.
    pub mode: Mode,
    /// VRF whose routes its packets follow, and that its addresses and networks are in.
    pub vrf: VrfId,
    /// What IP packets go through that come in or leave by it.
    pub features: Features,
}

impl Interface {
    /// Its own addresses, IPv4 first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let v4 = self.addresses4.iter().map(|(address, _)| IpAddr::V4(*address));
        v4.chain(self.addresses6.iter().map(|(address, _)| IpAddr::V6(*address)))
    }

    /// The addresses of all routers on its networks (RFC 4291 2.6.1); there is none between two routers (RFC 6164 5).
    pub fn of_routers(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let shared = self.addresses6.iter();
        let shared = shared.filter(|(own, length)| *length < 127 && !own.is_unicast_link_local());
        let networks = shared.map(|(own, length)| Ipv6Prefix::containing(*own, *length));
        networks.filter_map(Result::ok).map(|network| network.address())
    }

    /// Whether an address is one of these.
    #[must_use]
    pub fn is_of_routers(&self, address: Ipv6Addr) -> bool {
        self.of_routers().any(|of_routers| of_routers == address)
    }

    /// Whether an address is the broadcast address of one of its networks; /31 (RFC 3021) and /32 have none.
    fn has_broadcast(&self, address: Ipv4Addr) -> bool {
        self.addresses4.iter().any(|(own, length)| {
            let network = Ipv4Prefix::containing(*own, *length);
            let is_end = |of: Ipv4Prefix| of.address() == address || of.last() == address;
            *length <= 30 && network.is_ok_and(is_end)
        })
    }

    /// What IP packets that come in by it go through before they are looked up.
    #[inline]
    #[must_use]
    pub fn input_features(&self) -> FeatureSet {
        let set = self.features.input();
        if self.vrf == DEFAULT_VRF { set } else { set.with(InputFeature::Vrf as u8) }
    }

    /// Whether IPv4 packets are taken.
    #[must_use]
    pub fn takes_ip4(&self) -> bool {
        self.unnumbered || !self.addresses4.is_empty()
    }

    /// Whether IPv6 packets are taken.
    #[must_use]
    pub fn takes_ip6(&self) -> bool {
        self.unnumbered || !self.addresses6.is_empty()
    }
}

/// What becomes of the frames of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are routed.
    Routed,
    /// They leave by that interface, untouched but for its VLAN tag.
    CrossConnect(InterfaceId),
    /// The interface is member `member` of bridge `bridge`.
    Member {
        /// Place in [`Interfaces::bridges`].
        bridge: u16,
        /// Place in [`Bridge::members`].
        member: u16,
    },
    /// The interface is the IP interface of that bridge.
    BridgeIp(u16),
}

/// A learning bridge.
#[derive(Debug, Clone)]
pub struct Bridge {
    /// Name in the configuration.
    pub name: String,
    /// Its members.
    pub members: Vec<BridgeMember>,
    /// Its IP interface.
    pub ip: Option<InterfaceId>,
    /// VLAN of its IP interface, with VLAN filtering.
    pub ip_vlan: u16,
    /// Learned addresses are forgotten after: seconds.
    pub ageing: u32,
    /// Learned addresses at most.
    pub mac_limit: u32,
    /// Look at VLAN tags.
    pub vlan_filtering: bool,
    /// Flooded frames per second on each worker; 0: no limit.
    pub flood_rate: u32,
}

/// A member of a bridge.
#[derive(Debug, Clone)]
pub struct BridgeMember {
    /// The interface.
    pub interface: InterfaceId,
    /// VLANs that may pass; empty: all.
    pub vlans: Vec<u16>,
    /// VLAN of untagged frames.
    pub untagged: Option<u16>,
}

#[cfg(test)]
mod tests;
