//! Sections about the program itself: daemon, memory, workers, limits, forwarding, neighbours.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::duration;

/// `[daemon]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Daemon {
    /// API socket.
    pub socket: PathBuf,
    /// Group that may use the API, besides root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Folders besides the configuration's, below which files may lie that are named over the API.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
    /// Folder where what came by the API is kept for the next start; absent: kept only when somebody saves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<PathBuf>,
    /// What is logged.
    pub log: LogLevel,
}

/// What is logged: that level and all above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// What should be looked at.
    Warn,
    /// What happens in normal life.
    Info,
    /// Decisions of the control thread.
    Debug,
    /// All.
    Trace,
}

/// `[memory]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Memory {
    /// Packet buffers per NUMA node.
    pub buffers: u32,
    /// Data room of a buffer: bytes.
    pub buffer_size: u16,
    /// Use of hugepages.
    pub hugepages: Hugepages,
}

/// Use of hugepages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hugepages {
    /// When there are any.
    Auto,
    /// Or do not start.
    Require,
    /// Not at all.
    Never,
}

/// `[workers]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Workers {
    /// Cores with a worker thread each, in order; never empty.
    pub cores: Vec<u16>,
    /// What an idle worker does.
    pub poll: Poll,
    /// Largest receive burst: packets, 1..=256.
    pub vector: u16,
    /// Longest wait of a packet in a transmit buffer.
    #[serde(serialize_with = "duration::serialize")]
    pub drain: Duration,
}

/// What an idle worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Poll {
    /// Backs off: spin, pause, sleep.
    Adaptive,
    /// Polls without rest.
    Busy,
}

/// `[limits]`: capacities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Limits {
    /// IPv4 routes.
    pub routes4: u32,
    /// IPv6 routes.
    pub routes6: u32,
    /// Next hops.
    pub next_hops: u32,
    /// Neighbours.
    pub neighbors: u32,
    /// Neighbours that are being resolved.
    pub unresolved: u32,
    /// IPv4 flows; 0 turns the stage off.
    pub flows4: u32,
    /// IPv6 flows; 0 turns the stage off.
    pub flows6: u32,
    /// Learned MAC addresses of all bridges.
    pub bridge_macs: u32,
    /// ICMP errors: messages/s per worker (RFC 1812 4.3.2.8, RFC 4443 2.4 f).
    pub icmp_rate: u32,
}

/// `[forwarding]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Forwarding {
    /// What a look-up miss does.
    pub miss: Miss,
    /// Drop packets with martian addresses (RFC 1812 5.3.7).
    pub martians: bool,
    /// Forward directed broadcasts (RFC 2644: off).
    pub directed_broadcast: bool,
    /// Seed of the hash that spreads flows over the members of an ECMP route. `None`: random at each start.
    pub ecmp_seed: Option<u32>,
}

/// What a look-up miss does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Miss {
    /// An ICMP error goes to the sender.
    Unreachable,
    /// Dropped in silence.
    Drop,
    /// Sent back out of the port that it came in by.
    Reflect,
}

/// `[neighbors]`: timers of RFC 4861 10, for ARP too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Neighbors {
    /// How long a confirmed neighbour is held reachable.
    #[serde(serialize_with = "duration::serialize")]
    pub reachable_time: Duration,
    /// Between probes.
    #[serde(serialize_with = "duration::serialize")]
    pub retrans_timer: Duration,
    /// Probes without answer before a neighbour is given up.
    pub max_probes: u8,
    /// From use of a stale neighbour to its first probe.
    #[serde(serialize_with = "duration::serialize")]
    pub delay_first_probe: Duration,
    /// An unused stale neighbour is removed after that.
    #[serde(serialize_with = "duration::serialize")]
    pub stale_time: Duration,
    /// Packets that wait for one neighbour's answer.
    pub queue: u16,
}
