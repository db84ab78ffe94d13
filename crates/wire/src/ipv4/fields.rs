//! Making a header.

use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::U16;

use super::{DONT_FRAGMENT, Header};
use crate::checksum::Sum;
use crate::protocol::Protocol;

/// What a header without options is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// What the packet carries.
    pub protocol: Protocol,
    /// Time to live: hops.
    pub ttl: u8,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub service: u8,
    /// The number that fragments share.
    pub identification: u16,
    /// Whether routers must not fragment it.
    pub dont_fragment: bool,
}

impl Fields {
    /// The header for a packet of `total_length` bytes, checksum included.
    #[inline(always)]
    #[must_use]
    pub fn header(&self, total_length: u16) -> Header {
        let mut header = Header {
            version_length: 0x45,
            service: self.service,
            total_length: U16::new(total_length),
            identification: U16::new(self.identification),
            fragment: U16::new(if self.dont_fragment { DONT_FRAGMENT } else { 0 }),
            ttl: self.ttl,
            protocol: self.protocol,
            checksum: U16::ZERO,
            source: self.source.octets(),
            destination: self.destination.octets(),
        };
        // Field by field: what was written just now in other pieces is slow to read.
        let sum = Sum::new()
            .u16(u16::from_be_bytes([header.version_length, header.service]))
            .u16(total_length)
            .u16(self.identification)
            .u16(header.fragment.get())
            .u16(u16::from_be_bytes([self.ttl, self.protocol.0]))
            .u32(self.source.to_bits())
            .u32(self.destination.to_bits());
        header.checksum.set(sum.finish());
        header
    }
}
