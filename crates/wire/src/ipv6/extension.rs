//! The chain of extension headers (RFC 8200 4), walked within bounds of count and length.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{HEADER_LENGTH, Header};
use crate::protocol::Protocol;

/// Extension headers followed before a packet is refused.
pub const MAX_EXTENSIONS: usize = 8;
/// Bytes of extension headers followed before a packet is refused.
pub const MAX_EXTENSION_BYTES: usize = 1024;
/// Where the fixed header names what follows it.
pub(super) const NEXT_HEADER_AT: usize = 6;

/// Why a chain is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The packet ends inside an extension header.
    #[error("the packet ends inside an extension header")]
    Truncated,
    /// More than [`MAX_EXTENSIONS`] headers.
    #[error("more than {MAX_EXTENSIONS} extension headers")]
    TooMany,
    /// More than [`MAX_EXTENSION_BYTES`] bytes of them.
    #[error("more than {MAX_EXTENSION_BYTES} bytes of extension headers")]
    TooLong,
    /// Hop-by-hop options elsewhere than right behind the fixed header (RFC 8200 4.1).
    #[error("hop-by-hop options that do not come first")]
    Order,
}

/// What a fragment header says (RFC 8200 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Where the payload belongs: units of 8 bytes.
    pub offset: u16,
    /// Whether another fragment follows this one.
    pub more: bool,
    /// The number that a packet's fragments share.
    pub identification: u32,
    /// Where the fragment header starts: bytes from the start of the fixed header.
    pub header_at: usize,
    /// Where the byte that names the fragment header is.
    pub named_at: usize,
    /// What the first fragment's payload starts with.
    pub next_header: Protocol,
}

impl Fragment {
    /// Bytes of a fragment header.
    pub const HEADER_LENGTH: usize = 8;

    /// Whether it is the only one of its packet (RFC 6946).
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.offset == 0 && !self.more
    }

    /// The header as it is on the wire.
    #[must_use]
    pub fn header(&self) -> [u8; Self::HEADER_LENGTH] {
        zerocopy::transmute!(FragmentHeader {
            next_header: self.next_header,
            reserved: 0,
            offset_more: U16::new(self.offset << 3 | u16::from(self.more)),
            identification: U32::new(self.identification),
        })
    }
}

/// Where the walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpperLayer {
    /// What is there.
    pub protocol: Protocol,
    /// Where it starts: bytes from the start of the fixed header, at most the packet's length.
    pub offset: usize,
    /// Where the byte that names `protocol` is: the pointer of an ICMP parameter problem.
    pub named_at: usize,
    /// The fragment header on the way, if any.
    pub fragment: Option<Fragment>,
}

impl UpperLayer {
    /// Whether the bytes at `offset` are the middle of a payload: no upper-layer header is there.
    #[inline]
    #[must_use]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset != 0)
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FragmentHeader {
    next_header: Protocol,
    reserved: u8,
    offset_more: U16,
    identification: U32,
}

/// Follows the chain of a packet whose fixed header was checked, to the first header that is no
/// extension. ESP and 'no next header' end it as well, and so does a fragment that is not the
/// first. Errors: see [`ChainError`].
#[inline]
pub fn upper_layer(packet: &[u8]) -> Result<UpperLayer, ChainError> {
    let header = Header::peek(packet).ok_or(ChainError::Truncated)?;
    let upper = UpperLayer {
        protocol: header.next_header(),
        offset: HEADER_LENGTH,
        named_at: NEXT_HEADER_AT,
        fragment: None,
    };
    if is_extension(upper.protocol) {
        let end = header.total_length().min(packet.len());
        follow(packet.get(..end).ok_or(ChainError::Truncated)?, upper)
    } else {
        Ok(upper)
    }
}

pub(super) fn is_extension(protocol: Protocol) -> bool {
    matches!(
        protocol,
        Protocol::HOP_BY_HOP
            | Protocol::ROUTING
            | Protocol::FRAGMENT
            | Protocol::AUTHENTICATION
            | Protocol::DESTINATION_OPTIONS
            | Protocol::MOBILITY
    )
}

/// Bytes of an extension header whose second byte is `length`.
pub(super) fn length_of(protocol: Protocol, length: u8) -> usize {
    match protocol {
        Protocol::FRAGMENT => Fragment::HEADER_LENGTH,
        // RFC 4302 2.2: in units of 4 bytes, less 2.
        Protocol::AUTHENTICATION => (usize::from(length) + 2) * 4,
        _ => (usize::from(length) + 1) * 8,
    }
}

fn follow(packet: &[u8], mut upper: UpperLayer) -> Result<UpperLayer, ChainError> {
    for _ in 0..MAX_EXTENSIONS {
        let bytes = packet.get(upper.offset..).ok_or(ChainError::Truncated)?;
        let &[next, length, ..] = bytes else { return Err(ChainError::Truncated) };
        if upper.protocol == Protocol::HOP_BY_HOP && upper.offset != HEADER_LENGTH {
            return Err(ChainError::Order);
        }
        let length = length_of(upper.protocol, length);
        let this = bytes.get(..length).ok_or(ChainError::Truncated)?;
        if upper.protocol == Protocol::FRAGMENT {
            let (found, _) =
                FragmentHeader::ref_from_prefix(this).map_err(|_| ChainError::Truncated)?;
            let offset_more = found.offset_more.get();
            upper.fragment = Some(Fragment {
                offset: offset_more >> 3,
                more: offset_more & 1 != 0,
                identification: found.identification.get(),
                header_at: upper.offset,
                named_at: upper.named_at,
                next_header: found.next_header,
            });
        }
        upper.protocol = Protocol(next);
        upper.named_at = upper.offset;
        upper.offset += length;
        if upper.offset - HEADER_LENGTH > MAX_EXTENSION_BYTES {
            return Err(ChainError::TooLong);
        }
        if upper.is_later_fragment() || !is_extension(upper.protocol) {
            return Ok(upper);
        }
    }
    Err(ChainError::TooMany)
}
