//! MAC addresses.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A 48-bit MAC address.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr([u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff, every station.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// 00:00:00:00:00:00, no station.
    pub const ZERO: Self = Self([0; 6]);

    /// From its bytes, first on the wire first.
    #[inline]
    #[must_use]
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// Its bytes, first on the wire first.
    #[inline]
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Whether it is a group address: multicast or broadcast.
    #[inline]
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether it is the broadcast address.
    #[inline]
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// Whether a single station can have it: neither a group address nor zero.
    #[inline]
    #[must_use]
    pub fn is_unicast(self) -> bool {
        !self.is_group() && self != Self::ZERO
    }

    /// Whether it is one of 01:80:c2:00:00:00 to :0f, which bridges do not forward (802.1D 7.12.6).
    #[inline]
    #[must_use]
    pub const fn is_bridge_reserved(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xc2, 0, 0, last] if last < 0x10)
    }

    /// The group address for an IPv4 multicast address (RFC 1112 6.4).
    #[must_use]
    pub const fn from_ipv4_multicast(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The group address for an IPv6 multicast address (RFC 2464 7).
    #[must_use]
    pub const fn from_ipv6_multicast(group: Ipv6Addr) -> Self {
        let o = group.octets();
        Self([0x33, 0x33, o[12], o[13], o[14], o[15]])
    }

    /// The link-local IPv6 address made from this one (RFC 4291 appendix A, RFC 2464 5).
    #[must_use]
    pub const fn link_local(self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        let octets = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f];
        Ipv6Addr::from_bits(u128::from_be_bytes(octets))
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A text that is no MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address: write six two-digit hex bytes with ':' or '-', like 02:00:5e:10:00:01")]
pub struct ParseMacError;

impl FromStr for MacAddr {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0; 6];
        let mut parts = text.split(separator);
        for octet in &mut octets {
            let part = parts.next().ok_or(ParseMacError)?;
            // from_str_radix would take a sign.
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(ParseMacError);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| ParseMacError)?;
        }
        if parts.next().is_some() { Err(ParseMacError) } else { Ok(Self(octets)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_kinds_of_addresses() {
        assert!(MacAddr::BROADCAST.is_group() && MacAddr::BROADCAST.is_broadcast());
        assert!(!MacAddr::ZERO.is_unicast() && !MacAddr::BROADCAST.is_unicast());
        assert!(MacAddr::new([2, 0, 0, 0, 0, 1]).is_unicast());
        assert!(MacAddr::new([1, 0x80, 0xc2, 0, 0, 0x0e]).is_bridge_reserved());
        assert!(!MacAddr::new([1, 0x80, 0xc2, 0, 0, 0x10]).is_bridge_reserved());
    }

    #[test]
    fn maps_groups_and_link_local() {
        let group = MacAddr::from_ipv4_multicast(Ipv4Addr::new(239, 129, 2, 3));
        assert_eq!(group.to_string(), "01:00:5e:01:02:03");
        let group = MacAddr::from_ipv6_multicast("ff02::1:ff12:3456".parse().unwrap());
        assert_eq!(group.to_string(), "33:33:ff:12:34:56");
        let mac: MacAddr = "34:56:78:9a:bc:de".parse().unwrap();
        assert_eq!(mac.link_local(), "fe80::3656:78ff:fe9a:bcde".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in
            ["", "1:2:3:4:5:6", "02:00:00:00:00", "02:00:00:00:00:01:02", "+2:00:00:00:00:01"]
        {
            assert_eq!(text.parse::<MacAddr>(), Err(ParseMacError), "{text}");
        }
        assert_eq!("02-00-5E-10-00-01".parse(), Ok(MacAddr::new([2, 0, 0x5e, 0x10, 0, 1])));
    }

    proptest! {
        #[test]
        fn text_round_trips(octets: [u8; 6]) {
            let mac = MacAddr::new(octets);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
        }
    }
}
