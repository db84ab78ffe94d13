//! Client processes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/clients`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Client {
    /// Its number.
    pub id: u32,
    /// What it calls itself.
    pub name: String,
    /// Version of its library.
    pub library: String,
    /// Process id; 0: not visible from here.
    pub pid: i32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Since it attached: seconds.
    pub age: u64,
    /// Its shared memory: bytes.
    pub memory: u64,
    /// Its queues.
    pub queues: Vec<ClientQueues>,
}

/// Queues of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientQueues {
    /// Their number.
    pub number: u32,
    /// Names of the ports whose packets it gets.
    pub ports: Vec<String>,
    /// The receive queue that is its own, of the one port named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u16>,
    /// What becomes of packets: `divert`, `copy` or `nothing`.
    pub take: String,
    /// How they are spread over channels: `round-robin`, `port` or `flow`.
    pub spread: String,
    /// Which ones; empty: all.
    pub filter: String,
    /// How packets cross: `one copy`, or `zero copy` where a hardware queue is the client's own.
    pub transfer: String,
    /// Channels.
    pub channels: u16,
    /// Slots of each ring.
    pub slots: u32,
    /// Bytes of packet that a slot holds.
    pub capacity: u32,
    /// What went through them.
    #[serde(flatten)]
    pub counters: ClientCounters,
}

/// What went through the queues of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientCounters {
    /// Given to it: packets.
    pub delivered: u64,
    /// Given to it: bytes.
    pub delivered_bytes: u64,
    /// Found its ring full: packets.
    pub full: u64,
    /// Went by without a look at whether it wants a copy, as the worker was busy: packets of its ports.
    pub skipped: u64,
    /// Sent by it: packets.
    pub sent: u64,
    /// Sent by it: bytes.
    pub sent_bytes: u64,
    /// Not its to send, or of no sound length: packets.
    pub refused: u64,
    /// Found no buffer, or fit none: packets.
    pub no_buffer: u64,
    /// Marks in its rings that made no sense.
    pub malformed: u64,
}
