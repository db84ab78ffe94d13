//! UDP (RFC 768).

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Sum;

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;

/// Why a datagram is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 8 bytes.
    #[error("shorter than a UDP header (8 bytes)")]
    Truncated,
    /// The length is below 8 or beyond the packet.
    #[error("the UDP length is below 8 or beyond the packet")]
    Length,
    /// The checksum is wrong, or absent where IPv6 demands one (RFC 8200 8.1).
    #[error("the UDP checksum is wrong")]
    Checksum,
}

/// The header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    source_port: U16,
    destination_port: U16,
    length: U16,
    checksum: U16,
}

impl Header {
    /// A header with checksum 0; `length`: bytes of header and data.
    #[must_use]
    pub fn new(source_port: u16, destination_port: u16, length: u16) -> Self {
        Self {
            source_port: U16::new(source_port),
            destination_port: U16::new(destination_port),
            length: U16::new(length),
            checksum: U16::ZERO,
        }
    }

    /// The header and its data; the checksum is not looked at. Errors: `Truncated`, `Length`.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        let (header, rest) = Self::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
        let data = usize::from(header.length.get())
            .checked_sub(HEADER_LENGTH)
            .and_then(|length| rest.get(..length))
            .ok_or(Malformed::Length)?;
        Ok((header, data))
    }

    /// Checks the checksum; `pseudo`: the pseudo header's sum, with this header's length. A
    /// checksum of 0 means none, which IPv4 allows. Errors: `Checksum`.
    pub fn verify(&self, data: &[u8], pseudo: Sum, optional: bool) -> Result<(), Malformed> {
        let absent = self.checksum.get() == 0;
        if absent && optional {
            return Ok(());
        }
        let intact = pseudo.bytes(self.as_bytes()).bytes(data).is_valid();
        if intact && !absent { Ok(()) } else { Err(Malformed::Checksum) }
    }

    /// Source port; 0: no answer is wanted.
    #[inline]
    #[must_use]
    pub fn source_port(&self) -> u16 {
        self.source_port.get()
    }

    /// Destination port.
    #[inline]
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        self.destination_port.get()
    }

    /// Bytes of header and data.
    #[inline]
    #[must_use]
    pub fn length(&self) -> u16 {
        self.length.get()
    }

    /// The checksum as written; 0: none.
    #[inline]
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn names_each_refusal() {
        let bytes = [0, 53, 0x30, 0x39, 0, 9, 0, 0, 7, 8];
        let (header, data) = Header::parse(&bytes).unwrap();
        assert_eq!((header.source_port(), header.destination_port()), (53, 12345));
        assert_eq!(data, [7]);
        assert_eq!(Header::parse(&bytes[..7]), Err(Malformed::Truncated));
        assert_eq!(Header::parse(&bytes[..8]), Err(Malformed::Length));
        let short = [0, 53, 0, 53, 0, 7, 0, 0];
        assert_eq!(Header::parse(&short), Err(Malformed::Length));
    }

    #[test]
    fn no_checksum_is_allowed_only_where_optional() {
        let header = Header::new(1, 2, 8);
        assert_eq!(header.verify(&[], Sum::new(), true), Ok(()));
        // Even where 0 is what the other bytes sum to: a sender would have written 0xffff.
        let fitting = Sum::new().u16(0xffff - 11);
        assert_eq!(header.verify(&[], fitting, false), Err(Malformed::Checksum));
    }

    proptest! {
        #[test]
        fn round_trips_and_finds_damage(s: u16, d: u16, data in vec(any::<u8>(), 0..40), flip in 0..8usize) {
            let mut header = Header::new(s, d, 8 + data.len() as u16);
            let sum = Sum::new().bytes(header.as_bytes()).bytes(&data);
            header.set_checksum(sum.finish_udp());
            let mut bytes = [header.as_bytes(), &data].concat();
            let (parsed, rest) = Header::parse(&bytes).unwrap();
            prop_assert_eq!((parsed.source_port(), parsed.destination_port(), rest), (s, d, &data[..]));
            prop_assert_eq!(parsed.verify(rest, Sum::new(), false), Ok(()));
            bytes[0] ^= 1 << flip;
            let (parsed, rest) = Header::parse(&bytes).unwrap();
            prop_assert_eq!(parsed.verify(rest, Sum::new(), false), Err(Malformed::Checksum));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..40)) {
            if let Ok((header, data)) = Header::parse(&bytes) {
                prop_assert_eq!(data.len() + 8, usize::from(header.length()));
            }
        }
    }
}
