//! IPv4 headers (RFC 791), as a router checks and forwards them (RFC 1812 5.2.2, 5.3.1).

use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::protocol::Protocol;

pub use fields::Fields;
pub use forwarding::{NotForwarded, TtlExpired, decrement_ttl, forward_in_place};
pub use options::{Option, OptionError, Options};

mod fields;
mod forwarding;
mod options;

/// Bytes of a header without options.
pub const HEADER_LENGTH: usize = 20;
/// Bytes of the longest header.
pub const MAX_HEADER_LENGTH: usize = 60;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Why a packet is refused (RFC 1812 5.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 20 bytes.
    #[error("shorter than an IPv4 header (20 bytes)")]
    Truncated,
    /// The version is not 4.
    #[error("the version field is not 4")]
    Version,
    /// The header length is below 20 bytes or beyond the packet.
    #[error("the header length is below 20 bytes or beyond the packet")]
    HeaderLength,
    /// The total length is below the header's or beyond the packet.
    #[error("the total length is below the header's or beyond the packet")]
    TotalLength,
    /// The checksum is wrong.
    #[error("the header checksum is wrong")]
    Checksum,
}

/// The fixed 20 bytes of a header; options follow it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    version_length: u8,
    service: u8,
    total_length: U16,
    identification: U16,
    fragment: U16,
    ttl: u8,
    protocol: Protocol,
    checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

impl Header {
    /// The checked header of a packet; bytes beyond its total length (padding) are allowed.
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
        header.check(packet, present).map(|()| header)
    }

    /// The checked header of a packet of `present` bytes when it has no options and the packet no
    /// padding. `None`: malformed, or merely unusual; [`Self::parse_within`] tells.
    #[inline(always)]
    #[must_use]
    pub fn of_plain(bytes: &[u8; HEADER_LENGTH], present: usize) -> std::option::Option<&Self> {
        let header: &Self = zerocopy::transmute_ref!(bytes);
        let plain = header.version_length == 0x45
            && usize::from(header.total_length.get()) == present
            && checksum::ipv4_header_is_valid(bytes);
        plain.then_some(header)
    }

    /// The same, for writing. Errors: see [`Malformed`].
    #[inline]
    pub fn parse_mut(packet: &mut [u8]) -> Result<&mut Self, Malformed> {
        Self::parse(packet)?;
        let (header, _) = Self::mut_from_prefix(packet).map_err(|_| Malformed::Truncated)?;
        Ok(header)
    }

    /// The header at the start of bytes that were checked before, or that are quoted in an ICMP
    /// error and cut short: only the version and the 20 bytes are sure. `None`: not there.
    #[inline]
    #[must_use]
    pub fn peek(packet: &[u8]) -> std::option::Option<&Self> {
        let (header, _) = Self::ref_from_prefix(packet).ok()?;
        (header.version_length >> 4 == 4).then_some(header)
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
    pub fn peek_mut(packet: &mut [u8]) -> std::option::Option<&mut Self> {
        let (header, _) = Self::mut_from_prefix(packet).ok()?;
        (header.version_length >> 4 == 4).then_some(header)
    }

    #[inline]
    fn check(&self, packet: &[u8], present: usize) -> Result<(), Malformed> {
        // Nearly every packet has no options: one comparison covers version and header length.
        if self.version_length != 0x45 {
            return self.check_with_options(packet, present);
        }
        let total = usize::from(self.total_length.get());
        if total < HEADER_LENGTH || total > present {
            return Err(Malformed::TotalLength);
        }
        match packet.first_chunk::<HEADER_LENGTH>() {
            Some(bytes) if checksum::ipv4_header_is_valid(bytes) => Ok(()),
            _ => Err(Malformed::Checksum),
        }
    }

    #[cold]
    fn check_with_options(&self, packet: &[u8], present: usize) -> Result<(), Malformed> {
        if self.version_length >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let length = self.header_length();
        if length < HEADER_LENGTH {
            return Err(Malformed::HeaderLength);
        }
        let bytes = packet.get(..length).ok_or(Malformed::HeaderLength)?;
        let total = usize::from(self.total_length.get());
        if total < length || total > present {
            return Err(Malformed::TotalLength);
        }
        if checksum::Sum::new().bytes(bytes).is_valid() { Ok(()) } else { Err(Malformed::Checksum) }
    }

    /// Bytes of the header with its options.
    #[inline]
    #[must_use]
    pub fn header_length(&self) -> usize {
        usize::from(self.version_length & 0xf) * 4
    }

    /// Whether options follow the fixed header.
    #[inline]
    #[must_use]
    pub fn has_options(&self) -> bool {
        self.version_length & 0xf > 5
    }

    /// Bytes of header and payload.
    #[inline]
    #[must_use]
    pub fn total_length(&self) -> u16 {
        self.total_length.get()
    }

    /// Differentiated services code point (RFC 2474), 6 bits.
    #[inline]
    #[must_use]
    pub fn dscp(&self) -> u8 {
        self.service >> 2
    }

    /// Explicit congestion notification (RFC 3168), 2 bits.
    #[inline]
    #[must_use]
    pub fn ecn(&self) -> u8 {
        self.service & 3
    }

    /// The number that a packet's fragments share.
    #[inline]
    #[must_use]
    pub fn identification(&self) -> u16 {
        self.identification.get()
    }

    /// Whether routers must not fragment it.
    #[inline]
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        self.fragment.get() & DONT_FRAGMENT != 0
    }

    /// Whether another fragment follows this one.
    #[inline]
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        self.fragment.get() & MORE_FRAGMENTS != 0
    }

    /// Where this fragment's payload belongs: units of 8 bytes.
    #[inline]
    #[must_use]
    pub fn fragment_offset(&self) -> u16 {
        self.fragment.get() & OFFSET
    }

    /// Whether it is a part of a packet, the first included.
    #[inline]
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.fragment.get() & (MORE_FRAGMENTS | OFFSET) != 0
    }

    /// Time to live: hops.
    #[inline]
    #[must_use]
    pub fn ttl(&self) -> u8 {
        self.ttl
    }

    /// What the packet carries.
    #[inline]
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The header checksum as written.
    #[inline]
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Source address.
    #[inline]
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        self.source.into()
    }

    /// Destination address.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        self.destination.into()
    }

    /// Sets source and destination; [`write_checksum`] or an incremental update must follow.
    pub fn set_addresses(&mut self, source: Ipv4Addr, destination: Ipv4Addr) {
        self.source = source.octets();
        self.destination = destination.octets();
    }

    /// Sets the total length in bytes; [`write_checksum`] must follow.
    pub fn set_total_length(&mut self, length: u16) {
        self.total_length.set(length);
    }

    /// Sets the bytes of the header, a multiple of 4 from 20 to 60; [`write_checksum`] must follow.
    pub fn set_header_length(&mut self, length: u8) {
        self.version_length = 0x40 | ((length / 4) & 0xf);
    }

    /// Sets what says which part of a packet this is (`offset` in units of 8 bytes);
    /// [`write_checksum`] must follow.
    pub fn set_fragment(&mut self, dont_fragment: bool, more_fragments: bool, offset: u16) {
        let flags = if dont_fragment { DONT_FRAGMENT } else { 0 };
        let more = if more_fragments { MORE_FRAGMENTS } else { 0 };
        self.fragment.set(flags | more | (offset & OFFSET));
    }

    /// Sets the time to live; [`write_checksum`] must follow.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.ttl = ttl;
    }

    /// Sets the checksum, e.g. to an incremental update's result.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

/// Computes and writes the checksum of the header, options included, at the start of `packet`.
/// Errors: `Truncated`, `HeaderLength`.
pub fn write_checksum(packet: &mut [u8]) -> Result<(), Malformed> {
    let (header, _) = Header::mut_from_prefix(packet).map_err(|_| Malformed::Truncated)?;
    header.checksum.set(0);
    let length = header.header_length().max(HEADER_LENGTH);
    let sum = checksum::of(packet.get(..length).ok_or(Malformed::HeaderLength)?);
    let (header, _) = Header::mut_from_prefix(packet).map_err(|_| Malformed::Truncated)?;
    header.checksum.set(sum);
    Ok(())
}

#[cfg(test)]
mod tests;
