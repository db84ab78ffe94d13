//! TCP and UDP as state machines without I/O, threads or clock: packets and time go in, packets
//! and events come out. `docs/transport.md` is the contract.
#![forbid(unsafe_code)]

#[macro_use]
pub mod carried;

mod calls;
pub mod congestion;
mod emit;
mod ends;
pub mod error;
pub mod event;
pub mod failure;
mod fast_open;
pub mod fifo;
pub mod handle;
mod isn;
mod limiter;
mod listener;
pub mod moving;
pub mod options;
pub mod packet;
mod paths;
mod ports;
pub mod reason;
mod segment;
pub mod sequence;
mod shared;
mod siphash;
mod stack;
mod syn_cookie;
mod tcp;
mod time_wait;
pub mod timer;
mod transport;
pub mod udp;

pub use calls::{
    Backlog, CongestionState, DataCounts, Glance, Info, Readiness, UdpGlance, UrgentMark, Write,
};
pub use congestion::Algorithm;
pub use ends::Ends;
pub use error::{BindError, ConnectError, SocketError};
pub use event::{End, Event};
pub use failure::Failure;
pub use fast_open::FastOpenKeys;
pub use fifo::{Buffers, ByteFifo, Grant, Opening, Pair, Ring, Rings};
pub use handle::{ConnectionId, ListenerId, UdpId};
pub use listener::{Binding, Spread};
pub use moving::{Contents, ExportError, Exported, ImportError, Summary, TimeWait};
pub use options::{Config, Ecn, Keepalive, Options, PathProbing};
pub use packet::{Departure, Offloads, Packet, PacketList, Sink};
pub use reason::{Counters, Reason};
pub use sequence::Seq;
pub use stack::{Path, Stack};
pub use tcp::state::State;
pub use transport::Transport;
pub use udp::{
    Fragmentation, Message, Received, Run, UdpError, UdpMessage, UdpOptions, UdpReport, UdpTrouble,
};

#[cfg(test)]
mod tests;
