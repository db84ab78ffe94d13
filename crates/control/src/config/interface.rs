//! Sections about interfaces: ports, VLAN sub-interfaces, bridges, cross-connects.

use std::time::Duration;

use serde::Serialize;

use super::Device;
use crate::duration;
use crate::net::{InterfaceAddress, MacAddr};

/// `[[port]]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Port {
    /// Unique among ports, VLAN sub-interfaces and bridges.
    pub name: String,
    /// What DPDK opens.
    pub device: Device,
    /// MAC address; the device's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// Largest IP packet: bytes.
    pub mtu: u16,
    /// Take frames for any MAC address.
    pub promiscuous: bool,
    /// Receive queues.
    pub rx_queues: u16,
    /// How many of them, the last ones, a client can have for itself.
    pub client_queues: u16,
    /// Descriptors per receive queue.
    pub rx_descriptors: u16,
    /// Descriptors per transmit queue.
    pub tx_descriptors: u16,
    /// The core that polls each receive queue: every queue once, in order.
    pub queues: Vec<QueueCore>,
    /// Cores that share the port by software RSS; empty: none but those of `queues`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub software_rss: Vec<u16>,
    /// VRF that it is in; none: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Own addresses, without the link-local one that is made from the MAC address.
    pub addresses: Vec<InterfaceAddress>,
    /// Fixed destination MAC of all that routes by egress port send here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hop_mac: Option<MacAddr>,
    /// What it does besides forwarding.
    #[serde(flatten)]
    pub features: Features,
}

/// What an interface does with IP packets besides forwarding them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Features {
    /// Segments that TCP connections through it may agree on over IPv4: bytes; over IPv6 they are 20 bytes shorter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_mss: Option<u16>,
}

impl Features {
    /// Keys of those that are set.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let Self { tcp_mss } = self;
        let all = [("tcp-mss", tcp_mss.is_some())];
        all.into_iter().filter_map(|(key, is_set)| is_set.then_some(key))
    }
}

/// A receive queue and the core that polls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueCore {
    /// Number of the queue.
    pub queue: u16,
    /// Number of the core.
    pub core: u16,
}

/// `[[vlan]]`: an 802.1Q sub-interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vlan {
    /// Unique among ports, VLAN sub-interfaces and bridges.
    pub name: String,
    /// Name of its port.
    pub port: String,
    /// VLAN id, 1..=4094.
    pub id: u16,
    /// Largest IP packet: bytes; at most the port's.
    pub mtu: u16,
    /// VRF that it is in; none: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Own addresses.
    pub addresses: Vec<InterfaceAddress>,
    /// What it does besides forwarding.
    #[serde(flatten)]
    pub features: Features,
}

/// `[[bridge]]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bridge {
    /// Unique among ports, VLAN sub-interfaces and bridges.
    pub name: String,
    /// Its members.
    pub members: Vec<BridgeMember>,
    /// Learned addresses are forgotten after that.
    #[serde(serialize_with = "duration::serialize")]
    pub ageing: Duration,
    /// Learned addresses at most.
    pub mac_limit: u32,
    /// Flooded frames: packets/s per worker; 0: no limit.
    pub flood_rate: u32,
    /// Look at VLAN tags.
    pub vlan_filtering: bool,
    /// MAC of its IP interface; the first member's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// Largest IP packet of its IP interface: bytes.
    pub mtu: u16,
    /// VRF that its IP interface is in; none: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Addresses of its IP interface; none: it has no IP interface.
    pub addresses: Vec<InterfaceAddress>,
    /// What its IP interface does besides forwarding.
    #[serde(flatten)]
    pub features: Features,
}

/// A member of a bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BridgeMember {
    /// Name of a port or VLAN sub-interface.
    pub interface: String,
    /// VLANs that may pass; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<u16>,
    /// VLAN of untagged frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untagged: Option<u16>,
}

/// `[[cross-connect]]`: all frames of one interface leave by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CrossConnect {
    /// Interface that frames come in by.
    pub from: String,
    /// Interface that they leave by.
    pub to: String,
    /// The other way too.
    pub both_ways: bool,
}
