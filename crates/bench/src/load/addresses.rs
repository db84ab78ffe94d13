//! Addresses of flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::prefixes::Inside;

/// Whether an address is on the router's own networks.
fn is_own_network(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..2] == [198, 18],
        IpAddr::V6(address) => address.segments()[..2] == [0x2001, 2],
    }
}

/// Addresses that flows can have.
pub(crate) trait Destination: Inside {
    fn address(self) -> IpAddr;
    /// The `n`th sender of the network behind the ingress port.
    fn source(n: usize) -> IpAddr;
    /// Whether a packet to it would be forwarded.
    fn is_routed(self) -> bool;
}

impl Destination for u32 {
    fn address(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self))
    }

    fn source(n: usize) -> IpAddr {
        // RFC 2544 C.2.2: 198.18.0.0/15 is for measurements.
        let [_, _, high, low] = (2 + n as u32 % 60_000).to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(198, 18, high, low))
    }

    fn is_routed(self) -> bool {
        let address = Ipv4Addr::from_bits(self);
        wire::special::classify_v4(address).is_none() && !is_own_network(IpAddr::V4(address))
    }
}

impl Destination for u128 {
    fn address(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(self))
    }

    fn source(n: usize) -> IpAddr {
        // RFC 5180 8: 2001:2::/48 is for measurements.
        let low = 2 + (n % 60_000) as u16;
        IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, low))
    }

    fn is_routed(self) -> bool {
        let address = Ipv6Addr::from_bits(self);
        wire::special::classify_v6(address).is_none() && !is_own_network(IpAddr::V6(address))
    }
}
