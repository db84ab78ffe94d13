//! The path of packets that are made here out of a received one.

use std::net::IpAddr;

use graph::{InterfaceId, Slot, Vector};
use wire::ethernet::{HEADER_LENGTH, Header};
use wire::{EtherType, MacAddr};

use crate::state::{DEFAULT_VRF, Interfaces, VrfId};

graph::edges! {
    /// How a packet made here leaves: the next nodes of a node that makes them.
    pub(crate) ReplyPath {
        /// By the IPv4 routes of the default VRF.
        Routed4 => "ip4-output",
        /// By the IPv6 routes of the default VRF.
        Routed6 => "ip6-output",
        /// By the IPv4 routes of the VRF in `vrf`.
        Vrf4 => "ip4-vrf-output",
        /// By the IPv6 routes of the VRF in `vrf`.
        Vrf6 => "ip6-vrf-output",
        /// By the interface that the received packet came in on, to the MAC address that it came from:
        /// a link-local address is in no route table.
        Link => "interface-output",
    }
}

impl ReplyPath {
    /// By the routes to an address, in a VRF.
    pub(super) fn routed(vrf: VrfId, to: IpAddr) -> Self {
        match (to, vrf) {
            (IpAddr::V4(_), DEFAULT_VRF) => Self::Routed4,
            (IpAddr::V4(_), _) => Self::Vrf4,
            (IpAddr::V6(_), DEFAULT_VRF) => Self::Routed6,
            (IpAddr::V6(_), _) => Self::Vrf6,
        }
    }
}

/// Prepares the packet in `slot`, addressed to `to`, for its path: by a link, that is an
/// Ethernet header to `peer`; by routes, those of the VRF that the received packet came in by. `None`: no room for a header.
pub(super) fn prepare(
    vector: &mut Vector,
    slot: Slot,
    interfaces: &Interfaces,
    to: IpAddr,
    peer: MacAddr,
) -> Option<ReplyPath> {
    let at = usize::from(slot);
    match to {
        IpAddr::V6(link_local) if link_local.is_unicast_link_local() => {
            let id = vector.interface[at];
            let link = link(interfaces, id, to, peer)?;
            let network = usize::from(vector.network[at]);
            let buffer = vector.buffer_mut(slot)?;
            if !buffer.adjust(network) {
                return None;
            }
            buffer.prepend(HEADER_LENGTH)?;
            let (header, _) = Header::parse_mut(buffer.data_mut()).ok()?;
            *header = link;
            vector.egress[at] = id;
            Some(ReplyPath::Link)
        }
        _ => {
            let vrf = interfaces.vrf_of(vector.interface[at]);
            vector.vrf[at] = vrf;
            Some(ReplyPath::routed(vrf, to))
        }
    }
}

/// The Ethernet header of a packet made here that leaves by its link, to `to` behind `peer`. `None`:
/// the routes say how it leaves.
pub(super) fn link(
    interfaces: &Interfaces,
    id: InterfaceId,
    to: IpAddr,
    peer: MacAddr,
) -> Option<Header> {
    let on_link = matches!(to, IpAddr::V6(to) if to.is_unicast_link_local());
    let own = interfaces.get(id).filter(|_| on_link)?.mac;
    Some(Header::new(peer, own, EtherType::IPV6))
}

/// Whom a received frame came from; read it before headers are written over it.
pub(super) fn peer(vector: &Vector, slot: Slot) -> MacAddr {
    let frame = vector.buffer(slot).map_or(&[][..], |buffer| buffer.data());
    Header::parse(frame).map_or(MacAddr::ZERO, |(header, _)| header.source)
}
