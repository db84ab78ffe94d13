//! Addresses that may not appear as source or destination of a forwarded packet ('martians':
//! RFC 1812 5.3.7, RFC 6890, RFC 4291).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Why an address is special.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// 0.0.0.0/8 or ::, this host.
    Unspecified,
    /// 127.0.0.0/8 or ::1.
    Loopback,
    /// 169.254.0.0/16 or fe80::/10: never leaves its link.
    LinkLocal,
    /// 224.0.0.0/4 or ff00::/8.
    Multicast,
    /// 240.0.0.0/4 but the limited broadcast.
    Reserved,
    /// 255.255.255.255.
    LimitedBroadcast,
    /// ::ffff:0:0/96, which is never on the wire.
    V4Mapped,
}

/// Why an IPv4 address is special; `None` for one that can be a single host's anywhere.
#[inline]
#[must_use]
pub fn classify_v4(address: Ipv4Addr) -> Option<Special> {
    let [a, b, ..] = address.octets();
    match a {
        0 => Some(Special::Unspecified),
        127 => Some(Special::Loopback),
        169 if b == 254 => Some(Special::LinkLocal),
        224..=239 => Some(Special::Multicast),
        240..=255 if address == Ipv4Addr::BROADCAST => Some(Special::LimitedBroadcast),
        240..=255 => Some(Special::Reserved),
        _ => None,
    }
}

/// Why an IPv6 address is special; `None` for one that can be a single host's anywhere.
#[inline]
#[must_use]
pub fn classify_v6(address: Ipv6Addr) -> Option<Special> {
    let bits = address.to_bits();
    // Everything special lies in ::/8 or at fe80:: and above.
    match (bits >> 120) as u8 {
        0x00 => match bits {
            0 => Some(Special::Unspecified),
            1 => Some(Special::Loopback),
            _ if bits >> 32 == 0xffff => Some(Special::V4Mapped),
            _ => None,
        },
        0xfe if bits >> 118 == 0x3fa => Some(Special::LinkLocal),
        0xff => Some(Special::Multicast),
        _ => None,
    }
}

/// Whether an IPv4 source must be dropped. Link-local may stay on its link, so it is for the
/// router's choice, not listed here.
#[inline]
#[must_use]
pub fn is_martian_source_v4(address: Ipv4Addr) -> bool {
    matches!(classify_v4(address), Some(special) if special != Special::LinkLocal)
}

/// Whether an IPv4 destination must be dropped. Multicast, the limited broadcast and link-local
/// are no martians here: they are for the link, not for routing.
#[inline]
#[must_use]
pub fn is_martian_destination_v4(address: Ipv4Addr) -> bool {
    matches!(
        classify_v4(address),
        Some(Special::Unspecified | Special::Loopback | Special::Reserved)
    )
}

/// Whether an IPv6 source must be dropped when the packet is to be forwarded. The unspecified
/// source is legitimate only in a node's own link (RFC 4291 2.5.2), so neighbour discovery is to
/// be taken out before.
#[inline]
#[must_use]
pub fn is_martian_source_v6(address: Ipv6Addr) -> bool {
    matches!(classify_v6(address), Some(special) if special != Special::LinkLocal)
}

/// Whether an IPv6 destination must be dropped. Multicast and link-local are for the link.
#[inline]
#[must_use]
pub fn is_martian_destination_v6(address: Ipv6Addr) -> bool {
    matches!(
        classify_v6(address),
        Some(Special::Unspecified | Special::Loopback | Special::V4Mapped)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_v4_at_the_borders() {
        let cases = [
            ("0.0.0.0", Some(Special::Unspecified)),
            ("0.255.255.255", Some(Special::Unspecified)),
            ("1.0.0.0", None),
            ("126.255.255.255", None),
            ("127.0.0.1", Some(Special::Loopback)),
            ("128.0.0.0", None),
            ("169.253.255.255", None),
            ("169.254.0.0", Some(Special::LinkLocal)),
            ("169.255.0.0", None),
            ("223.255.255.255", None),
            ("224.0.0.1", Some(Special::Multicast)),
            ("239.255.255.255", Some(Special::Multicast)),
            ("240.0.0.0", Some(Special::Reserved)),
            ("255.255.255.254", Some(Special::Reserved)),
            ("255.255.255.255", Some(Special::LimitedBroadcast)),
        ];
        for (text, expected) in cases {
            assert_eq!(classify_v4(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn classifies_v6_at_the_borders() {
        let cases = [
            ("::", Some(Special::Unspecified)),
            ("::1", Some(Special::Loopback)),
            ("::2", None),
            ("::ffff:192.0.2.1", Some(Special::V4Mapped)),
            ("64:ff9b::1", None),
            ("2001:db8::1", None),
            ("fe7f::1", None),
            ("fe80::1", Some(Special::LinkLocal)),
            ("febf::1", Some(Special::LinkLocal)),
            ("fec0::1", None),
            ("ff02::1", Some(Special::Multicast)),
        ];
        for (text, expected) in cases {
            assert_eq!(classify_v6(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn sources_and_destinations_differ() {
        let v4 = |text: &str| {
            let address = text.parse().unwrap();
            (is_martian_source_v4(address), is_martian_destination_v4(address))
        };
        assert_eq!(v4("10.0.0.1"), (false, false));
        assert_eq!(v4("224.0.0.5"), (true, false));
        assert_eq!(v4("255.255.255.255"), (true, false));
        assert_eq!(v4("127.0.0.1"), (true, true));
        assert_eq!(v4("250.0.0.1"), (true, true));
        assert_eq!(v4("169.254.1.1"), (false, false));
        let v6 = |text: &str| {
            let address = text.parse().unwrap();
            (is_martian_source_v6(address), is_martian_destination_v6(address))
        };
        assert_eq!(v6("2001:db8::1"), (false, false));
        assert_eq!(v6("ff02::1"), (true, false));
        assert_eq!(v6("::1"), (true, true));
        assert_eq!(v6("::ffff:10.0.0.1"), (true, true));
        assert_eq!(v6("fe80::1"), (false, false));
    }
}
