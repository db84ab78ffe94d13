//! Which way packets go: through Millrace, or the kernel's.

use std::net::IpAddr;

use forward::rib::Target;
use forward::state::{DEFAULT_VRF, Interfaces};
use graph::InterfaceId;
use shm::session::{Route, Routed, TransportProtocol};

use super::{Lent, Sessions};

impl Lent<'_> {
    /// Through Millrace where one of its routes leads out of a port, and to its own addresses where that port is served;
    /// else the kernel's.
    pub(super) fn route(&self, asked: &Route) -> Routed {
        let (destination, port) = (asked.destination.ip().to_canonical(), asked.destination.port());
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
            return match self.sessions.serves(asked.protocol, destination, port) {
                true => Routed::Millrace { source: destination, mtu },
                false => Routed::Kernel,
            };
        }
        let found = self.routing.rib().lookup(DEFAULT_VRF, destination);
        let target = found.route.map(|route| route.target);
        let leaves = matches!(target, Some(Target::Via(_) | Target::Port(_)));
        let first = found.next_hops.first().filter(|_| leaves);
        first.map_or(Routed::Kernel, |(index, _)| {
            let hop = self.routing.next_hop(*index);
            through(&interfaces, hop.interface, destination)
        })
    }
}

impl Sessions {
    /// Whether there is a listener at that end of an own address.
    fn serves(&self, protocol: TransportProtocol, address: IpAddr, port: u16) -> bool {
        self.steering.serves(protocol, address, port)
    }
}

/// Out of an interface, from the address from which the router itself would speak to `destination`.
fn through(interfaces: &Interfaces, id: InterfaceId, destination: IpAddr) -> Routed {
    let interface = interfaces.get(id).filter(|interface| interface.vrf == DEFAULT_VRF);
    match (interface, interfaces.source(id, destination)) {
        (Some(interface), Some(source)) => Routed::Millrace { source, mtu: interface.mtu },
        _ => Routed::Kernel,
    }
}

/// The MTU of the interface that has an address. Stacks are in the default VRF.
pub(super) fn own(interfaces: &Interfaces, address: IpAddr) -> Option<u16> {
    let mut all = interfaces.list.iter().flatten();
    let found = all.find(|interface| {
        interface.vrf == DEFAULT_VRF && interface.addresses().any(|own| own == address)
    });
    found.map(|interface| interface.mtu)
}
