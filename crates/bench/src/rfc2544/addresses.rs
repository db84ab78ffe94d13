//! Addresses of the tester, of the device between its ports, and of the flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::MacAddr;

use super::scenario::{NEXT_HOPS, Scenario};

/// MAC addresses: of the device's ports, and of the tester's.
pub(super) const DEVICE_MACS: [MacAddr; 2] =
    [MacAddr::new([2, 0, 0, 0, 1, 1]), MacAddr::new([2, 0, 0, 0, 1, 2])];
pub(super) const TESTER_MACS: [MacAddr; 2] =
    [MacAddr::new([2, 0, 0, 0, 2, 1]), MacAddr::new([2, 0, 0, 0, 2, 2])];

/// The device's interfaces: what the first gets leaves by the second, and the other way round.
pub(super) const NAMES: [&str; 2] = ["left", "right"];

/// The network between an interface of the device and the tester.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subnet {
    device: IpAddr,
    /// The tester's first address.
    tester: IpAddr,
    length: u8,
}

impl Subnet {
    const fn four(device: u8, tester: u8) -> Self {
        let (device, tester) = (Ipv4Addr::new(192, 0, 2, device), Ipv4Addr::new(192, 0, 2, tester));
        Self { device: IpAddr::V4(device), tester: IpAddr::V4(tester), length: 25 }
    }

    const fn six(network: u16) -> Self {
        let device = Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, 1);
        let tester = Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, 2);
        Self { device: IpAddr::V6(device), tester: IpAddr::V6(tester), length: 64 }
    }

    /// The device's address, as an interface is given it: 192.0.2.1/25.
    pub(super) fn of_device(self) -> String {
        format!("{}/{}", self.device, self.length)
    }

    /// The device's address.
    pub(super) fn device(self) -> IpAddr {
        self.device
    }

    /// An address of the tester, from 0.
    pub(super) fn next_hop(self, number: u32) -> IpAddr {
        nth(self.tester, number)
    }

    /// Whether the tester has an address: as many as a route can have next hops.
    pub(super) fn has(self, address: IpAddr) -> bool {
        (0..NEXT_HOPS).any(|number| self.next_hop(number) == address)
    }
}

/// Both, of IPv4 and of IPv6, from the blocks for documentation (RFC 5737, RFC 3849): those for measurements are the flows'.
pub(super) const FOUR: [Subnet; 2] = [Subnet::four(1, 2), Subnet::four(129, 130)];
pub(super) const SIX: [Subnet; 2] = [Subnet::six(1), Subnet::six(2)];

/// Those of an IP version.
pub(super) const fn subnets(ipv6: bool) -> [Subnet; 2] {
    if ipv6 { SIX } else { FOUR }
}

/// An address so much further on: the number is added to the low 32 bits, as test frames have it.
pub(super) fn nth(first: IpAddr, number: u32) -> IpAddr {
    match first {
        IpAddr::V4(four) => Ipv4Addr::from_bits(four.to_bits().wrapping_add(number)).into(),
        IpAddr::V6(six) => {
            let (high, low) = (six.to_bits() >> 32 << 32, six.to_bits() as u32);
            Ipv6Addr::from_bits(high | u128::from(low.wrapping_add(number))).into()
        }
    }
}

/// UDP and TCP ports of flow 0: the first dynamic ones (RFC 6335 6), which no service has.
pub(super) const PORTS: [u16; 2] = [49_152, 49_153];

/// The network of a stream's destinations.
pub(super) fn prefix(scenario: &Scenario, destination: IpAddr) -> String {
    let length = scenario.network_length(destination.is_ipv6());
    format!("{}/{length}", network(destination, length))
}

/// An address without the bits behind a prefix's length.
pub(super) fn network(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ipv4Addr::from_bits(four.to_bits() & mask).into()
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Ipv6Addr::from_bits(six.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tester_has_as_many_addresses_as_a_route_has_next_hops() {
        let [left, right] = FOUR;
        assert_eq!(
            (left.of_device(), right.of_device()),
            ("192.0.2.1/25".into(), "192.0.2.129/25".into())
        );
        assert_eq!(right.next_hop(NEXT_HOPS - 1).to_string(), "192.0.2.193");
        assert!(
            left.has(left.next_hop(63)) && !left.has(left.next_hop(64)) && !left.has(left.device())
        );
        assert!(!left.has(right.next_hop(0)) && !SIX[0].has(SIX[1].next_hop(0)));
        assert_eq!(SIX[1].next_hop(0).to_string(), "2001:db8:2::2");
        let at = |text: &str, flow| nth(text.parse().unwrap(), flow).to_string();
        assert_eq!(at("198.19.0.0", 65_535), "198.19.255.255");
        assert_eq!(at("2001:2::1:0:0", 65_536), "2001:2::1:1:0");
    }

    #[test]
    fn networks_have_no_bits_behind_their_length() {
        let masked = |text: &str, length| network(text.parse().unwrap(), length).to_string();
        assert_eq!(masked("198.19.1.2", 16), "198.19.0.0");
        assert_eq!(masked("10.1.2.3", 8), "10.0.0.0");
        assert_eq!(masked("2001:2:0:8000::1:0:0", 64), "2001:2:0:8000::");
    }
}
