//! How a client and the daemon meet: a Unix socket of type `SOCK_SEQPACKET`, one JSON message in each
//! packet, file descriptors beside it (`SCM_RIGHTS`).
//!
//! The client says [`Request::Hello`] first, with its protocol's version; the daemon answers with
//! [`Reply::Welcome`] or [`Reply::Refused`]. Then each request has one answer. The connection's end is the end
//! of all that the client had.

mod channel;
mod look;
mod message;
mod reference;

pub(crate) use channel::files_of;
pub use channel::{
    Channel, ChannelError, FILES, MESSAGE, PeerCredentials, PeerProcess, Received, parse,
};
pub use look::{Waiting, look, peek, skip, skip_bare};
pub use message::{
    BufferPlace, ChannelPlace, Direction, FilterText, Hello, Open, Opened, PROTOCOL, PortInfo,
    PortQueue, Refusal, RefusalKind, Reply, Request, RingPlace, Spread, Take, VERSION, Welcome,
    flag,
};
pub use reference::{REFERENCE, RETURNS, Reference, places};
