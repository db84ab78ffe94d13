//! Ethernet II frames (IEEE 802.3 clause 3): addresses, types, the 14-byte header.

use std::fmt;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use mac::{MacAddr, ParseMacError};

mod mac;

/// Bytes of an untagged header.
pub const HEADER_LENGTH: usize = 14;

/// What a frame carries (IANA "Ethernet numbers").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// An 802.1Q tag follows.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// An 802.1ad service tag follows.
    pub const SERVICE_VLAN: Self = Self(0x88a8);

    /// Whether a 4-byte VLAN tag follows.
    #[inline]
    #[must_use]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::SERVICE_VLAN)
    }

    /// Whether the field is a length of an 802.3 frame and no type (below 0x600).
    #[inline]
    #[must_use]
    pub const fn is_length(self) -> bool {
        self.0 < 0x600
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a frame is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 14 bytes.
    #[error("shorter than an Ethernet header (14 bytes)")]
    Truncated,
}

/// The header of an untagged frame, or what precedes the first tag.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Destination address.
    pub destination: MacAddr,
    /// Source address.
    pub source: MacAddr,
    ether_type: U16,
}

impl Header {
    /// A header of these fields.
    #[must_use]
    pub fn new(destination: MacAddr, source: MacAddr, ether_type: EtherType) -> Self {
        Self { destination, source, ether_type: U16::new(ether_type.0) }
    }

    /// The header and the bytes behind it. Errors: `Truncated`.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        Self::ref_from_prefix(frame).map_err(|_| Malformed::Truncated)
    }

    /// The same, for writing. Errors: `Truncated`.
    #[inline]
    pub fn parse_mut(frame: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        Self::mut_from_prefix(frame).map_err(|_| Malformed::Truncated)
    }

    /// The type of what follows.
    #[inline]
    #[must_use]
    pub fn ether_type(&self) -> EtherType {
        EtherType(self.ether_type.get())
    }

    /// Sets the type of what follows.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: EtherType) {
        self.ether_type.set(ether_type.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_a_known_frame() {
        let frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60];
        let (header, rest) = Header::parse(&frame).unwrap();
        assert_eq!(header.destination, MacAddr::new([2, 0, 0, 0, 0, 1]));
        assert_eq!(header.source, MacAddr::new([2, 0, 0, 0, 0, 2]));
        assert_eq!(header.ether_type(), EtherType::IPV6);
        assert_eq!(rest, [0x60]);
        assert_eq!(Header::parse(&frame[..13]), Err(Malformed::Truncated));
    }

    proptest! {
        #[test]
        fn header_round_trips(d: [u8; 6], s: [u8; 6], t: u16) {
            let header = Header::new(d.into(), s.into(), EtherType(t));
            let (parsed, rest) = Header::parse(header.as_bytes()).unwrap();
            prop_assert_eq!(parsed, &header);
            prop_assert_eq!(parsed.ether_type().0, t);
            prop_assert!(rest.is_empty());
        }
    }
}
