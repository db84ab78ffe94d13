//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ethernet::MacAddr;

/// Bytes of a packet for IPv4 over Ethernet.
pub const PACKET_LENGTH: usize = 28;

/// What the sender wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has the sender address.
    Reply,
}

/// Why a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than 28 bytes.
    #[error("shorter than an ARP packet (28 bytes)")]
    Truncated,
    /// The hardware is not Ethernet with 6-byte addresses.
    #[error("the hardware type or address length is not Ethernet's")]
    Hardware,
    /// The protocol is not IPv4 with 4-byte addresses.
    #[error("the protocol type or address length is not IPv4's")]
    Protocol,
    /// Neither a request nor a reply.
    #[error("the operation is neither request nor reply")]
    Operation,
    /// The sender claims a group or the zero hardware address.
    #[error("the sender's hardware address is not a single station's")]
    Sender,
}

/// A packet on the wire.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Packet {
    hardware: U16,
    protocol: U16,
    hardware_length: u8,
    protocol_length: u8,
    operation: U16,
    /// Hardware address of the sender.
    pub sender_mac: MacAddr,
    sender_address: [u8; 4],
    /// Hardware address of the target; zero in a request.
    pub target_mac: MacAddr,
    target_address: [u8; 4],
}

impl Packet {
    /// A packet of these fields; sender first, then target.
    #[must_use]
    pub fn new(
        operation: Operation,
        (sender_mac, sender): (MacAddr, Ipv4Addr),
        (target_mac, target): (MacAddr, Ipv4Addr),
    ) -> Self {
        Self {
            hardware: U16::new(1),
            protocol: U16::new(0x0800),
            hardware_length: 6,
            protocol_length: 4,
            operation: U16::new(if operation == Operation::Request { 1 } else { 2 }),
            sender_mac,
            sender_address: sender.octets(),
            target_mac,
            target_address: target.octets(),
        }
    }

    /// The checked packet; bytes behind it (padding) are ignored. Errors: see [`Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<&Self, Malformed> {
        let (packet, _) = Self::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
        if packet.hardware.get() != 1 || packet.hardware_length != 6 {
            return Err(Malformed::Hardware);
        }
        if packet.protocol.get() != 0x0800 || packet.protocol_length != 4 {
            return Err(Malformed::Protocol);
        }
        if !matches!(packet.operation.get(), 1 | 2) {
            return Err(Malformed::Operation);
        }
        // RFC 1812 3.3.2: a router believes no reply that names a group address.
        if !packet.sender_mac.is_unicast() {
            return Err(Malformed::Sender);
        }
        Ok(packet)
    }

    /// Request or reply.
    #[must_use]
    pub fn operation(&self) -> Operation {
        if self.operation.get() == 1 { Operation::Request } else { Operation::Reply }
    }

    /// Protocol address of the sender; unspecified in a probe (RFC 5227).
    #[must_use]
    pub fn sender(&self) -> Ipv4Addr {
        self.sender_address.into()
    }

    /// Protocol address of the target.
    #[must_use]
    pub fn target(&self) -> Ipv4Addr {
        self.target_address.into()
    }

    /// Whether the sender announces its own address (gratuitous ARP, RFC 5227 3).
    #[must_use]
    pub fn is_announcement(&self) -> bool {
        self.sender_address == self.target_address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REQUEST: [u8; 28] =
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];

    #[test]
    fn reads_a_known_request() {
        let packet = Packet::parse(&REQUEST).unwrap();
        assert_eq!(packet.operation(), Operation::Request);
        assert_eq!(packet.sender(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(packet.target(), Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(packet.sender_mac, MacAddr::new([2, 0, 0, 0, 0, 1]));
        assert!(!packet.is_announcement());
    }

    #[test]
    fn names_each_refusal() {
        let with = |at: usize, value: u8| {
            let mut bytes = REQUEST;
            bytes[at] = value;
            Packet::parse(&bytes).map(|_| ())
        };
        assert_eq!(Packet::parse(&REQUEST[..27]), Err(Malformed::Truncated));
        assert_eq!(with(1, 6), Err(Malformed::Hardware));
        assert_eq!(with(4, 8), Err(Malformed::Hardware));
        assert_eq!(with(2, 0x86), Err(Malformed::Protocol));
        assert_eq!(with(5, 16), Err(Malformed::Protocol));
        assert_eq!(with(7, 3), Err(Malformed::Operation));
        assert_eq!(with(8, 3), Err(Malformed::Sender));
    }

    proptest! {
        #[test]
        fn round_trips(request: bool, mac: [u8; 5], s: [u8; 4], m: [u8; 6], t: [u8; 4]) {
            let operation = if request { Operation::Request } else { Operation::Reply };
            let sender = MacAddr::new([2, mac[0], mac[1], mac[2], mac[3], mac[4]]);
            let packet = Packet::new(operation, (sender, s.into()), (m.into(), t.into()));
            let parsed = Packet::parse(packet.as_bytes()).unwrap();
            prop_assert_eq!(parsed, &packet);
            prop_assert_eq!(parsed.operation(), operation);
            prop_assert_eq!((parsed.sender().octets(), parsed.target().octets()), (s, t));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if Packet::parse(&bytes).is_ok() {
                prop_assert!(bytes.len() >= PACKET_LENGTH);
            }
        }
    }
}
