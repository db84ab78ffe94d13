//! Which way packets go: through Millrace, or the kernel's.

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};

use forward::rib::Target;
use forward::state::{DEFAULT_VRF, Interfaces};
use graph::InterfaceId;
use shm::session::{Route, Routed, TransportProtocol};

use super::{Lent, Sessions};

/// Which way packets go, as far as the router knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Known(Routed),
    /// To an own address, with that MTU, where nobody serves the port.
    Unserved(IpAddr, u16),
}

impl Way {
    /// Where nobody serves, whoever has the address refuses: the kernel would send what it does not have to its own gateway. It is
    /// asked here, on the user's thread.
    pub(super) fn routed(self) -> Routed {
        match self {
            Self::Known(routed) => routed,
            Self::Unserved(address, _) if is_the_kernels(address) => Routed::Kernel,
            Self::Unserved(source, mtu) => Routed::Millrace { source, mtu },
        }
    }
}

impl Lent<'_> {
    /// Through Millrace where one of its routes leads out of a port, and to its own addresses where that port is served or
    /// the kernel does not have the address; else the kernel's.
    pub(super) fn route(&self, asked: &Route) -> Way {
        let (destination, port) = (asked.destination.ip().to_canonical(), asked.destination.port());
        // Which link a link-local address is meant to be on is not said.
        let stays = match destination {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let special = destination.is_loopback() || destination.is_unspecified();
        if stays || special || destination.is_multicast() {
            return Way::Known(Routed::Kernel);
        }
        let interfaces = self.routing.interfaces();
        if let Some(mtu) = own(&interfaces, destination) {
            // Whoever asks for port 0 asks whether the router has the address.
            return match port == 0 || self.sessions.serves(asked.protocol, destination, port) {
                true => Way::Known(Routed::Millrace { source: destination, mtu }),
                false => Way::Unserved(destination, mtu),
            };
        }
        let found = self.routing.rib().lookup(DEFAULT_VRF, destination);
        let target = found.route.map(|route| route.target);
        let leaves = matches!(target, Some(Target::Via(_) | Target::Port(_)));
        let first = found.next_hops.first().filter(|_| leaves);
        Way::Known(first.map_or(Routed::Kernel, |(index, _)| {
            let hop = self.routing.next_hop(*index);
            through(&interfaces, hop.interface, destination)
        }))
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
    use control::net::MacAddr;
    use graph::PortId;

    use super::*;
    use crate::ports::Attachment;
    use crate::routing::{InUse, Topology};
    use crate::sessions::own_addresses;
    use crate::testing;

    #[test]
    fn stacks_are_reached_at_addresses_of_the_default_vrf_alone() {
        let port = |name: &str, vrf: &str, address: &str| {
            format!(
                "[[port]]\nname = \"{name}\"\ndevice = \"null\"\n{vrf}addresses = [\"{address}\"]\n"
            )
        };
        let config = testing::config(&format!(
            "[[vrf]]\nname = \"red\"\n{}{}",
            port("a", "", "192.0.2.1/24"),
            port("b", "vrf = \"red\"\n", "198.51.100.1/24")
        ));
        let mut topology = Topology::default();
        topology.renumber(&config, &InUse::default()).unwrap();
        let attachment = |name: &str| {
            let mac = MacAddr::new([2, 0, 0, 0, 0, 1]);
            (name.to_owned(), Attachment { id: Some(PortId::new(0)), mac, up: true })
        };
        let ports = ["a", "b"].into_iter().map(attachment).collect();
        let all = topology.interfaces(&config, &ports);
        assert_eq!(all.list.iter().flatten().count(), 2);
        assert_eq!(own_addresses(&all), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn the_kernel_has_the_loopbacks_addresses_and_none_of_documentation() {
        for (address, has) in [("127.0.0.1", true), ("192.0.2.1", false), ("2001:db8::1", false)] {
            let address = address.parse().unwrap();
            assert_eq!(is_the_kernels(address), has, "{address}");
            let millrace = Routed::Millrace { source: address, mtu: 1400 };
            let wanted = if has { Routed::Kernel } else { millrace };
            assert_eq!(Way::Unserved(address, 1400).routed(), wanted, "{address}");
            assert_eq!(Way::Known(millrace).routed(), millrace);
        }
    }
}
