//! What the stack tells the application.

use crate::failure::Failure;
use crate::handle::{ConnectionId, ListenerId, UdpId};

/// Something happened to a socket. `Readable` and `Writable` are told once until they are taken
/// out of the queue, however often they become true again meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A connection waits to be accepted.
    Incoming(ListenerId),
    /// A connection that was opened from here is established.
    Connected(ConnectionId),
    /// There is data to read, or its end.
    Readable(ConnectionId),
    /// There is room to write again, after a write was cut short.
    Writable(ConnectionId),
    /// The peer has sent all that it will (FIN): after what is readable comes the end.
    PeerClosed(ConnectionId),
    /// Urgent data was announced (RFC 9293 3.8.5): see [`Stack::urgent`](crate::Stack::urgent).
    Urgent(ConnectionId),
    /// The connection ended against somebody's will. Data received before can be read until
    /// the handle is closed.
    Failed(ConnectionId, Failure),
    /// All is sent and acknowledged, or given up; the handle means nothing any more. Comes once
    /// for every connection that the application knew, after it called close or abort. A `close` that
    /// lingers waits for it.
    Gone(ConnectionId, End),
    /// A datagram waits.
    UdpReadable(UdpId),
    /// An ICMP error about what the socket sent; see the socket for details.
    UdpError(UdpId),
}

/// How a connection ended for an application that had closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The peer has acknowledged all that was written, and the FIN behind it.
    pub acknowledged: bool,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
}
