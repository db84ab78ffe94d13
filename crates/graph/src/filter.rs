//! Which packets a trace or a capture wants.

use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;
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
        if self.host.is_none() && self.protocol.is_none() {
            return true;
        }
        let Some(seen) = Seen::of(frame) else { return false };
        self.host.is_none_or(|host| seen.ends.contains(&host))
            && self.protocol.is_none_or(|protocol| seen.protocol == protocol)
    }
}

/// What a filter looks at in a frame.
struct Seen {
    ends: [IpAddr; 2],
    protocol: Match,
}

impl Seen {
    fn of(frame: &[u8]) -> Option<Self> {
        let (header, mut rest) = ethernet::Header::parse(frame).ok()?;
        let mut ether_type = header.ether_type();
        for _ in 0..TAGS {
            if ether_type.is_vlan() {
                let (tag, after) = vlan::Tag::parse(rest).ok()?;
                (ether_type, rest) = (tag.ether_type(), after);
            }
        }
        match ether_type {
            EtherType::ARP => {
                let packet = arp::Packet::parse(rest).ok()?;
                let ends = [packet.sender().into(), packet.target().into()];
                Some(Self { ends, protocol: Match::Arp })
            }
            EtherType::IPV4 => {
                // A malformed header is worth tracing too, so only its length must be there.
                let header = ipv4::Header::peek(rest)?;
                let ends = [header.source().into(), header.destination().into()];
                Some(Self { ends, protocol: Match::Ip(header.protocol()) })
            }
            EtherType::IPV6 => {
                let header = ipv6::Header::peek(rest)?;
                let ends = [header.source().into(), header.destination().into()];
                let upper = ipv6::upper_layer(rest).map(|upper| upper.protocol);
                let protocol = Match::Ip(upper.unwrap_or(header.next_header()));
                Some(Self { ends, protocol })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
