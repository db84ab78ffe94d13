//! Flow keys: the five-tuple of a packet in the layout of the exact-match table, and its hashes.

use std::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::protocol::Protocol;
use crate::{ipv4, ipv6};

pub mod toeplitz;

/// An IPv4 flow as 16 bytes of key: addresses, ports, protocol, 3 zero bytes. The first 12 bytes
/// are RSS's input.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct FiveTuple4 {
    source: [u8; 4],
    destination: [u8; 4],
    source_port: U16,
    destination_port: U16,
    protocol: Protocol,
    zero: [u8; 3],
}

/// An IPv6 flow as 40 bytes of key: addresses, ports, protocol, 3 zero bytes. The first 36 bytes
/// are RSS's input.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct FiveTuple6 {
    source: [u8; 16],
    destination: [u8; 16],
    source_port: U16,
    destination_port: U16,
    protocol: Protocol,
    zero: [u8; 3],
}

macro_rules! five_tuple {
    ($name:ident, $address:ident, $key:literal, $addresses:literal) => {
        impl $name {
            /// Of these fields; ports are 0 where the protocol has none.
            #[inline]
            #[must_use]
            pub fn new(
                (source, source_port): ($address, u16),
                (destination, destination_port): ($address, u16),
                protocol: Protocol,
            ) -> Self {
                Self {
                    source: source.octets(),
                    destination: destination.octets(),
                    source_port: U16::new(source_port),
                    destination_port: U16::new(destination_port),
                    protocol,
                    zero: [0; 3],
                }
            }

            /// That of packets in the other direction.
            #[inline]
            #[must_use]
            pub fn reversed(&self) -> Self {
                Self {
                    source: self.destination,
                    destination: self.source,
                    source_port: self.destination_port,
                    destination_port: self.source_port,
                    ..*self
                }
            }

            /// The key's bytes.
            #[inline]
            #[must_use]
            pub fn key(&self) -> [u8; $key] {
                zerocopy::transmute!(*self)
            }

            /// Of the bytes of its key.
            #[inline]
            #[must_use]
            pub fn from_key(key: [u8; $key]) -> Self {
                zerocopy::transmute!(key)
            }

            /// Source address.
            #[inline]
            #[must_use]
            pub fn source(&self) -> $address {
                self.source.into()
            }

            /// Destination address.
            #[inline]
            #[must_use]
            pub fn destination(&self) -> $address {
                self.destination.into()
            }

            /// Source port, or 0.
            #[inline]
            #[must_use]
            pub fn source_port(&self) -> u16 {
                self.source_port.get()
            }

            /// Destination port, or 0.
            #[inline]
            #[must_use]
            pub fn destination_port(&self) -> u16 {
                self.destination_port.get()
            }

            /// Upper-layer protocol.
            #[inline]
            #[must_use]
            pub fn protocol(&self) -> Protocol {
                self.protocol
            }

            /// The hash that a NIC computes for RSS: over addresses and ports for TCP and UDP
            /// with ports, over addresses else.
            #[must_use]
            pub fn rss(&self, key: &toeplitz::Key) -> u32 {
                let bytes = self.key();
                let ports = self.source_port() | self.destination_port() != 0
                    && matches!(self.protocol, Protocol::TCP | Protocol::UDP);
                let length = if ports { $addresses + 4 } else { $addresses };
                toeplitz::hash(key, bytes.get(..length).unwrap_or(&[]))
            }

            /// A hash of the whole key, each of whose bits depends on each of the key's; the two
            /// directions of a connection differ. `seed`: tells routers apart, so that two in a
            /// row do not spread flows alike.
            #[inline]
            #[must_use]
            pub fn hash(&self, seed: u64) -> u32 {
                let mut state = seed ^ START;
                for word in self.key().chunks_exact(8) {
                    if let &[a, b, c, d, e, f, g, h] = word {
                        state = mix(state ^ u64::from_le_bytes([a, b, c, d, e, f, g, h]));
                    }
                }
                state = mix(state);
                (state ^ (state >> 32)) as u32
            }
        }
    };
}

five_tuple!(FiveTuple4, Ipv4Addr, 16, 8);
five_tuple!(FiveTuple6, Ipv6Addr, 40, 32);

/// The five-tuple of a packet of either version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FiveTuple {
    /// IPv4.
    V4(FiveTuple4),
    /// IPv6.
    V6(FiveTuple6),
}

impl FiveTuple4 {
    /// Of a packet whose header was checked. Ports are 0 where the protocol has none, the packet
    /// ends before them, or it is a fragment: all fragments of a packet are one flow.
    #[inline]
    #[must_use]
    pub fn of(header: &ipv4::Header, packet: &[u8]) -> Self {
        let protocol = header.protocol();
        let (source_port, destination_port) = if protocol.has_ports() && !header.is_fragment() {
            ports(packet, header.header_length())
        } else {
            (0, 0)
        };
        let (source, destination) = (header.source(), header.destination());
        Self::new((source, source_port), (destination, destination_port), protocol)
    }
}

impl FiveTuple6 {
    /// Of a packet whose fixed header was checked. Ports are 0 where the protocol has none, the
    /// packet ends before them, it is a fragment, or its chain of extension headers is refused;
    /// the protocol is then what the fixed header names.
    #[inline]
    #[must_use]
    pub fn of(header: &ipv6::Header, packet: &[u8]) -> Self {
        let mut protocol = header.next_header();
        let (mut source_port, mut destination_port) = (0, 0);
        match ipv6::upper_layer(packet) {
            Ok(upper) if upper.fragment.is_none() => {
                protocol = upper.protocol;
                if protocol.has_ports() {
                    (source_port, destination_port) = ports(packet, upper.offset);
                }
            }
            _ => {}
        }
        let (source, destination) = (header.source(), header.destination());
        Self::new((source, source_port), (destination, destination_port), protocol)
    }
}

impl FiveTuple {
    /// Of an IP packet of either version; `None` when no IP header is there.
    #[inline]
    #[must_use]
    pub fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Some(Self::V4(FiveTuple4::of(ipv4::Header::peek(packet)?, packet))),
            6 => Some(Self::V6(FiveTuple6::of(ipv6::Header::peek(packet)?, packet))),
            _ => None,
        }
    }

    /// See [`FiveTuple4::hash`].
    #[inline]
    #[must_use]
    pub fn hash(&self, seed: u64) -> u32 {
        match self {
            Self::V4(flow) => flow.hash(seed),
            Self::V6(flow) => flow.hash(seed),
        }
    }

    /// See [`FiveTuple4::reversed`].
    #[must_use]
    pub fn reversed(&self) -> Self {
        match self {
            Self::V4(flow) => Self::V4(flow.reversed()),
            Self::V6(flow) => Self::V6(flow.reversed()),
        }
    }

    /// See [`FiveTuple4::rss`].
    #[must_use]
    pub fn rss(&self, key: &toeplitz::Key) -> u32 {
        match self {
            Self::V4(flow) => flow.rss(key),
            Self::V6(flow) => flow.rss(key),
        }
    }
}

#[inline]
fn ports(packet: &[u8], offset: usize) -> (u16, u16) {
    match packet.get(offset..) {
        Some(&[a, b, c, d, ..]) => (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])),
        _ => (0, 0),
    }
}

/// Fractional digits of pi and of the golden ratio: bits without a pattern, the latter odd.
const START: u64 = 0x243f_6a88_85a3_08d3;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of a 128-bit product: every bit of the result hangs on nearly every bit of `word`.
#[inline]
fn mix(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests;
