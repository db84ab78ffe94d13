//! IPv6 headers (RFC 8200): the fixed 40 bytes, and the walk to the upper layer.

use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::protocol::Protocol;

pub use extension::{
    ChainError, Fragment, MAX_EXTENSION_BYTES, MAX_EXTENSIONS, UpperLayer, upper_layer,
};
pub use objection::{Objection, objection};

mod extension;
mod objection;

/// Bytes of the fixed header.
pub const HEADER_LENGTH: usize = 40;
/// The smallest MTU a link may have: bytes (RFC 8200 5).
pub const MINIMUM_MTU: usize = 1280;

/// Why a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 40 bytes.
    #[error("shorter than an IPv6 header (40 bytes)")]
    Truncated,
    /// The version is not 6.
    #[error("the version field is not 6")]
    Version,
    /// The payload length reaches beyond the packet.
    #[error("the payload length reaches beyond the packet")]
    PayloadLength,
}

/// The hop limit would reach zero: the packet ends here (RFC 8200 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hop limit ran out")]
pub struct HopLimitExceeded;

/// Why [`forward_in_place`] left a packet as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotForwarded {
    /// The header is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The hop limit ran out.
    #[error(transparent)]
    HopLimitExceeded(#[from] HopLimitExceeded),
}

/// The fixed header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    version_class_label: U32,
    payload_length: U16,
    next_header: Protocol,
    hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

impl Header {
    /// The checked header of a packet; bytes beyond its payload length (padding) are allowed.
    /// Errors: see [`Malformed`].
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<&Self, Malformed> {
        Self::parse_within(packet, packet.len())
    }

    /// The checked header of a packet of `present` bytes, of which only the first are at hand: the
    /// first segment of a scattered one. Errors: see [`Malformed`].
    #[inline]
    pub fn parse_within(packet: &[u8], present: usize) -> Result<&Self, Malformed> {
        let (header, _) = Self::ref_from_prefix(packet).map_err(|_| Malformed::Truncated)?;
        if header.version_class_label.get() >> 28 != 6 {
            return Err(Malformed::Version);
        }
        if header.total_length() > present {
            return Err(Malformed::PayloadLength);
        }
        Ok(header)
    }

    /// The checked header of a packet of `present` bytes when there is no padding. `None`: malformed,
    /// or padded; [`Self::parse_within`] tells.
    #[inline(always)]
    #[must_use]
    pub fn of_plain(bytes: &[u8; HEADER_LENGTH], present: usize) -> Option<&Self> {
        let header: &Self = zerocopy::transmute_ref!(bytes);
        let [first, ..] = bytes;
        (first >> 4 == 6 && header.total_length() == present).then_some(header)
    }

    /// The same, for writing. Errors: see [`Malformed`].
    #[inline]
    pub fn parse_mut(packet: &mut [u8]) -> Result<&mut Self, Malformed> {
        Self::parse(packet)?;
        let (header, _) = Self::mut_from_prefix(packet).map_err(|_| Malformed::Truncated)?;
        Ok(header)
    }

    /// The header at the start of bytes that were checked before, or that are quoted in an ICMP
    /// error and cut short: only the version and the 40 bytes are sure. `None`: not there.
    #[inline]
    #[must_use]
    pub fn peek(packet: &[u8]) -> Option<&Self> {
        let (header, _) = Self::ref_from_prefix(packet).ok()?;
        (header.version_class_label.get() >> 28 == 6).then_some(header)
    }

    /// The header at the start of a packet that was checked before, for writing.
    #[inline(always)]
    #[must_use]
    pub fn checked_mut(packet: &mut [u8]) -> std::option::Option<&mut Self> {
        Self::mut_from_prefix(packet).ok().map(|(header, _)| header)
    }

    /// The same, for writing.
    #[inline]
    #[must_use]
    pub fn peek_mut(packet: &mut [u8]) -> Option<&mut Self> {
        let (header, _) = Self::mut_from_prefix(packet).ok()?;
        (header.version_class_label.get() >> 28 == 6).then_some(header)
    }

    /// Differentiated services code point, 6 bits.
    #[inline]
    #[must_use]
    pub fn dscp(&self) -> u8 {
        (self.version_class_label.get() >> 22 & 0x3f) as u8
    }

    /// Explicit congestion notification, 2 bits.
    #[inline]
    #[must_use]
    pub fn ecn(&self) -> u8 {
        (self.version_class_label.get() >> 20 & 3) as u8
    }

    /// Flow label (RFC 6437), 20 bits.
    #[inline]
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        self.version_class_label.get() & 0x000f_ffff
    }

    /// Bytes behind the fixed header, extension headers included.
    #[inline]
    #[must_use]
    pub fn payload_length(&self) -> u16 {
        self.payload_length.get()
    }

    /// Bytes of header and payload.
    #[inline]
    #[must_use]
    pub fn total_length(&self) -> usize {
        HEADER_LENGTH + usize::from(self.payload_length.get())
    }

    /// What follows the fixed header: an extension header or the upper layer.
    #[inline]
    #[must_use]
    pub fn next_header(&self) -> Protocol {
        self.next_header
    }

    /// Hop limit: hops.
    #[inline]
    #[must_use]
    pub fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Source address.
    #[inline]
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        self.source.into()
    }

    /// Destination address.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        self.destination.into()
    }

    /// Sets source and destination; upper-layer checksums cover them.
    pub fn set_addresses(&mut self, source: Ipv6Addr, destination: Ipv6Addr) {
        self.source = source.octets();
        self.destination = destination.octets();
    }

    /// Sets the hop limit.
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.hop_limit = hop_limit;
    }

    /// Sets the bytes behind the fixed header.
    pub fn set_payload_length(&mut self, length: u16) {
        self.payload_length.set(length);
    }

    /// Sets what follows the fixed header.
    pub fn set_next_header(&mut self, next_header: Protocol) {
        self.next_header = next_header;
    }
}

/// What a header is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// What follows the fixed header.
    pub next_header: Protocol,
    /// Hop limit: hops.
    pub hop_limit: u8,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// The low 20 bits are the flow label.
    pub flow_label: u32,
}

impl Fields {
    /// The header for `payload_length` bytes behind it.
    #[inline]
    #[must_use]
    pub fn header(&self, payload_length: u16) -> Header {
        let class = u32::from(self.traffic_class) << 20;
        Header {
            version_class_label: U32::new(6 << 28 | class | (self.flow_label & 0x000f_ffff)),
            payload_length: U16::new(payload_length),
            next_header: self.next_header,
            hop_limit: self.hop_limit,
            source: self.source.octets(),
            destination: self.destination.octets(),
        }
    }
}

/// One hop less. Errors: `HopLimitExceeded` when it is 0 or 1; the header is unchanged then.
#[inline]
pub fn decrement_hop_limit(header: &mut Header) -> Result<(), HopLimitExceeded> {
    if header.hop_limit <= 1 {
        return Err(HopLimitExceeded);
    }
    header.hop_limit -= 1;
    Ok(())
}

/// Checks a packet and takes one hop off it: all that forwarding changes in the header.
/// Errors: see [`NotForwarded`]; the packet is unchanged then.
#[inline]
pub fn forward_in_place(packet: &mut [u8]) -> Result<&mut Header, NotForwarded> {
    let header = Header::parse_mut(packet)?;
    decrement_hop_limit(header)?;
    Ok(header)
}

/// The multicast address at which neighbours ask for `address` (RFC 4291 2.7.1).
#[must_use]
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let low = address.to_bits() & 0x00ff_ffff;
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | low)
}

#[cfg(test)]
mod tests;
