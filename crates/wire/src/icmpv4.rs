//! ICMP for IPv4 (RFC 792, RFC 1191, RFC 1812 4.3).

use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Sum;

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;

/// Codes of 'destination unreachable'.
pub mod unreachable {
    /// No route to the network.
    pub const NET: u8 = 0;
    /// The host does not answer on its link.
    pub const HOST: u8 = 1;
    /// Nothing there takes the protocol.
    pub const PROTOCOL: u8 = 2;
    /// Nothing there takes the port.
    pub const PORT: u8 = 3;
    /// Larger than the next hop's MTU, and must not be fragmented.
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// The source route failed.
    pub const SOURCE_ROUTE_FAILED: u8 = 5;
    /// Forbidden by the administrator (RFC 1812 5.2.7.1).
    pub const ADMINISTRATIVELY_PROHIBITED: u8 = 13;
}

/// Codes of 'time exceeded'.
pub mod time_exceeded {
    /// The time to live ran out on the way.
    pub const IN_TRANSIT: u8 = 0;
    /// A fragment was missing for too long.
    pub const REASSEMBLY: u8 = 1;
}

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 8 bytes.
    #[error("shorter than an ICMP header (8 bytes)")]
    Truncated,
    /// The checksum is wrong.
    #[error("the ICMP checksum is wrong")]
    Checksum,
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// An answer to an echo request.
    EchoReply {
        /// The request's.
        identifier: u16,
        /// The request's.
        sequence: u16,
    },
    /// A packet could not be delivered.
    Unreachable {
        /// One of [`mod@unreachable`]'s.
        code: u8,
        /// Next hop's MTU in bytes where fragmentation is needed (RFC 1191 4); else 0.
        mtu: u16,
    },
    /// A better first hop is known.
    Redirect {
        /// 0: for the network, 1: for the host, 2 and 3: for those and the type of service.
        code: u8,
        /// Where to send instead.
        gateway: Ipv4Addr,
    },
    /// A request to be answered.
    EchoRequest {
        /// Tells apart who asks.
        identifier: u16,
        /// Counts requests.
        sequence: u16,
    },
    /// A packet took too long.
    TimeExceeded {
        /// One of [`time_exceeded`]'s.
        code: u8,
    },
    /// A header field is wrong.
    ParameterProblem {
        /// 0: the pointer counts; 1: a required option is missing.
        code: u8,
        /// The byte of the packet that is wrong.
        pointer: u8,
    },
    /// Anything else.
    Other {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
        /// The header's last four bytes.
        rest: [u8; 4],
    },
}

impl Message {
    /// Whether it reports an error: about such a message no error may be sent (RFC 1812 4.3.2.7).
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Redirect { .. }
            | Self::TimeExceeded { .. }
            | Self::ParameterProblem { .. } => true,
            // Source quench (RFC 6633) is obsolete, and an error all the same.
            Self::Other { kind, .. } => *kind == 4,
            Self::EchoReply { .. } | Self::EchoRequest { .. } => false,
        }
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
    rest: [u8; 4],
}

impl Header {
    /// The header of a message, with checksum 0.
    #[must_use]
    pub fn new(message: &Message) -> Self {
        let pair = |first: u16, second: u16| {
            let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
            [a, b, c, d]
        };
        let (kind, code, rest) = match *message {
            Message::EchoReply { identifier, sequence } => (0, 0, pair(identifier, sequence)),
            Message::Unreachable { code, mtu } => (3, code, pair(0, mtu)),
            Message::Redirect { code, gateway } => (5, code, gateway.octets()),
            Message::EchoRequest { identifier, sequence } => (8, 0, pair(identifier, sequence)),
            Message::TimeExceeded { code } => (11, code, [0; 4]),
            Message::ParameterProblem { code, pointer } => (12, code, [pointer, 0, 0, 0]),
            Message::Other { kind, code, rest } => (kind, code, rest),
        };
        Self { kind, code, checksum: U16::ZERO, rest }
    }

    /// The header of a whole message and the bytes behind it, checksum checked; `bytes` must end
    /// where the message does. Errors: see [`Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        let found = Self::peek(bytes).ok_or(Malformed::Truncated)?;
        if Sum::new().bytes(bytes).is_valid() { Ok(found) } else { Err(Malformed::Checksum) }
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
        let [a, b, c, d] = self.rest;
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let code = self.code;
        match self.kind {
            0 => Message::EchoReply { identifier: first, sequence: second },
            3 => Message::Unreachable { code, mtu: second },
            5 => Message::Redirect { code, gateway: self.rest.into() },
            8 => Message::EchoRequest { identifier: first, sequence: second },
            11 => Message::TimeExceeded { code },
            12 => Message::ParameterProblem { code, pointer: a },
            kind => Message::Other { kind, code, rest: self.rest },
        }
    }

    /// The checksum as written.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

/// Computes and writes the checksum of a whole message. Errors: `Truncated`.
pub fn write_checksum(bytes: &mut [u8]) -> Result<(), Malformed> {
    let (header, data) = Header::mut_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
    header.checksum.set(0);
    header.checksum.set(Sum::new().bytes(header.as_bytes()).bytes(data).finish());
    Ok(())
}

/// Turns an echo request into its reply in place, checksum put right. The caller has parsed the
/// request and swaps the addresses. Errors: `Truncated`.
pub fn echo_reply_in_place(bytes: &mut [u8]) -> Result<(), Malformed> {
    let (header, _) = Header::mut_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
    let old = u16::from_be_bytes([header.kind, header.code]);
    header.kind = 0;
    header.code = 0;
    header.checksum.set(crate::checksum::update_u16(header.checksum.get(), old, 0));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn messages() -> impl Strategy<Value = Message> {
        let code = any::<u8>();
        prop_oneof![
            any::<(u16, u16)>()
                .prop_map(|(identifier, sequence)| Message::EchoReply { identifier, sequence }),
            any::<(u16, u16)>()
                .prop_map(|(identifier, sequence)| Message::EchoRequest { identifier, sequence }),
            any::<(u8, u16)>().prop_map(|(code, mtu)| Message::Unreachable { code, mtu }),
            any::<(u8, [u8; 4])>()
                .prop_map(|(code, g)| Message::Redirect { code, gateway: g.into() }),
            code.prop_map(|code| Message::TimeExceeded { code }),
            any::<(u8, u8)>()
                .prop_map(|(code, pointer)| Message::ParameterProblem { code, pointer }),
            (13..=255u8, any::<u8>(), any::<[u8; 4]>())
                .prop_map(|(kind, code, rest)| Message::Other { kind, code, rest }),
        ]
    }

    #[test]
    fn reads_known_messages() {
        let mut bytes = [3, 4, 0, 0, 0, 0, 5, 0xdc, 0x45];
        write_checksum(&mut bytes).unwrap();
        let (header, rest) = Header::parse(&bytes).unwrap();
        let expected = Message::Unreachable { code: unreachable::FRAGMENTATION_NEEDED, mtu: 1500 };
        assert_eq!((header.message(), rest), (expected, &[0x45][..]));
        assert!(expected.is_error());
        bytes[8] = 0x46;
        assert_eq!(Header::parse(&bytes), Err(Malformed::Checksum));
        assert_eq!(Header::parse(&bytes[..7]), Err(Malformed::Truncated));
    }

    proptest! {
        #[test]
        fn messages_round_trip(message in messages(), data in vec(any::<u8>(), 0..40)) {
            let mut bytes = [Header::new(&message).as_bytes(), &data].concat();
            write_checksum(&mut bytes).unwrap();
            let (header, rest) = Header::parse(&bytes).unwrap();
            prop_assert_eq!((header.message(), rest), (message, &data[..]));
        }

        #[test]
        fn replies_carry_a_right_checksum(identifier: u16, sequence: u16, data in vec(any::<u8>(), 0..40)) {
            let request = Message::EchoRequest { identifier, sequence };
            let mut bytes = [Header::new(&request).as_bytes(), &data].concat();
            write_checksum(&mut bytes).unwrap();
            echo_reply_in_place(&mut bytes).unwrap();
            let (header, rest) = Header::parse(&bytes).unwrap();
            prop_assert_eq!(header.message(), Message::EchoReply { identifier, sequence });
            prop_assert_eq!(rest, data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(write_checksum(&mut bytes).is_ok(), bytes.len() >= HEADER_LENGTH);
            if let Ok((header, _)) = Header::parse(&bytes) {
                let _ = header.message().is_error();
            }
            let _ = echo_reply_in_place(&mut bytes);
        }
    }
}
