//! ICMP for IPv6 (RFC 4443). Neighbour discovery's messages are in [`crate::ndp`].

use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{Sum, update_u16};
use crate::protocol::Protocol;

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;

/// Codes of 'destination unreachable'.
pub mod unreachable {
    /// No route to the destination.
    pub const NO_ROUTE: u8 = 0;
    /// Forbidden by the administrator.
    pub const ADMINISTRATIVELY_PROHIBITED: u8 = 1;
    /// The destination lies beyond the scope of the source.
    pub const BEYOND_SCOPE: u8 = 2;
    /// The address does not answer on its link.
    pub const ADDRESS: u8 = 3;
    /// Nothing there takes the port.
    pub const PORT: u8 = 4;
    /// A route says so.
    pub const REJECT_ROUTE: u8 = 6;
}

/// Codes of 'time exceeded'.
pub mod time_exceeded {
    /// The hop limit ran out on the way.
    pub const IN_TRANSIT: u8 = 0;
    /// A fragment was missing for too long.
    pub const REASSEMBLY: u8 = 1;
}

/// Codes of 'parameter problem'.
pub mod parameter_problem {
    /// A header field is wrong.
    pub const FIELD: u8 = 0;
    /// An unknown next header.
    pub const NEXT_HEADER: u8 = 1;
    /// An unknown option.
    pub const OPTION: u8 = 2;
}

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 8 bytes.
    #[error("shorter than an ICMPv6 header (8 bytes)")]
    Truncated,
    /// The checksum is wrong.
    #[error("the ICMPv6 checksum is wrong")]
    Checksum,
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A packet could not be delivered.
    Unreachable {
        /// One of [`mod@unreachable`]'s.
        code: u8,
    },
    /// Larger than the next hop's MTU.
    PacketTooBig {
        /// That MTU: bytes.
        mtu: u32,
    },
    /// A packet took too long.
    TimeExceeded {
        /// One of [`time_exceeded`]'s.
        code: u8,
    },
    /// A header field is wrong.
    ParameterProblem {
        /// One of [`parameter_problem`]'s.
        code: u8,
        /// The byte of the packet that is wrong.
        pointer: u32,
    },
    /// A request to be answered.
    EchoRequest {
        /// Tells apart who asks.
        identifier: u16,
        /// Counts requests.
        sequence: u16,
    },
    /// An answer to an echo request.
    EchoReply {
        /// The request's.
        identifier: u16,
        /// The request's.
        sequence: u16,
    },
    /// Anything else, neighbour discovery (133 to 137) included.
    Other {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
        /// The header's last four bytes.
        rest: u32,
    },
}

impl Message {
    /// Whether it reports an error (RFC 4443 2.1): about such a message none may be sent.
    #[must_use]
    pub fn is_error(&self) -> bool {
        Header::new(self).kind < 128
    }

    /// Whether it is one of neighbour discovery's five messages.
    #[must_use]
    pub fn is_neighbor_discovery(&self) -> bool {
        matches!(self, Self::Other { kind: 133..=137, .. })
    }
}

/// The header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    kind: u8,
    code: u8,
    checksum: U16,
    rest: U32,
}

impl Header {
    /// The header of a message, with checksum 0.
    #[must_use]
    pub fn new(message: &Message) -> Self {
        let pair = |first: u16, second: u16| u32::from(first) << 16 | u32::from(second);
        let (kind, code, rest) = match *message {
            Message::Unreachable { code } => (1, code, 0),
            Message::PacketTooBig { mtu } => (2, 0, mtu),
            Message::TimeExceeded { code } => (3, code, 0),
            Message::ParameterProblem { code, pointer } => (4, code, pointer),
            Message::EchoRequest { identifier, sequence } => (128, 0, pair(identifier, sequence)),
            Message::EchoReply { identifier, sequence } => (129, 0, pair(identifier, sequence)),
            Message::Other { kind, code, rest } => (kind, code, rest),
        };
        Self { kind, code, checksum: U16::ZERO, rest: U32::new(rest) }
    }

    /// The header of a whole message and the bytes behind it, checksum checked; `bytes` must end
    /// where the message does. Errors: see [`Malformed`].
    pub fn parse(
        bytes: &[u8],
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Result<(&Self, &[u8]), Malformed> {
        let found = Self::peek(bytes).ok_or(Malformed::Truncated)?;
        if pseudo(source, destination, bytes.len()).bytes(bytes).is_valid() {
            Ok(found)
        } else {
            Err(Malformed::Checksum)
        }
    }

    /// The header of a message that may be cut short, as errors quote it; the checksum is not
    /// looked at. `None`: shorter than 8 bytes.
    #[must_use]
    pub fn peek(bytes: &[u8]) -> Option<(&Self, &[u8])> {
        Self::ref_from_prefix(bytes).ok()
    }

    /// What it says.
    #[must_use]
    pub fn message(&self) -> Message {
        let rest = self.rest.get();
        let (first, second) = ((rest >> 16) as u16, rest as u16);
        let code = self.code;
        match self.kind {
            1 => Message::Unreachable { code },
            2 => Message::PacketTooBig { mtu: rest },
            3 => Message::TimeExceeded { code },
            4 => Message::ParameterProblem { code, pointer: rest },
            128 => Message::EchoRequest { identifier: first, sequence: second },
            129 => Message::EchoReply { identifier: first, sequence: second },
            kind => Message::Other { kind, code, rest },
        }
    }

    /// The message's type.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// The message's code.
    #[inline]
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

fn pseudo(source: Ipv6Addr, destination: Ipv6Addr, length: usize) -> Sum {
    Sum::new().pseudo_v6(source, destination, Protocol::ICMPV6, length as u32)
}

/// Computes and writes the checksum of a whole message between these addresses.
/// Errors: `Truncated`.
pub fn write_checksum(
    bytes: &mut [u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
) -> Result<(), Malformed> {
    let sum = pseudo(source, destination, bytes.len());
    let (header, data) = Header::mut_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
    header.checksum.set(0);
    header.checksum.set(sum.bytes(header.as_bytes()).bytes(data).finish());
    Ok(())
}

/// Turns an echo request into its reply in place, checksum put right for swapped addresses. When
/// the reply's source differs from the request's destination (a group), [`write_checksum`] must
/// follow. Errors: `Truncated`.
pub fn echo_reply_in_place(bytes: &mut [u8]) -> Result<(), Malformed> {
    let (header, _) = Header::mut_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
    let old = u16::from_be_bytes([header.kind, header.code]);
    header.kind = 129;
    header.code = 0;
    header.checksum.set(update_u16(header.checksum.get(), old, 129 << 8));
    Ok(())
}

#[cfg(test)]
mod tests;
