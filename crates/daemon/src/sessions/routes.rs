//! Which way packets to an address go: through Millrace, or the kernel's.

use std::net::IpAddr;

use forward::rib::Target;
use forward::state::Interfaces;
use forward::steering::Bind;
use graph::InterfaceId;
use shm::session::Routed;

use super::{Lent, Sessions};

impl Lent<'_> {
    /// Through Millrace where one of its routes leads out of a port, and to its own addresses where something is served
    /// there; else the kernel's.
    pub(super) fn route(&self, destination: IpAddr) -> Routed {
        let destination = destination.to_canonical();
        // Which link a link-local address is meant to be on is not said.
        let stays = match destination {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let special = destination.is_loopback() || destination.is_unspecified();
        if stays || special || destination.is_multicast() {
            return Routed::Kernel;
        }
        let interfaces = self.routing.interfaces();
        if let Some(mtu) = own(&interfaces, destination) {
            return match self.sessions.serves(destination) {
                true => Routed::Millrace { source: destination, mtu },
                false => Routed::Kernel,
            };
        }
        let found = self.routing.rib().lookup(destination);
        let target = found.route.map(|route| route.target);
        let leaves = matches!(target, Some(Target::Via(_) | Target::Port(_)));
        let first = found.next_hops.first().filter(|_| leaves);
        first.map_or(Routed::Kernel, |(index, _)| {
            let hop = self.routing.next_hop(*index);
            through(&interfaces, hop.interface, destination.is_ipv6())
        })
    }
}

impl Sessions {
    /// Whether there is a listener at an own address.
    fn serves(&self, address: IpAddr) -> bool {
        let takes = |bind: &Bind| {
            let any = bind.address.is_unspecified();
            let same = bind.address.is_ipv4() == address.is_ipv4();
            bind.address == address || any && (same || bind.address.is_ipv6() && !bind.only_v6)
        };
        let stacks = self.list.values().flat_map(|session| session.stacks.values());
        stacks.flat_map(|stack| stack.listeners.values()).any(|has| takes(&has.bind))
    }
}

/// Out of an interface, from the address that the router itself would speak from.
fn through(interfaces: &Interfaces, id: InterfaceId, six: bool) -> Routed {
    match (interfaces.get(id), interfaces.source(id, six)) {
        (Some(interface), Some(source)) => Routed::Millrace { source, mtu: interface.mtu },
        _ => Routed::Kernel,
    }
}

/// The MTU of the interface that has an address.
fn own(interfaces: &Interfaces, address: IpAddr) -> Option<u16> {
    let has = |interface: &&forward::state::Interface| match address {
        IpAddr::V4(address) => interface.addresses4.iter().any(|(own, _)| *own == address),
        IpAddr::V6(address) => interface.addresses6.iter().any(|(own, _)| *own == address),
    };
    interfaces.list.iter().flatten().find(has).map(|interface| interface.mtu)
}
