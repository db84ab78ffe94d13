//! What calls that move data say about themselves, and what they learn.

use std::net::{IpAddr, SocketAddr};

use crate::errno::Errno;

/// How to receive: the flags of `recvmsg` that concern the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incoming {
    /// `MSG_PEEK`: what is read stays.
    pub peek: bool,
    /// `MSG_TRUNC`: of a stream, bytes are taken without being copied.
    pub discard: bool,
    /// `MSG_OOB`.
    pub urgent: bool,
    /// `MSG_ERRQUEUE`.
    pub errors: bool,
    /// How many readable bytes to pass over first; for a `MSG_PEEK` that goes on (`SO_PEEK_OFF`, several pieces).
    pub offset: usize,
}

/// What was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Bytes copied; of a stream with [`Incoming::discard`], bytes taken. 0 from a stream: its end.
    pub bytes: usize,
    /// Of a datagram: what else there is to say.
    pub shape: Option<Shape>,
}

/// A datagram without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes that it has; more than were copied: the rest is lost (`MSG_TRUNC`).
    pub length: usize,
    /// Who sent it; mapped into IPv6 for a socket of that domain.
    pub from: SocketAddr,
    /// Where it was sent to (`IP_PKTINFO`, `IPV6_PKTINFO`).
    pub to: SocketAddr,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// DSCP and ECN.
    pub service: u8,
    /// `UDP_GRO`: the bytes are those of several datagrams alike, each of so many, the last of as many or fewer; 0: of one.
    pub segment_size: u16,
    /// When it came: ns, by the clock of [`Sessions::input`](crate::Sessions::input).
    pub at: u64,
    /// Of what [`Incoming::errors`] asks for: what was said about a datagram that went to `from`. The bytes are what is quoted
    /// of it; the rest is of the ICMP message.
    pub report: Option<Report>,
}

/// What was said about a datagram (`struct sock_extended_err`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// `ee_errno`.
    pub errno: Errno,
    /// Whose message it was (`SO_EE_OFFENDER`), with `ee_type` and `ee_code`; `None`: nobody's, it was found out here.
    pub message: Option<(SocketAddr, u8, u8)>,
    /// `ee_info`.
    pub info: u32,
}

/// What is sent and how: the address and flags of `sendmsg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// Where to; ignored on a stream, except with [`fast_open`](Self::fast_open).
    pub to: Option<SocketAddr>,
    /// The source address towards `to` as routes have it, or as `IP_PKTINFO` demands; needed for a datagram
    /// whose socket is bound to any address. `None`: the socket's own.
    pub source: Option<IpAddr>,
    /// `MSG_MORE`.
    pub more: bool,
    /// `MSG_EOR`.
    pub end_of_record: bool,
    /// `MSG_OOB`.
    pub urgent: bool,
    /// `MSG_FASTOPEN`: opens the connection too.
    pub fast_open: bool,
    /// `UDP_SEGMENT`: cuts the data into datagrams of so many bytes; 0: as the socket's option says.
    pub segment_size: u16,
    /// `IP_TOS` or `IPV6_TCLASS` of this datagram alone.
    pub service: Option<u8>,
    /// `IP_TTL` or `IPV6_HOPLIMIT` of this datagram alone.
    pub ttl: Option<u8>,
}

/// A datagram that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Corked {
    pub(crate) bytes: Vec<u8>,
    /// Where the first piece was to go, and how: what later ones say of it does not count.
    pub(crate) to: Option<SocketAddr>,
    pub(crate) outgoing: Outgoing,
}
