//! Which way packets go: through Millrace, or the kernel's.

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};

use forward::rib::Target;
use forward::state::{DEFAULT_VRF, Interfaces};
use graph::InterfaceId;
use shm::session::{Route, Routed, TransportProtocol};

use super::{Lent, Sessions};

impl Lent<'_> {
    /// Through Millrace where one of its routes leads out of a port, and to its own addresses where that port is served or
    /// the kernel does not have the address; else the kernel's.
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
            let served = self.sessions.serves(asked.protocol, destination, port);
            // What nobody serves is refused by whoever has the address: the kernel would send it to its own gateway.
            return match served || !is_the_kernels(destination) {
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
    /// Whether that end of an own address is somebody's here: a listener's, or, of datagrams, whoever leases the port.
    fn serves(&self, protocol: TransportProtocol, address: IpAddr, port: u16) -> bool {
        let leased = protocol == TransportProtocol::Udp && self.steering.lessee(port).is_some();
        leased || self.steering.serves(protocol, address, port)
    }
}

/// Whether the kernel has an address, too: it binds no socket to any other.
fn is_the_kernels(address: IpAddr) -> bool {
    let bound = UdpSocket::bind((address, 0));
    !bound.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_the_loopbacks_addresses_and_none_of_documentation() {
        for (address, has) in [("127.0.0.1", true), ("192.0.2.1", false), ("2001:db8::1", false)] {
            assert_eq!(is_the_kernels(address.parse().unwrap()), has, "{address}");
        }
    }
}
