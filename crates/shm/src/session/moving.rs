//! Connections that move between processes.
//!
//! A connection that more than one process may hold has a carrier in place of its descriptor: one end of a connection to the
//! sessions socket that was opened for nothing else ([`Request::Carrier`](super::Request::Carrier)). The kernel counts its
//! holders: fork, exec, `dup` and `SCM_RIGHTS` carry it, and the daemon's end hangs up when the last copy is closed. The reply
//! stays in it unread: whoever holds a copy can peek at it (`MSG_PEEK`) and knows the [`CarrierId`] then.
//!
//! Connections travel in a file (`memfd_create`) that comes with the message: for each, its length as a `u32`, little-endian,
//! and then as many bytes as the stack has exported.

use serde::{Deserialize, Serialize};

use super::link::LinkPlace;

/// Names a connection that has a carrier. Random: whoever knows it holds a copy of the carrier, and may have the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CarrierId(pub [u64; 2]);

/// It is a secret, and does not belong in logs.
impl std::fmt::Debug for CarrierId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CarrierId(..)")
    }
}

/// Gives the daemon a connection that has a carrier: the one connection in the file that comes along. From then on the daemon
/// answers its peer, until a process withdraws it; when the last copy of the carrier is closed, the daemon closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Deposit {
    /// The stack that has exported it.
    pub stack: u32,
    /// Its carrier's.
    pub id: CarrierId,
    /// When it was exported: ns of `CLOCK_MONOTONIC`.
    pub at: u64,
}

/// Asks for a connection that has a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Withdraw {
    /// The stack that will have it.
    pub stack: u32,
    /// Its carrier's.
    pub id: CarrierId,
}

/// A connection comes, alone in the file that comes along. Its packets come to the stack from now on: it takes them after it
/// has imported the connection, and claims the flow, also on a port that it leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Withdrawn {
    /// Its carrier's.
    pub id: CarrierId,
    /// When it was exported: ns of `CLOCK_MONOTONIC`.
    pub at: u64,
}

/// Leaves connections to the daemon that nobody holds any more: it sends what is left to send, and closes them. They are in the
/// file that comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Abandon {
    /// The stack that has exported them.
    pub stack: u32,
    /// When they were exported: ns of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// How many there are in the file.
    pub count: u32,
}

/// Leaves connections in TIME-WAIT to the daemon: it answers their peers' FINs that come again. They are in the file that comes
/// along, as crate `transport` writes them (`TimeWait::write`), and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WaitOut {
    /// The stack that has exported them.
    pub stack: u32,
    /// When they were exported: ns of `CLOCK_MONOTONIC`.
    pub at: u64,
}

/// Connections in TIME-WAIT that come in one file at most.
pub const MOST_WAITS: usize = 4_096;

/// Connections that nobody has accepted, of a listener that the stack leaves: they are offered to its other members
/// ([`Event::Offered`]). They are in the file that comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Hand {
    /// The stack that has exported them.
    pub stack: u32,
    /// The listener's number.
    pub listener: u32,
    /// When they were exported: ns of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// How many there are in the file.
    pub count: u32,
}

/// The daemon says something that was not asked for. It may come at any time, also between a request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Another process asks for a connection that this one has: [`Deposit`] it, or say
    /// [`Request::Decline`](super::Request::Decline). Who does neither within a second keeps it.
    Recall(CarrierId),
    /// A connection that this process has asked for in vain ([`Reply::Recalling`](super::Reply::Recalling)) can be withdrawn now. So
    /// can one that it was asked for and has given, of which nobody makes use any more.
    Parked(CarrierId),
    /// A connection that this process has asked for will not come: whoever had it has ended, or does not give it. Or one that it has
    /// given is lost.
    Lost(CarrierId),
    /// A connection waits to be accepted: [`Withdraw`] it soon, before another member is asked.
    Offered(Offered),
    /// A process that is about to connect to this one has a link to it now. Descriptors come along as with
    /// [`Reply::Introduced`](super::Reply::Introduced).
    Linked(LinkPlace),
    /// The process at the other end of the link of that number has ended, or has closed it.
    Unlinked(u32),
    /// Another process begins to take new connections of the listener of that number, which this one only keeps open, or is too busy
    /// for, and nobody did so far: what waits at this one's stacks is to be [handed](Hand) over.
    Taken(u32),
}

/// A connection that waits to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Offered {
    /// The stack that it is for.
    pub stack: u32,
    /// The listener's number.
    pub listener: u32,
    /// What it can be withdrawn by. It has no carrier.
    pub id: CarrierId,
}

/// Why a file is no list of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file does not hold {expected} connections, each behind its length")]
pub struct ParcelsError {
    /// How many it should hold.
    pub expected: u32,
}

/// What goes into the file: connections, each behind its length. `None`: one is longer than a `u32` can say.
#[must_use]
pub fn pack<'a>(connections: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut file = Vec::new();
    for connection in connections {
        file.extend_from_slice(&u32::try_from(connection.len()).ok()?.to_le_bytes());
        file.extend_from_slice(connection);
    }
    Some(file)
}

/// The `count` connections of a file, which anybody may have written.
///
/// # Errors
/// [`ParcelsError`] unless there are exactly as many, and nothing behind them.
pub fn unpack(file: &[u8], count: u32) -> Result<Vec<&[u8]>, ParcelsError> {
    let wrong = ParcelsError { expected: count };
    let mut rest = file;
    // Each takes four bytes at least: memory follows what is there, not what is said.
    if rest.len() / 4 < count as usize {
        return Err(wrong);
    }
    let mut connections = Vec::new();
    for _ in 0..count {
        let (length, behind) = rest.split_first_chunk().ok_or(wrong)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (connection, behind) = behind.split_at_checked(length).ok_or(wrong)?;
        connections.push(connection);
        rest = behind;
    }
    if rest.is_empty() { Ok(connections) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_out_as_they_went_in() {
        let all: [&[u8]; 3] = [b"first", b"", b"third"];
        let file = pack(all).unwrap();
        assert_eq!(unpack(&file, 3).unwrap(), all);
        for (bytes, count) in [(&file[..], 2), (&file[..], 4), (&file[..file.len() - 1], 3)] {
            assert_eq!(unpack(bytes, count), Err(ParcelsError { expected: count }));
        }
        assert!(unpack(&[], 0).unwrap().is_empty());
        assert!(unpack(&[255; 8], 1).is_err() && unpack(&[0; 8], u32::MAX).is_err());
    }

    #[test]
    fn an_id_is_not_logged() {
        let id = CarrierId([123_456, 654_321]);
        let shown = format!("{:?}", Event::Recall(id));
        assert!(!shown.contains("123") && !shown.contains("654"), "{shown}");
    }
}
