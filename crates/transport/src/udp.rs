//! UDP sockets: by port, their options and groups, what waits to be received.

use std::net::{IpAddr, SocketAddr};

use crate::failure::Failure;
use crate::handle::UdpId;

mod memory;
mod queue;
mod report;
mod sockets;

use memory::Memory;
pub(crate) use memory::SPARE;
use queue::{COST, Queue};
pub(crate) use report::Reports;
pub use report::{UdpMessage, UdpReport};
pub(crate) use sockets::Sockets;

/// What can be set for a UDP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpOptions {
    /// Bytes of datagrams that wait to be received, with 768 for each on top; beyond, they are dropped and
    /// counted. A datagram that nothing waits ahead of is taken however long it is.
    pub receive_buffer: u32,
    /// An IPv6 socket takes no IPv4 datagrams.
    pub v6_only: bool,
    /// Sockets with the same address that all say so share its datagrams, by flow.
    pub share: bool,
    /// Sockets that all say so may have the same address (`SO_REUSEADDR`): datagrams to many go to each, others
    /// to the one that was bound last.
    pub reuse_address: bool,
    /// May send to 255.255.255.255.
    pub broadcast: bool,
    /// ICMP errors about datagrams that were sent over IPv4 are told also if the socket is not connected, or they may pass,
    /// and are kept with what they say ([`Stack::udp_report`](crate::Stack::udp_report)).
    pub errors_v4: bool,
    /// The same over IPv6.
    pub errors_v6: bool,
    /// Who may cut what is sent.
    pub fragmentation: Fragmentation,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// The same, for multicast.
    pub multicast_ttl: u8,
    /// What is sent to a group that this stack has joined is received here too.
    pub multicast_loop: bool,
    /// Differentiated services code point.
    pub dscp: u8,
    /// ECN bits of what is sent, unless a message has its own.
    pub ecn: u8,
}

/// Who may cut a datagram into fragments (`IP_MTU_DISCOVER`). The stack sends whole packets in any case. Over IPv6, only the
/// caller may cut one, to 1,280 bytes at most: it is known by a fragment header that says that it is whole (RFC 6946).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fragmentation {
    /// Whoever is in front of a link that takes less. What the network says about that is not told.
    Allowed,
    /// Nobody, unless the path is known to take less than the packet, or less than 552 bytes over IPv4: then as above.
    BeyondPath,
    /// Nobody; what the path is known not to take is refused.
    Refused,
    /// Nobody; what the port does not take is refused, whatever is known of the path.
    Probing,
}

impl UdpOptions {
    /// Whether all errors about datagrams to an address of this version are wanted.
    pub(crate) fn wants_errors(&self, to: IpAddr) -> bool {
        if to.is_ipv4() { self.errors_v4 } else { self.errors_v6 }
    }
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            receive_buffer: 212_992,
            v6_only: false,
            share: false,
            reuse_address: false,
            broadcast: false,
            errors_v4: false,
            errors_v6: false,
            fragmentation: Fragmentation::Allowed,
            ttl: 64,
            // RFC 1112 6.1: unless the application says otherwise.
            multicast_ttl: 1,
            multicast_loop: true,
            dscp: 0,
            ecn: 0,
        }
    }
}

/// A received datagram, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Who sent it.
    pub from: SocketAddr,
    /// Where it was sent to.
    pub to: SocketAddr,
    /// Bytes of data that it has; more than were copied when the target was too small for them.
    pub length: usize,
    /// Time to live or hop limit on arrival.
    pub ttl: u8,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub service: u8,
    /// When the stack took it in: ns.
    pub at: u64,
}

/// Datagrams of one flow and size that were received one behind the other (`UDP_GRO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Of the first; its length is the size of all, the last aside, which may be shorter.
    pub first: Received,
    /// How many.
    pub count: usize,
    /// Bytes of data of all that were copied.
    pub copied: usize,
}

/// A datagram to send.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Where to; `None`: to the peer of a connected socket.
    pub to: Option<SocketAddr>,
    /// The source address; `None`: the socket's own.
    pub from: Option<IpAddr>,
    /// Its data.
    pub data: &'a [u8],
    /// Cuts the data into datagrams of so many bytes (`UDP_SEGMENT`); 0: it is one.
    pub segment_size: u16,
    /// Its ECN bits (RFC 3168), as QUIC sets them; `None`: the socket's.
    pub ecn: Option<u8>,
}

impl<'a> Message<'a> {
    /// For the peer of a connected socket.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { to: None, from: None, data, segment_size: 0, ecn: None }
    }

    /// For anybody.
    #[must_use]
    pub fn to(to: SocketAddr, data: &'a [u8]) -> Self {
        Self { to: Some(to), ..Self::new(data) }
    }
}

/// What the network said about a datagram that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdpTrouble {
    /// Nobody has that port, or it cannot be reached.
    Failed(Failure),
    /// The path takes only packets of so many bytes.
    TooBig(u16),
}

/// Why a call on a UDP socket was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UdpError {
    /// The handle's socket is closed.
    #[error("the handle's socket is closed")]
    Gone,
    /// Another socket has the address and port.
    #[error("another socket has this address and port: choose another, or let both share it")]
    InUse,
    /// No free port.
    #[error("every ephemeral port is in use")]
    NoPort,
    /// The table of flows is full.
    #[error("the table of flows is full; raise its capacity")]
    Full,
    /// No destination: not connected, and none given.
    #[error("the socket is not connected: say where the datagram is to go")]
    NoDestination,
    /// Addresses of different versions, a source that is no single host's, or port 0.
    #[error("this address cannot be an end of a datagram's way")]
    Address,
    /// Broadcast without leave.
    #[error("the socket may not broadcast: set the option first")]
    Broadcast,
    /// More than a datagram holds, or than the path takes unfragmented.
    #[error("a datagram of {length} bytes; {most} can be sent")]
    TooLong {
        /// Bytes of data.
        length: usize,
        /// Bytes of data.
        most: usize,
    },
    /// The way out had no buffer.
    #[error("the way out has no buffer now: try again")]
    NoBuffer,
    /// No group address, or it was not joined.
    #[error("no group of this version, or not joined")]
    Group,
    /// The network said so about what was sent before; told once.
    #[error("the network said {0:?} about what was sent before")]
    Trouble(UdpTrouble),
}

/// A socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) id: UdpId,
    /// Unspecified: any.
    pub(crate) local: SocketAddr,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) options: UdpOptions,
    pub(crate) queue: Queue,
    /// Groups, and sources when only those are wanted.
    pub(crate) groups: Vec<(IpAddr, Option<IpAddr>)>,
    /// Told at the next call.
    pub(crate) trouble: Option<(UdpTrouble, SocketAddr)>,
    /// What was said about what it has sent, if it wants all of that.
    pub(crate) reports: Reports,
    /// Datagrams that found its queue full.
    pub(crate) dropped: u64,
    /// `UdpReadable` is in the queue of events.
    pub(crate) told: bool,
}

impl Socket {
    /// Takes a datagram in if there is room in its queue, and that takes no more than `most` bytes. Gives whether it did; if
    /// not, that is counted.
    pub(crate) fn take(&mut self, head: Received, data: &[u8], most: usize) -> bool {
        let fits = data.len() + COST <= most;
        let taken = fits && self.queue.push(head, data, self.options.receive_buffer);
        self.dropped += u64::from(!taken);
        taken
    }

    /// Keeps what was said about a datagram if there is room, within `most` bytes. Gives whether there was.
    pub(crate) fn report(&mut self, report: UdpReport, most: usize) -> bool {
        let left = (self.options.receive_buffer as usize).saturating_sub(self.queue.used());
        self.reports.push(report, left.min(self.reports.used().saturating_add(most)))
    }

    /// Tells once what the network has said about what a connected socket sent.
    pub(crate) fn tell_trouble(&mut self) -> Result<(), UdpError> {
        let told = self.trouble.take_if(|_| self.remote.is_some());
        told.map_or(Ok(()), |(trouble, _)| Err(UdpError::Trouble(trouble)))
    }

    /// Whether datagrams of this version are its own.
    pub(crate) fn takes_version_of(&self, address: IpAddr) -> bool {
        match (self.local, address) {
            (SocketAddr::V4(_), IpAddr::V4(_)) | (SocketAddr::V6(_), IpAddr::V6(_)) => true,
            (SocketAddr::V6(local), IpAddr::V4(_)) => {
                local.ip().is_unspecified() && !self.options.v6_only
            }
            (SocketAddr::V4(_), IpAddr::V6(_)) => false,
        }
    }

    /// How well it fits a datagram to `to` from `from`: the least number fits best. `None`: not at all.
    pub(crate) fn rank(&self, to: SocketAddr, from: SocketAddr) -> Option<u8> {
        let local = self.local.ip();
        if !self.takes_version_of(to.ip()) || !(local.is_unspecified() || local == to.ip()) {
            return None;
        }
        if self.remote.is_some_and(|remote| remote != from) {
            return None;
        }
        let exact = u8::from(local.is_unspecified());
        let other = u8::from(self.local.is_ipv4() != to.is_ipv4());
        Some(exact * 2 + other - u8::from(self.remote.is_some()) * exact)
    }

    /// Whether a datagram to a group is wanted.
    pub(crate) fn has_joined(&self, group: IpAddr, source: IpAddr) -> bool {
        self.groups
            .iter()
            .any(|(joined, only)| *joined == group && only.is_none_or(|only| only == source))
    }
}
