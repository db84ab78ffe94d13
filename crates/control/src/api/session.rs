//! Processes with stacks of their own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/sessions/stacks`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stack {
    /// Its number.
    pub number: u32,
    /// The number of its process's connection.
    pub client: u32,
    /// What its process calls itself.
    pub name: String,
    /// Version of its process's library.
    pub library: String,
    /// Process id; 0: not visible from here.
    pub pid: i32,
    /// User id.
    pub uid: u32,
    /// Since it was opened: seconds.
    pub age: u64,
    /// Whether it has begun: its process has mapped its memory.
    pub started: bool,
    /// The stack worker of the daemon that runs it (placement `shared`); none: its process does (`inline`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u16>,
    /// Its shared memory: bytes.
    pub memory: u64,
    /// Pairs of rings: one for each worker.
    pub rings: u16,
    /// Slots of each ring.
    pub slots: u32,
    /// Bytes of packet that a slot holds.
    pub capacity: u32,
    /// Places in its table of claims.
    pub claims: u32,
    /// Numbers of the listeners that it is a member of.
    pub listeners: Vec<u32>,
    /// Local ports leased to it, as in `10240-10495`.
    pub leases: Vec<String>,
    /// Numbers of the stacks that it has links to: packets between them do not pass through the daemon.
    #[serde(default)]
    pub links: Vec<u32>,
    /// What went through its rings.
    #[serde(flatten)]
    pub counters: StackCounters,
    /// What it has counted itself, as it says.
    #[serde(default)]
    pub tcp: StackTcp,
}

/// What a stack has counted of TCP, as it says, up to 100 ms ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StackTcp {
    /// Connections that there are.
    pub connections: u64,
    /// Connections that have left nothing but their TIME-WAIT.
    pub time_wait: u64,
    /// Connections that became established.
    pub established: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Resets sent.
    pub resets: u64,
    /// SYNs and handshakes that found the queue of connections to accept full.
    pub accept_queue_full: u64,
    /// SYNs that found too many half-open connections, and were answered by a cookie.
    pub syn_cookies: u64,
    /// SYNs that were dropped, for whatever reason.
    pub syns_dropped: u64,
    /// Segments that were not taken, for whatever reason.
    pub dropped: u64,
    /// Packets that came over links from where their senders may not send.
    #[serde(default)]
    pub link_refused: u64,
}

/// What went through the rings of a stack. Bytes count from the IP header on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StackCounters {
    /// Given to it: packets.
    pub delivered: u64,
    /// Given to it: bytes.
    pub delivered_bytes: u64,
    /// Found its ring full: packets.
    pub full: u64,
    /// Sent by it: packets.
    pub sent: u64,
    /// Sent by it: bytes.
    pub sent_bytes: u64,
    /// Not its to send: packets, by drop reason.
    pub refused: BTreeMap<String, u64>,
    /// Found no buffer, or fit none: packets.
    pub no_buffer: u64,
    /// Marks in its rings that made no sense.
    pub malformed: u64,
}

impl StackCounters {
    /// What it sent and was not taken.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.refused.values().sum::<u64>() + self.no_buffer + self.malformed
    }
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// `GET /v1/sessions/listeners`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Listener {
    /// Its number.
    pub number: u32,
    /// Its protocol.
    pub protocol: Transport,
    /// Address and port. The unspecified IPv6 address stands for both versions unless `only_v6`.
    #[schema(value_type = String, example = "0.0.0.0:80")]
    pub address: SocketAddr,
    /// IPv6 only.
    pub only_v6: bool,
    /// Stacks that share its new flows.
    pub members: Vec<ListenerMember>,
    /// Numbers of stacks that take none of its new flows and may have old ones.
    pub earlier: Vec<u32>,
}

/// A member of a listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListenerMember {
    /// The stack's number.
    pub stack: u32,
    /// The number of its process's connection.
    pub client: u32,
    /// What its process calls itself.
    pub name: String,
    /// Process id; 0: not visible from here.
    pub pid: i32,
    /// User id.
    pub uid: u32,
    /// Its share of new flows as it asked for; 0: only while all others have 0 too.
    pub weight: u8,
    /// The share that it has: 256ths of new flows.
    pub share: u16,
    /// Connections that its process has not accepted yet, as the stack says.
    #[serde(default)]
    pub waiting: u64,
    /// How many may wait, as `listen` was told; none: UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u32>,
}
