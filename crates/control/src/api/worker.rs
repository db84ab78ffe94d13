//! Workers, nodes and drops.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/workers`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Number of its core.
    pub core: u16,
    /// Whether it answers. One that does not for a second has ended or is stuck. One that is so again and again has to answer for up
    /// to 10 s until this says so.
    pub answers: bool,
    /// Rounds of its loop.
    pub rounds: u64,
    /// Rounds that found no packet.
    pub idle_rounds: u64,
    /// Spent in rounds that found packets: TSC cycles.
    pub busy_cycles: u64,
    /// Spent in rounds that found none: TSC cycles.
    pub idle_cycles: u64,
    /// Spent asleep: TSC cycles.
    pub sleep_cycles: u64,
    /// TSC cycles per second.
    pub tsc_hz: u64,
    /// Received from devices and rings: packets.
    pub packets: u64,
    /// Handed to the control thread: packets.
    pub punts: u64,
    /// Times that it slept.
    pub sleeps: u64,
    /// ICMP errors that were due, and not sent because of `limits.icmp-rate`. The drops count under their causes.
    #[serde(default)]
    pub icmp_limited: u64,
    /// Receive bursts by size: 0 packets, 1, 2-3, 4-7, and so on, the largest last.
    #[serde(default)]
    pub bursts: Vec<u64>,
}

impl Worker {
    /// Busy TSC cycles per packet; none before the first packet.
    #[must_use]
    pub fn cycles_per_packet(&self) -> Option<f64> {
        ratio(self.busy_cycles, self.packets)
    }

    /// Share of the time in rounds that found packets, 0 to 1.
    #[must_use]
    pub fn utilization(&self) -> Option<f64> {
        ratio(self.busy_cycles, self.busy_cycles + self.idle_cycles + self.sleep_cycles)
    }
}

/// `GET /v1/nodes`: a node on one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Name of the node.
    pub node: String,
    /// Number of the worker's core.
    pub core: u16,
    /// Calls.
    pub vectors: u64,
    /// Packets given to it.
    pub packets: u64,
    /// Packets among those whose cycles were measured.
    pub sampled_packets: u64,
    /// Spent on those: TSC cycles.
    pub sampled_cycles: u64,
}

impl Node {
    /// TSC cycles per packet; none before the first measured one.
    #[must_use]
    pub fn cycles_per_packet(&self) -> Option<f64> {
        ratio(self.sampled_cycles, self.sampled_packets)
    }

    /// Packets per call.
    #[must_use]
    pub fn packets_per_vector(&self) -> Option<f64> {
        ratio(self.packets, self.vectors)
    }
}

/// `GET /v1/drops`: packets dropped for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drop {
    /// Name of the reason.
    pub reason: String,
    /// What it means, in a sentence.
    pub meaning: String,
    /// Packets.
    pub packets: u64,
}

fn ratio(a: u64, b: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    (b > 0).then(|| a as f64 / b as f64)
}
