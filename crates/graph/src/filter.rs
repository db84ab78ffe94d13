//! Which packets a trace, a capture or a client wants.

use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;
use wire::flow::FiveTuple;
use wire::{EtherType, Protocol, arp, ethernet, ipv4, ipv6, vlan};

use crate::{PortId, flow_hash::TAGS};

/// What a packet must be to match. An empty filter matches every packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Seen on this port.
    pub port: Option<PortId>,
    /// From or to this address; in ARP, the sender's or the target's.
    pub host: Option<IpAddr>,
    /// Of this protocol.
    pub protocol: Option<Match>,
    /// With this EtherType, behind VLAN tags.
    pub ether_type: Option<EtherType>,
    /// From this address.
    pub source: Option<IpAddr>,
    /// To this address.
    pub destination: Option<IpAddr>,
    /// From this port of TCP or UDP.
    pub source_port: Option<u16>,
    /// To this port of TCP or UDP.
    pub destination_port: Option<u16>,
    /// From or to this port of TCP or UDP. Traces and captures have it; clients' filters tell the two ports apart, and their
    /// classifier does not look at it.
    pub transport_port: Option<u16>,
}

/// A protocol as a filter names it: `tcp`, `udp`, `icmp`, `icmp6`, `arp`, or the number of an IP
/// protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// ARP.
    Arp,
    /// An upper-layer protocol of IPv4 or IPv6.
    Ip(Protocol),
}

/// A word that names no protocol.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a protocol: use tcp, udp, icmp, icmp6, arp or a number from 0 to 255")]
pub struct MatchError(String);

impl FromStr for Match {
    type Err = MatchError;

    fn from_str(text: &str) -> Result<Self, MatchError> {
        Ok(match text {
            "arp" => Self::Arp,
            "tcp" => Self::Ip(Protocol::TCP),
            "udp" => Self::Ip(Protocol::UDP),
            "icmp" => Self::Ip(Protocol::ICMPV4),
            "icmp6" => Self::Ip(Protocol::ICMPV6),
            _ => Self::Ip(Protocol(text.parse().map_err(|_| MatchError(text.to_owned()))?)),
        })
    }
}

impl Filter {
    /// Whether a frame that was seen on `port` matches.
    #[must_use]
    pub fn matches(&self, port: PortId, frame: &[u8]) -> bool {
        if self.port.is_some_and(|wanted| wanted != port) {
            return false;
        }
        let looked_at = Self { port: self.port, ..Self::default() };
        if *self == looked_at {
            return true;
        }
        let Some(seen) = Seen::of(frame) else { return false };
        let [source, destination] = seen.ends;
        self.ether_type.is_none_or(|wanted| seen.ether_type == wanted)
            && self.host.is_none_or(|host| seen.ends.contains(&Some(host)))
            && self.protocol.is_none_or(|protocol| seen.protocol == Some(protocol))
            && self.source.is_none_or(|wanted| source == Some(wanted))
            && self.destination.is_none_or(|wanted| destination == Some(wanted))
            && self.are_ports(&seen)
    }

    /// Whether a frame is of a protocol that the router has no node for.
    pub(crate) fn is_foreign(frame: &[u8]) -> bool {
        let known = [EtherType::IPV4, EtherType::IPV6, EtherType::ARP];
        Seen::of(frame).is_some_and(|seen| !known.contains(&seen.ether_type))
    }

    fn are_ports(&self, seen: &Seen<'_>) -> bool {
        let wanted = [self.source_port, self.destination_port, self.transport_port];
        if wanted.iter().all(Option::is_none) {
            return true;
        }
        let Some(ports) = seen.ports() else { return false };
        self.source_port.is_none_or(|wanted| ports.0 == wanted)
            && self.destination_port.is_none_or(|wanted| ports.1 == wanted)
            && self.transport_port.is_none_or(|wanted| ports.0 == wanted || ports.1 == wanted)
    }
}

/// What a filter looks at in a frame.
pub(crate) struct Seen<'a> {
    pub(crate) ether_type: EtherType,
    /// Source and destination.
    pub(crate) ends: [Option<IpAddr>; 2],
    pub(crate) protocol: Option<Match>,
    /// From the network header on.
    network: &'a [u8],
}

impl<'a> Seen<'a> {
    /// Source and destination port of TCP or UDP; 0 in a fragment.
    pub(crate) fn ports(&self) -> Option<(u16, u16)> {
        let transport = [Some(Match::Ip(Protocol::TCP)), Some(Match::Ip(Protocol::UDP))];
        match FiveTuple::of(self.network).filter(|_| transport.contains(&self.protocol))? {
            FiveTuple::V4(flow) => Some((flow.source_port(), flow.destination_port())),
            FiveTuple::V6(flow) => Some((flow.source_port(), flow.destination_port())),
        }
    }

    pub(crate) fn of(frame: &'a [u8]) -> Option<Self> {
        let (header, mut rest) = ethernet::Header::parse(frame).ok()?;
        let mut ether_type = header.ether_type();
        for _ in 0..TAGS {
            if ether_type.is_vlan() {
                let (tag, after) = vlan::Tag::parse(rest).ok()?;
                (ether_type, rest) = (tag.ether_type(), after);
            }
        }
        let known = |source: IpAddr, destination: IpAddr, protocol| {
            let (ends, protocol) = ([Some(source), Some(destination)], Some(protocol));
            Self { ether_type, ends, protocol, network: rest }
        };
        // A malformed header is worth tracing too, so only its length must be there.
        let seen = match ether_type {
            EtherType::ARP => arp::Packet::parse(rest)
                .ok()
                .map(|packet| known(packet.sender().into(), packet.target().into(), Match::Arp)),
            EtherType::IPV4 => ipv4::Header::peek(rest).map(|header| {
                let protocol = Match::Ip(header.protocol());
                known(header.source().into(), header.destination().into(), protocol)
            }),
            EtherType::IPV6 => ipv6::Header::peek(rest).map(|header| {
                let upper = ipv6::upper_layer(rest).map(|upper| upper.protocol);
                let protocol = Match::Ip(upper.unwrap_or(header.next_header()));
                known(header.source().into(), header.destination().into(), protocol)
            }),
            _ => None,
        };
        Some(seen.unwrap_or(Self { ether_type, ends: [None; 2], protocol: None, network: rest }))
    }
}

#[cfg(test)]
mod tests;
