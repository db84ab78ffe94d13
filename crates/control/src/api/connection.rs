//! Connections and UDP sockets of stacks.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Transport;
use crate::net::Prefix;

/// Which connections and UDP sockets `GET /v1/sessions/connections` gives: those that meet all that is said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ConnectionQuery {
    /// `tcp` for connections alone, `udp` for UDP sockets alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Transport>,
    /// The port of either end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// A prefix that the address of either end lies within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Prefix>,
    /// States, separated by commas, as in `established,close-wait`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The name of the process, or its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The number of the stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<u32>,
    /// Connections and UDP sockets to give at most, of each, 1 to 100,000; absent: 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// `GET /v1/sessions/connections`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ConnectionPage {
    /// Connections, by stack.
    pub connections: Vec<Connection>,
    /// Those that meet what was asked for, shown or not.
    pub total: u64,
    /// Connections of these stacks that have left nothing but their TIME-WAIT; they are not shown.
    pub time_wait: u64,
    /// Connections for which the stacks' tables have no place, at least; they are not shown.
    pub unlisted: u64,
    /// UDP sockets, by stack.
    #[serde(default)]
    pub udp_sockets: Vec<UdpSocket>,
    /// Those that meet what was asked for, shown or not.
    #[serde(default)]
    pub udp_total: u64,
    /// UDP sockets for which the stacks' tables have no place, at most; they are not shown.
    #[serde(default)]
    pub udp_unlisted: u64,
}

/// Where a connection is in its life (RFC 9293 3.3.2), and whether a UDP socket has a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the RFC's own names")]
pub enum ConnectionState {
    SynSent,
    SynReceived,
    Established,
    #[serde(rename = "fin-wait-1")]
    FinWait1,
    #[serde(rename = "fin-wait-2")]
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    /// Over; the application has not closed it yet.
    Closed,
    /// A UDP socket that is connected to no peer.
    Unconnected,
}

impl ConnectionState {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::SynSent, "syn-sent"),
        (Self::SynReceived, "syn-received"),
        (Self::Established, "established"),
        (Self::FinWait1, "fin-wait-1"),
        (Self::FinWait2, "fin-wait-2"),
        (Self::CloseWait, "close-wait"),
        (Self::Closing, "closing"),
        (Self::LastAck, "last-ack"),
        (Self::TimeWait, "time-wait"),
        (Self::Closed, "closed"),
        (Self::Unconnected, "unconnected"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    /// The states of a list that is separated by commas.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        text.split(',').map(|word| Self::named(word.trim())).collect()
    }

    /// The state of that name, in `ss`'s spelling too.
    fn named(word: &str) -> Result<Self, String> {
        let lower = word.to_ascii_lowercase();
        let name = match lower.as_str() {
            "syn-recv" => "syn-received",
            "estab" => "established",
            "fin-wait1" => "fin-wait-1",
            "fin-wait2" => "fin-wait-2",
            "unconn" => "unconnected",
            name => name,
        };
        let found = Self::ALL.into_iter().find(|(_, known)| *known == name);
        found.map(|(state, _)| state).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("'{word}' is no state; there are {}", all.join(", "))
        })
    }
}

/// A connection, as its stack says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Connection {
    /// The stack's number.
    pub stack: u32,
    /// What its process calls itself.
    pub name: String,
    /// Process id; 0: not visible from here.
    pub pid: i32,
    /// User id.
    pub uid: u32,
    /// Its protocol.
    pub protocol: Transport,
    /// This end.
    #[schema(value_type = String, example = "192.0.2.1:80")]
    pub local: SocketAddr,
    /// The peer.
    #[schema(value_type = String, example = "198.51.100.7:50000")]
    pub remote: SocketAddr,
    /// Where it is in its life.
    pub state: ConnectionState,
    /// The process has opened it itself.
    pub outgoing: bool,
    /// The process has not accepted it yet.
    #[serde(default)]
    pub waits: bool,
    /// It is on a link: its packets do not pass through the daemon.
    #[serde(default)]
    pub linked: bool,
    /// Since it began: ms.
    pub age: u64,
    /// Since the stack has written this: ms.
    pub written: u64,
    /// Received, and not read by the process yet: bytes.
    pub receive_queue: u32,
    /// Written by the process, and not acknowledged by the peer yet: bytes.
    pub send_queue: u32,
    /// Smoothed round-trip time: us; 0: none yet.
    pub rtt: u32,
    /// Variation of the round-trip time: us.
    pub rtt_variation: u32,
    /// Least round-trip time: us; 0: none yet.
    pub least_rtt: u32,
    /// Retransmission time-out: us, without back-off.
    pub timeout: u32,
    /// Time-outs in a row.
    pub backoff: u8,
    /// Congestion control; empty before the handshake is over.
    pub congestion_control: String,
    /// Congestion window: bytes.
    pub congestion_window: u32,
    /// Slow-start threshold: bytes; absent: none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// On the way to the peer: bytes.
    pub in_flight: u32,
    /// Found lost, and not sent again yet: bytes.
    pub lost: u32,
    /// Segments sent again.
    pub retransmissions: u32,
    /// What the peer takes: bytes.
    pub peer_window: u32,
    /// What it takes: bytes.
    pub own_window: u32,
    /// Shift of the peer's window.
    pub peer_window_shift: u8,
    /// Shift of its window.
    pub own_window_shift: u8,
    /// Bytes of data of a full segment.
    pub mss: u16,
    /// Bytes of an IP packet on the path, as far as is known.
    pub path_mtu: u16,
    /// Time stamps are in use.
    pub timestamps: bool,
    /// Selective acknowledgments are in use.
    pub sack: bool,
    /// Congestion marks are in use.
    pub ecn: bool,
    /// Data sent, what was sent again included: bytes.
    pub bytes_sent: u64,
    /// Data that the peer has acknowledged: bytes.
    pub bytes_acknowledged: u64,
    /// Data received in order: bytes.
    pub bytes_received: u64,
    /// Segments sent, modulo 2^32.
    pub segments_sent: u32,
    /// Segments received, modulo 2^32.
    pub segments_received: u32,
    /// What the path delivered: bytes/s; 0: not known.
    pub delivery_rate: u64,
    /// Since data was sent: ms; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sent: Option<u32>,
    /// Since data was received: ms; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_received: Option<u32>,
}

/// A UDP socket, as its stack says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UdpSocket {
    /// The stack's number.
    pub stack: u32,
    /// What its process calls itself.
    pub name: String,
    /// Process id; 0: not visible from here.
    pub pid: i32,
    /// User id.
    pub uid: u32,
    /// This end. An unspecified address stands for any.
    #[schema(value_type = String, example = "0.0.0.0:53")]
    pub local: SocketAddr,
    /// The peer that it is connected to; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "198.51.100.7:53")]
    pub remote: Option<SocketAddr>,
    /// `established` when it is connected to a peer, else `unconnected`.
    pub state: ConnectionState,
    /// Since the stack has written this: ms.
    pub written: u64,
    /// Datagrams that the process has not read yet, with what each costs beside its data: bytes.
    pub receive_queue: u32,
    /// Datagrams that have not left yet, in the same way: bytes.
    pub send_queue: u32,
    /// Datagrams that were dropped because the receive buffer was full.
    pub dropped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_names_that_json_has() {
        for (state, name) in ConnectionState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), name);
            assert_eq!((state.name(), ConnectionState::list(name)), (name, Ok(vec![state])));
        }
        let some = ConnectionState::list("ESTAB, syn-recv,fin-wait1,UNCONN").unwrap();
        use ConnectionState::{Established, FinWait1, SynReceived, Unconnected};
        assert_eq!(some, [Established, SynReceived, FinWait1, Unconnected]);
        let error = ConnectionState::list("established,open").unwrap_err();
        assert!(error.starts_with("'open' is no state; there are syn-sent, "), "{error}");
    }
}
