//! Ports and their queues.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::net::MacAddr;

/// `GET /v1/ports`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// Name in the configuration.
    pub name: String,
    /// What packet functions know it by, another each time that its device is opened; absent while that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u16>,
    /// Device string.
    pub device: String,
    /// DPDK's driver, as in `net_af_packet`; empty while the device is gone.
    pub driver: String,
    /// Whether it forwards.
    pub state: PortState,
    /// Why it does not forward, or that its driver does not answer; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// MAC address.
    pub mac: MacAddr,
    /// Largest IP packet: bytes.
    pub mtu: u16,
    /// Takes frames for any MAC address.
    pub promiscuous: bool,
    /// Speed of the link: Mbit/s; 0: the driver does not know.
    pub speed: u32,
    /// NUMA node; absent: the driver does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u16>,
    /// Receive queues.
    pub rx_queues: u16,
    /// Transmit queues: one per worker.
    pub tx_queues: u16,
    /// What went through it.
    pub counters: PortCounters,
}

/// Whether a port forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortState {
    /// It does.
    Up,
    /// Its link is down.
    LinkDown,
    /// A worker that its packets go through does not answer.
    WorkerDown,
    /// It was set down.
    AdminDown,
    /// Its device is gone; it is opened again when it comes back.
    Gone,
}

/// What went through a port. What the device counts is up to a second old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PortCounters {
    /// Received: packets.
    pub rx_packets: u64,
    /// Received: bytes.
    pub rx_bytes: u64,
    /// Lost by the device because its receive queues were full: packets.
    pub rx_missed: u64,
    /// Received with errors, told by the device: packets.
    pub rx_errors: u64,
    /// Not received because buffers were short: packets.
    pub rx_no_buffer: u64,
    /// Sent: packets.
    pub tx_packets: u64,
    /// Sent: bytes.
    pub tx_bytes: u64,
    /// Dropped because the transmit queue stayed full: packets.
    pub tx_dropped: u64,
    /// Not sent because of errors, told by the device: packets.
    pub tx_errors: u64,
}

/// `PATCH /v1/ports/{name}`: what is absent stays as it is. The change lasts until the next reload
/// that changes the same, or the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortChange {
    /// Set up or down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// Largest IP packet: bytes, 68 to 9216.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// Take frames for any MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promiscuous: Option<bool>,
}

/// `GET /v1/queues`: a receive queue and the core that polls it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Name of the port.
    pub port: String,
    /// Number of the queue.
    pub queue: u16,
    /// Number of the core.
    pub core: u16,
    /// Descriptors of the queue.
    pub descriptors: u16,
    /// Cores that the queue's packets are spread over by software RSS; empty: its own only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub software_rss: Vec<u16>,
    /// Whether a client can have the queue for itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_clients: bool,
    /// The client that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u32>,
}
