//! Interfaces, bridges and neighbours.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Usage;
use crate::net::{InterfaceAddress, MacAddr};

/// `GET /v1/interfaces`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Interface {
    /// Name in the configuration.
    pub name: String,
    /// What it is.
    pub kind: InterfaceKind,
    /// What becomes of its frames.
    pub mode: InterfaceMode,
    /// Its bridge, or the interface that it is cross-connected to; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Its VRF; absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Its port; a bridge has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// VLAN id of a sub-interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Whether its port is up.
    pub up: bool,
    /// MAC address.
    pub mac: MacAddr,
    /// Largest IP packet: bytes.
    pub mtu: u16,
    /// Own addresses, the link-local one included.
    pub addresses: Vec<InterfaceAddress>,
    /// What packets that come in by it go through, in order; as nodes in `GET /v1/nodes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_features: Vec<String>,
    /// The same for packets that leave by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_features: Vec<String>,
}

/// What an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceKind {
    /// A port.
    Port,
    /// A VLAN sub-interface.
    Vlan,
    /// The IP interface of a bridge.
    Bridge,
}

/// What becomes of an interface's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceMode {
    /// They are routed.
    Routed,
    /// They are bridged.
    Bridged,
    /// They leave by another interface.
    CrossConnected,
}

/// `GET /v1/bridges`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bridge {
    /// Name in the configuration.
    pub name: String,
    /// Its members.
    pub members: Vec<BridgeMember>,
    /// Whether VLAN tags are looked at.
    pub vlan_filtering: bool,
    /// Learned addresses are forgotten after: seconds.
    pub ageing: u32,
    /// Flooded frames: packets/s per worker; 0: no limit.
    pub flood_rate: u32,
    /// How many addresses it has learned, of how many it may.
    pub learned: Usage,
    /// Learned addresses: at most the first 10,000.
    pub macs: Vec<BridgeMac>,
}

/// A member of a bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BridgeMember {
    /// The interface.
    pub interface: String,
    /// VLANs that may pass; empty: all.
    #[serde(default)]
    pub vlans: Vec<u16>,
    /// VLAN of untagged frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untagged: Option<u16>,
}

/// A learned address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BridgeMac {
    /// The address.
    pub mac: MacAddr,
    /// VLAN that it was seen in; absent without VLAN filtering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Member that it is behind.
    pub interface: String,
    /// Since it was seen last: seconds.
    pub age: u32,
}

/// `GET /v1/neighbors`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Neighbor {
    /// Interface that it is behind.
    pub interface: String,
    /// Its address.
    #[schema(value_type = String, example = "192.0.2.9")]
    pub address: IpAddr,
    /// Its MAC address, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// What is known of it.
    pub state: NeighborState,
    /// Since it was confirmed last: milliseconds; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<u64>,
    /// Packets that wait for its answer.
    pub queued: u32,
    /// Its interface is gone, or the link is down: it is in force again as soon as that is back. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
}

/// What is known of a neighbour: RFC 4861 7.3.2, for ARP too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NeighborState {
    /// Asked for, no answer yet.
    Incomplete,
    /// Confirmed a short while ago.
    Reachable,
    /// Confirmed long ago.
    Stale,
    /// Stale, and used: a probe follows.
    Delay,
    /// Asked again, no answer yet.
    Probe,
    /// Did not answer.
    Failed,
    /// Set by configuration or API.
    Static,
}

/// `DELETE /v1/neighbors`: all neighbours that match. Static ones of the configuration stay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NeighborSelector {
    /// On this interface; absent: on any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Of this address; absent: of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
}
