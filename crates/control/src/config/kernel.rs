//! Sections about the kernel's side of ports.

use std::net::IpAddr;

use serde::Serialize;

/// `[[kernel]]`: what of a port goes to the Linux stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KernelSide {
    /// The port.
    pub port: String,
    /// The port whose device is the tap that the kernel sees.
    pub tap: String,
    /// Addresses that the kernel has there: everything to and about them goes to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// What else goes to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<KernelFilter>,
    /// Frames of protocols that the router does not know go to it.
    pub others: bool,
}

/// Frames that go to the kernel: all that is given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KernelFilter {
    /// EtherType, behind VLAN tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ether_type: Option<u16>,
    /// `tcp`, `udp`, `icmp`, `icmp6`, `arp`, or the number of an IP protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Address of either end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
    /// Source port of TCP or UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port of TCP or UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// The kernel gets a copy, and the frame goes on.
    pub copy: bool,
}
