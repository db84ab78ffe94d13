//! TCP and UDP as state machines without I/O, threads or clock: packets and time go in, packets
//! and events come out. `docs/transport.md` is the contract.
#![forbid(unsafe_code)]

pub mod congestion;
pub mod error;
pub mod event;
pub mod fifo;
pub mod handle;
pub mod options;
pub mod packet;
pub mod reason;
pub mod sequence;
pub mod timer;

pub use congestion::Algorithm;
pub use error::{ConnectError, ListenError, SocketError};
pub use event::{Event, Failure};
pub use fifo::{Buffers, ByteFifo, Pair, Ring, Rings};
pub use handle::{ConnectionId, ListenerId, UdpId};
pub use options::{Config, Ecn, Keepalive, Options};
pub use packet::{Departure, Offloads, Packet, PacketList, Sink};
pub use reason::{Counters, Reason};
pub use sequence::Seq;
