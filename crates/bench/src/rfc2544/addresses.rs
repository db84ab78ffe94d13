//! Addresses of the tester, of the device between its ports, and of the flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::MacAddr;

use super::scenario::Scenario;

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
    device: &'static str,
    pub(super) tester: &'static str,
    length: u8,
}

impl Subnet {
    /// The device's address, as an interface is given it: 192.0.2.1/25.
    pub(super) fn of_device(self) -> String {
        format!("{}/{}", self.device, self.length)
    }
}

/// Both, of IPv4 and of IPv6, from the blocks for documentation (RFC 5737, RFC 3849): those for measurements are the flows'.
pub(super) const FOUR: [Subnet; 2] = [
    Subnet { device: "192.0.2.1", tester: "192.0.2.2", length: 25 },
    Subnet { device: "192.0.2.129", tester: "192.0.2.130", length: 25 },
];
pub(super) const SIX: [Subnet; 2] = [
    Subnet { device: "2001:db8:1::1", tester: "2001:db8:1::2", length: 64 },
    Subnet { device: "2001:db8:2::1", tester: "2001:db8:2::2", length: 64 },
];

/// Those of the flows' family.
pub(super) fn subnets(scenario: &Scenario) -> [Subnet; 2] {
    if scenario.frames.layout().ipv6 { SIX } else { FOUR }
}

/// UDP and TCP ports of flow 0: the first dynamic ones (RFC 6335 6), which no service has.
pub(super) const PORTS: [u16; 2] = [49_152, 49_153];

/// The network of a stream's destinations.
pub(super) fn prefix(scenario: &Scenario, destination: IpAddr) -> String {
    let length = scenario.network_length();
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
    fn networks_have_no_bits_behind_their_length() {
        let masked = |text: &str, length| network(text.parse().unwrap(), length).to_string();
        assert_eq!(masked("198.19.1.2", 16), "198.19.0.0");
        assert_eq!(masked("10.1.2.3", 8), "10.0.0.0");
        assert_eq!(masked("2001:2:0:8000::1:0:0", 64), "2001:2:0:8000::");
    }
}
