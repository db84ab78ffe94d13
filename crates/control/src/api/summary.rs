//! The daemon as a whole.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/version`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Version of the daemon.
    pub version: String,
    /// Version of the API: see [`API_VERSION`](super::API_VERSION).
    pub api: u32,
    /// Version of DPDK, as DPDK tells it.
    pub dpdk: String,
    /// Process id.
    pub pid: u32,
    /// Restarts in place since the process began.
    #[serde(default)]
    pub restarts: u32,
    /// How long forwarding stood still at the last of them: microseconds. Absent: there was none, or it is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standstill: Option<u64>,
}

/// `POST /v1/restart`: the daemon is about to begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Restarting {
    /// What [`Version::restarts`] will be then.
    pub restarts: u32,
}

/// How full something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// In use.
    pub used: u64,
    /// Most that fit.
    pub capacity: u64,
}

/// `GET /v1/summary`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// Version of the daemon.
    pub version: String,
    /// Since start: seconds.
    pub uptime: u64,
    /// Configuration file.
    pub config: String,
    /// Ports that are up, of all.
    pub ports: Usage,
    /// Interfaces: ports, VLAN sub-interfaces and bridges.
    pub interfaces: u64,
    /// Cores with a worker.
    pub cores: Vec<u16>,
    /// Whether packet buffers are in hugepages.
    pub hugepages: bool,
    /// Packet buffers.
    pub buffers: Usage,
    /// IPv4 routes.
    pub routes4: Usage,
    /// IPv6 routes.
    pub routes6: Usage,
    /// Next hops.
    pub next_hops: Usage,
    /// Neighbours.
    pub neighbors: Usage,
    /// Neighbours that are being resolved.
    pub unresolved: Usage,
    /// IPv4 flows.
    pub flows4: Usage,
    /// IPv6 flows.
    pub flows6: Usage,
    /// Learned MAC addresses of all bridges.
    pub bridge_macs: Usage,
    /// Received by all ports: packets.
    pub rx_packets: u64,
    /// Received by all ports: bytes.
    pub rx_bytes: u64,
    /// Sent by all ports: packets.
    pub tx_packets: u64,
    /// Sent by all ports: bytes.
    pub tx_bytes: u64,
    /// Dropped for any reason: packets.
    pub dropped: u64,
}

/// `POST /v1/reload`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reload {
    /// Absolute path of the configuration file, a regular file below the folder of the configuration that the daemon was
    /// started with or below one of `daemon.folders`, like the files that it names; no symbolic link may lead out of them.
    /// Absent: the one that is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// `POST /v1/save`: what was saved for the next start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Saved {
    /// The file.
    pub file: String,
    /// Its length: bytes.
    pub bytes: u64,
    /// Routes that came by the API.
    pub routes: u64,
    /// Neighbours that came by the API.
    pub neighbors: u64,
    /// Neighbours that were learned.
    pub learned: u64,
    /// Flows that came by the API.
    pub flows: u64,
    /// Packet functions that came by the API.
    pub functions: u64,
}

/// What a reload did. Routes, flows and static neighbours of the API stay. Those that name an interface which is not in the
/// new configuration are not in force until an interface of that name is back; they never come to mean another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Reloaded {
    /// Each change, in a sentence; none: nothing differed.
    pub changes: Vec<String>,
    /// Differences that take effect at the next start only, in a sentence each.
    #[serde(default)]
    pub at_restart: Vec<String>,
}
