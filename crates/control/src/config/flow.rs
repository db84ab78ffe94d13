//! Exact-match flows: the shape that files and API share.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::net::MacAddr;

/// What a flow's packets have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowKey {
    /// Source address.
    #[schema(value_type = String, example = "192.0.2.1")]
    pub source: IpAddr,
    /// Destination address, of the same family.
    #[schema(value_type = String, example = "198.51.100.1")]
    pub destination: IpAddr,
    /// IP protocol number: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// Source port; 0 for protocols without ports.
    #[serde(default)]
    pub source_port: u16,
    /// Destination port; 0 for protocols without ports.
    #[serde(default)]
    pub destination_port: u16,
}

/// A flow: its key and what becomes of its packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Source address.
    #[schema(value_type = String, example = "192.0.2.1")]
    pub source: IpAddr,
    /// Destination address, of the same family.
    #[schema(value_type = String, example = "198.51.100.1")]
    pub destination: IpAddr,
    /// IP protocol number: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// Source port; 0 for protocols without ports.
    #[serde(default)]
    pub source_port: u16,
    /// Destination port; 0 for protocols without ports.
    #[serde(default)]
    pub destination_port: u16,
    /// Name of the port that they leave by.
    pub egress_port: String,
    /// Their new source MAC; absent: the egress port's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_mac: Option<MacAddr>,
    /// Their new destination MAC; absent: the egress port's `next-hop-mac`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_mac: Option<MacAddr>,
    /// Their new source address, of the same family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub new_source: Option<IpAddr>,
    /// Their new destination address, of the same family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub new_destination: Option<IpAddr>,
    /// Their new source port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_source_port: Option<u16>,
    /// Their new destination port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_destination_port: Option<u16>,
}

impl Flow {
    /// What its packets have in common.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey {
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            source_port: self.source_port,
            destination_port: self.destination_port,
        }
    }
}

/// The number of an IP protocol that is given as a number or by one of the names `tcp`, `udp`,
/// `sctp`, `icmp` and `ipv6-icmp`.
#[must_use]
pub fn protocol_number(text: &str) -> Option<u8> {
    match text {
        "tcp" => Some(6),
        "udp" => Some(17),
        "sctp" => Some(132),
        "icmp" => Some(1),
        "ipv6-icmp" => Some(58),
        _ => text.parse().ok(),
    }
}
