//! Whole packets and frames written into a given buffer, for the slow path, tests and benches.

use std::net::IpAddr;

use zerocopy::IntoBytes;

use crate::ethernet::{self, EtherType, MacAddr};
use crate::vlan::{Tag, VlanId};
use crate::{Protocol, arp, ipv4, ipv6};

pub use payload::{Neighbor, Payload};

mod payload;

/// Why nothing was built; the buffer's bytes are then undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The buffer is too small.
    #[error("{needed} bytes do not fit into a buffer of {room}")]
    NoRoom {
        /// Bytes to write.
        needed: usize,
        /// Bytes there are.
        room: usize,
    },
    /// More than a length field can say.
    #[error("{0} bytes are more than the length field can say")]
    TooLong(usize),
    /// TCP options that are no multiple of 4 up to 40 bytes.
    #[error("{0} bytes of TCP options: give a multiple of 4 up to 40")]
    TcpOptions(usize),
    /// ICMP of the other version.
    #[error("ICMP of one IP version in a packet of the other")]
    Version,
}

/// What makes the Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Destination address.
    pub destination: MacAddr,
    /// Source address.
    pub source: MacAddr,
    /// The 802.1Q tag's VLAN, with priority 0; `None`: no tag.
    pub vlan: Option<VlanId>,
}

impl Link {
    /// Bytes of the header, tag included.
    #[must_use]
    pub fn length(&self) -> usize {
        ethernet::HEADER_LENGTH + if self.vlan.is_some() { crate::vlan::TAG_LENGTH } else { 0 }
    }
}

/// What makes the IP header; its protocol is taken from the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4(ipv4::Fields),
    /// IPv6.
    V6(ipv6::Fields),
}

impl Network {
    /// Plain: best effort, not to be fragmented, without a flow label. `None`: the addresses are of different versions.
    #[must_use]
    pub fn between(source: IpAddr, destination: IpAddr, hops: u8) -> Option<Self> {
        Some(match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Self::V4(ipv4::Fields {
                service: 0,
                ttl: hops,
                protocol: Protocol::NO_NEXT_HEADER,
                source,
                destination,
                identification: 0,
                dont_fragment: true,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Self::V6(ipv6::Fields {
                next_header: Protocol::NO_NEXT_HEADER,
                hop_limit: hops,
                source,
                destination,
                traffic_class: 0,
                flow_label: 0,
            }),
            _ => return None,
        })
    }

    fn ether_type(&self) -> EtherType {
        match self {
            Self::V4(_) => EtherType::IPV4,
            Self::V6(_) => EtherType::IPV6,
        }
    }

    fn header_length(&self) -> usize {
        match self {
            Self::V4(_) => ipv4::HEADER_LENGTH,
            Self::V6(_) => ipv6::HEADER_LENGTH,
        }
    }
}

/// Writes an Ethernet header, with its tag if any. Returns its bytes. Errors: `NoRoom`.
pub fn link(buffer: &mut [u8], link: &Link, ether_type: EtherType) -> Result<usize, BuildError> {
    let outer = if link.vlan.is_some() { EtherType::VLAN } else { ether_type };
    let header = ethernet::Header::new(link.destination, link.source, outer);
    let rest = write(buffer, header.as_bytes())?;
    if let Some(vlan) = link.vlan {
        write(rest, Tag::new(0, false, vlan.get(), ether_type).as_bytes())?;
    }
    Ok(link.length())
}

/// Writes an IP packet, checksums included. Returns its bytes. Errors: see [`BuildError`].
pub fn packet(
    buffer: &mut [u8],
    network: &Network,
    payload: &Payload<'_>,
) -> Result<usize, BuildError> {
    let length = payload.length()?;
    let total = network.header_length() + length;
    let room = buffer.len();
    let packet = buffer.get_mut(..total).ok_or(BuildError::NoRoom { needed: total, room })?;
    let body = match network {
        Network::V4(fields) => {
            let total = u16::try_from(total).map_err(|_| BuildError::TooLong(total))?;
            let header = ipv4::Fields { protocol: payload.protocol(), ..*fields }.header(total);
            write(packet, header.as_bytes())?
        }
        Network::V6(fields) => {
            let length = u16::try_from(length).map_err(|_| BuildError::TooLong(length))?;
            let next_header = payload.protocol();
            let header = ipv6::Fields { next_header, ..*fields }.header(length);
            write(packet, header.as_bytes())?
        }
    };
    payload.write(body, network)?;
    Ok(total)
}

/// Writes an Ethernet frame with an IP packet in it, not padded. Returns its bytes.
/// Errors: see [`BuildError`].
pub fn frame(
    buffer: &mut [u8],
    to: &Link,
    network: &Network,
    payload: &Payload<'_>,
) -> Result<usize, BuildError> {
    let header = link(buffer, to, network.ether_type())?;
    let rest = buffer.get_mut(header..).unwrap_or(&mut []);
    Ok(header + packet(rest, network, payload)?)
}

/// Writes an Ethernet frame with an ARP packet in it, not padded. Returns its bytes.
/// Errors: `NoRoom`.
pub fn arp(buffer: &mut [u8], to: &Link, packet: &arp::Packet) -> Result<usize, BuildError> {
    let header = link(buffer, to, EtherType::ARP)?;
    write(buffer.get_mut(header..).unwrap_or(&mut []), packet.as_bytes())?;
    Ok(header + arp::PACKET_LENGTH)
}

/// Copies to the front; returns what follows.
fn write<'a>(buffer: &'a mut [u8], bytes: &[u8]) -> Result<&'a mut [u8], BuildError> {
    let (needed, room) = (bytes.len(), buffer.len());
    let (front, rest) =
        buffer.split_at_mut_checked(needed).ok_or(BuildError::NoRoom { needed, room })?;
    front.copy_from_slice(bytes);
    Ok(rest)
}

#[cfg(test)]
mod tests;
