//! TCP segments (RFC 9293 3.1).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Sum;

pub use options::{Option, OptionError, Options, SackBlocks};
pub use segment_size::limit_segment_size;

mod options;
mod segment_size;

/// Bytes of a header without options.
pub const HEADER_LENGTH: usize = 20;
/// Bytes of options at most.
pub const MAX_OPTIONS_LENGTH: usize = 40;

/// The control bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push data to the application.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// Congestion echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Why a segment is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 20 bytes.
    #[error("shorter than a TCP header (20 bytes)")]
    Truncated,
    /// The data offset is below 20 bytes or beyond the segment.
    #[error("the TCP data offset is below 20 bytes or beyond the segment")]
    DataOffset,
}

/// The fixed 20 bytes of a header; options follow it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    source_port: U16,
    destination_port: U16,
    sequence: U32,
    acknowledgment: U32,
    data_offset: u8,
    flags: u8,
    window: U16,
    checksum: U16,
    urgent: U16,
}

/// A checked segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The fixed header.
    pub header: &'a Header,
    /// The options' bytes, 0 to 40.
    pub options: &'a [u8],
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Checks the header's bounds; the checksum is not looked at. Errors: see [`Malformed`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
        let (options, data) = header
            .header_length()
            .checked_sub(HEADER_LENGTH)
            .and_then(|length| rest.split_at_checked(length))
            .ok_or(Malformed::DataOffset)?;
        Ok(Self { header, options, data })
    }

    /// Whether the checksum is right; `pseudo`: the pseudo header's sum.
    #[inline]
    #[must_use]
    pub fn is_intact(&self, pseudo: Sum) -> bool {
        pseudo.bytes(self.header.as_bytes()).bytes(self.options).bytes(self.data).is_valid()
    }

    /// The options, in order.
    #[inline]
    #[must_use]
    pub fn options(&self) -> Options<'a> {
        Options::new(self.options)
    }
}

/// What a header is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window as written, before scaling.
    pub window: u16,
}

impl Fields {
    /// The header with checksum 0; `options`: their bytes, a multiple of 4 up to 40.
    #[inline]
    #[must_use]
    pub fn header(&self, options: usize) -> Header {
        let words = (HEADER_LENGTH + options.min(MAX_OPTIONS_LENGTH)) / 4;
        Header {
            source_port: U16::new(self.source_port),
            destination_port: U16::new(self.destination_port),
            sequence: U32::new(self.sequence),
            acknowledgment: U32::new(self.acknowledgment),
            data_offset: (words << 4) as u8,
            flags: self.flags.0,
            window: U16::new(self.window),
            checksum: U16::ZERO,
            urgent: U16::ZERO,
        }
    }
}

impl Header {
    /// Sum of the fixed header, field by field: no memory is read that was written just now in other pieces.
    #[inline]
    pub fn sum(&self) -> Sum {
        Sum::new()
            .u16(self.source_port.get())
            .u16(self.destination_port.get())
            .u32(self.sequence.get())
            .u32(self.acknowledgment.get())
            .u16(u16::from_be_bytes([self.data_offset, self.flags]))
            .u16(self.window.get())
            .u16(self.checksum.get())
            .u16(self.urgent.get())
    }

    /// Bytes of the header with its options, as written.
    #[inline]
    #[must_use]
    pub fn header_length(&self) -> usize {
        usize::from(self.data_offset >> 4) * 4
    }

    /// Source port.
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

    /// Sequence number.
    #[inline]
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.sequence.get()
    }

    /// Acknowledgment number.
    #[inline]
    #[must_use]
    pub fn acknowledgment(&self) -> u32 {
        self.acknowledgment.get()
    }

    /// Control bits.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags(self.flags)
    }

    /// The bit before the control bits: accurate ECN (AE, RFC 9768 3.1.1).
    #[inline]
    #[must_use]
    pub fn accurate_ecn(&self) -> bool {
        self.data_offset & 1 != 0
    }

    /// Sets that bit.
    #[inline]
    pub fn set_accurate_ecn(&mut self, on: bool) {
        self.data_offset = self.data_offset & !1 | u8::from(on);
    }

    /// Window as written, before scaling.
    #[inline]
    #[must_use]
    pub fn window(&self) -> u16 {
        self.window.get()
    }

    /// The checksum as written.
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

    /// Urgent pointer.
    #[inline]
    #[must_use]
    pub fn urgent(&self) -> u16 {
        self.urgent.get()
    }

    /// Sets the urgent pointer; the checksum is not touched.
    #[inline]
    pub fn set_urgent(&mut self, urgent: u16) {
        self.urgent = U16::new(urgent);
    }
}

#[cfg(test)]
mod tests;
