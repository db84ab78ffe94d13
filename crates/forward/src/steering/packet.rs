//! Which stack a packet to this router belongs to.

use std::net::{IpAddr, SocketAddr};

use graph::StackId;
use shm::session::TransportProtocol;
use wire::tcp::Flags;
use wire::{Protocol, special};

use super::{Flow, SteeringReader};
use crate::quotation::{Upper, quotation};

impl SteeringReader {
    /// The stack of a TCP or UDP packet, or of an ICMP error about one that it has sent. `None` also for fragments. A packet
    /// may be cut short behind the ports.
    #[must_use]
    pub fn stack_of(&self, packet: &[u8]) -> Option<StackId> {
        let upper = Upper::of(packet)?;
        let bytes = packet.get(upper.at..)?;
        if let Some(protocol) = transport(upper.protocol) {
            let flow = received(&upper, protocol, bytes)?;
            let is_tcp = protocol == TransportProtocol::Tcp;
            if is_tcp && is_closing(bytes) {
                if let Some(id) = self.find_waiting(&flow) {
                    return Some(id);
                }
            }
            return self.find(&flow, is_tcp && is_opening(bytes));
        }
        let quoted = quotation(&upper, bytes)?;
        let inner = Upper::of_first(quoted)?;
        // An error goes to who has sent the packet.
        if inner.source != upper.destination {
            return None;
        }
        let protocol = transport(inner.protocol)?;
        let (from, to) = ports(quoted.get(inner.at..)?)?;
        let local = SocketAddr::new(inner.source, from);
        let remote = SocketAddr::new(inner.destination, to);
        self.find(&Flow { protocol, local, remote }, false)
    }
}

/// The flow of a packet that opens a TCP connection.
pub(super) fn opened(packet: &[u8]) -> Option<Flow> {
    let upper = Upper::of(packet).filter(|upper| upper.protocol == Protocol::TCP)?;
    let bytes = packet.get(upper.at..).filter(|bytes| is_opening(bytes))?;
    received(&upper, TransportProtocol::Tcp, bytes)
}

/// The flow of a packet that has come from its remote end.
fn received(upper: &Upper, protocol: TransportProtocol, bytes: &[u8]) -> Option<Flow> {
    if !one_host(upper.source) || !one_host(upper.destination) {
        return None;
    }
    let (from, to) = ports(bytes)?;
    let local = SocketAddr::new(upper.destination, to);
    let remote = SocketAddr::new(upper.source, from);
    Some(Flow { protocol, local, remote })
}

fn transport(protocol: Protocol) -> Option<TransportProtocol> {
    match protocol {
        Protocol::TCP => Some(TransportProtocol::Tcp),
        Protocol::UDP => Some(TransportProtocol::Udp),
        _ => None,
    }
}

/// RFC 1122 4.2.3.10, 4.1.3.6: no segment to or from a group. Link-local addresses mean something on one link only, which
/// a stack knows nothing about.
fn one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => special::classify_v4(address).is_none(),
        IpAddr::V6(address) => special::classify_v6(address).is_none(),
    }
}

fn ports(bytes: &[u8]) -> Option<(u16, u16)> {
    match bytes {
        [a, b, c, d, ..] => Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))),
        _ => None,
    }
}

/// Whether a TCP segment is its sender's last.
fn is_closing(segment: &[u8]) -> bool {
    let flags = segment.get(13).copied().unwrap_or(0);
    let relevant = (Flags::FIN | Flags::SYN | Flags::RST).0;
    flags & relevant == Flags::FIN.0
}

/// Whether a TCP segment opens a connection.
fn is_opening(segment: &[u8]) -> bool {
    let flags = segment.get(13).copied().unwrap_or(0);
    let relevant = (Flags::SYN | Flags::ACK | Flags::RST).0;
    flags & relevant == Flags::SYN.0
}
