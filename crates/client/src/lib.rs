//! `libmillrace`: a packet function in a process of its own, fed by the Millrace daemon over shared memory.
//!
//! [`Client::attach`] meets the daemon, [`Client::open`] asks for packets and gives [`Channel`]s, one for each
//! thread. A channel receives bursts, lets packets be looked at and changed where they lie, and sends them to a
//! port or back into the daemon's graph. `docs/build.md` shows the way from nothing to a running function.
//!
//! ```no_run
//! use millrace::{Client, Options};
//!
//! // Sends every UDP packet back to where it came from, MAC addresses swapped.
//! let mut client = Client::attach(None, "reflector")?;
//! let mut options = Options::default();
//! options.filter.protocol = Some("udp".into());
//! let mut queues = client.open(&options)?;
//! let mut packets = Vec::new();
//! let Some(channel) = queues.channels.first_mut() else { return Ok(()) };
//! loop {
//!     channel.wait(None)?;
//!     channel.receive(&mut packets, 64)?;
//!     for packet in &mut packets {
//!         if let Some((addresses, _)) = channel.bytes_mut(packet).split_at_mut_checked(12) {
//!             addresses.rotate_left(6);
//!         }
//!     }
//!     channel.send_burst(&mut packets)?;
//!     channel.release_burst(&mut packets); // What found no room is dropped.
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), millrace::Error>(())
//! ```
//!
//! Safety: the library trusts the daemon, which owns the machine's network anyway, to keep to the protocol of the
//! packet queues; sizes, offsets and counts that it names are checked all the same before anything is mapped. The
//! daemon trusts nothing that a client writes.

mod c;
mod channel;
mod client;
mod connection;
mod error;
mod events;
mod lease;
mod opened;
mod options;
mod packet;
mod pair;
mod sending;
pub mod session;
mod waiting;

pub use channel::{Channel, Counters};
pub use client::{Client, DEFAULT_SOCKET, SOCKET_VARIABLE};
pub use error::{Error, Unsent};
pub use opened::Queues;
pub use options::Options;
pub use packet::Packet;
pub use shm::attach::{
    FilterText as Filter, PROTOCOL, PortInfo as Port, PortQueue, Refusal, RefusalKind, Spread,
    Take, VERSION,
};
