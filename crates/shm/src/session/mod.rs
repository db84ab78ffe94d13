//! How a process that serves and the daemon meet: the sessions socket. Like the attach socket, it carries one JSON message
//! in each packet, and each request has one answer; unlike there, descriptors travel both ways, because a socket that the
//! process has bound is its permission to serve ([`Request::Listen`]).
//!
//! A process gets a stack's packet queues: a pair of rings to and from each worker. Packets in them begin with their IP
//! header.

mod bound;
mod judge;
mod link;
mod message;
mod moving;

pub use bound::{Bound, BoundError, examine, namespace};
pub use judge::{Brought, Judge, ORDERS, OTHER_ORDERS, judge};
pub use link::{Introduce, Introduced, LINK_LONGEST, LINK_PACKET, LinkPlace, Neighbour};
pub use message::{
    ClaimsPlace, ConnectionsPlace, Hello, Lease, Listen, Listening, OpenShared, OpenStack,
    PROTOCOL, Placement, PortRange, Reply, Request, Route, Routed, SharedOpened, StackOpened,
    TransportProtocol, VERSION, Welcome,
};
pub use moving::{
    Abandon, CarrierId, Deposit, Event, Hand, MOST_WAITS, Offered, ParcelsError, WaitOut, Withdraw,
    Withdrawn, pack, unpack,
};

/// A flag in [`Meta::flags`](crate::Meta) of a packet to a stack: its TCP or UDP checksum was found right.
pub const GOOD_CHECKSUM: u8 = 16;
/// A flag in [`Meta::flags`](crate::Meta) of a packet over a link: no packet, but the headers of one that came the other way and
/// is for nobody here. What is for these ends goes by the daemon from then on.
pub const TURNED_AWAY: u8 = 32;
