//! Trace and capture.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/trace`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Packets to follow, 1 to 10,000; absent: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Only packets that come in by this port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Only packets from or to this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub host: Option<IpAddr>,
    /// Only packets of this protocol: tcp, udp, icmp, icmp6, arp, or a number of an IP protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Only packets from or to this port of TCP or UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_port: Option<u16>,
    /// Ends after: seconds; absent: 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
}

/// A packet in one node: a line of the answer to a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceStep {
    /// Number of the packet in this trace, from 0.
    pub packet: u32,
    /// Number of the worker's core.
    pub core: u16,
    /// When the node began with the packet, since the first step of the trace: nanoseconds.
    pub time: u64,
    /// The node.
    pub node: String,
    /// What the node saw in the packet.
    pub seen: String,
    /// What became of it there, in words.
    pub fate: String,
}

/// `POST /v1/capture`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Packets to write; absent: until the client hangs up or the time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Only packets of this port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Only packets from or to this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub host: Option<IpAddr>,
    /// Only packets of this protocol: tcp, udp, icmp, icmp6, arp, or a number of an IP protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Only packets from or to this port of TCP or UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_port: Option<u16>,
    /// Bytes kept of each packet, 64 to 65,535; absent: 65,535.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snaplen: Option<u32>,
    /// Ends after: seconds; absent: does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Where packets are taken.
    #[serde(default)]
    pub direction: Direction,
}

/// Where packets are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// As they come in from a port.
    Rx,
    /// As they go out to a port.
    Tx,
    /// Where they are dropped; the reason is the packet's comment.
    Drop,
    /// At all three.
    #[default]
    Any,
}
