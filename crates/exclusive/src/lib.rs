//! Exclusive mode: one process opens the devices itself, without the daemon, one thread for each queue.
//!
//! [`Devices::open`] opens devices by name and device string and gives [`Queue`]s, one for each thread. A queue has
//! a receive queue of its own from the devices ([`Dispatch`]) and a transmit queue of its own to every port, so
//! threads share nothing. Its verbs are those of a client's `Channel` (crate `client`, the shared mode), so that a
//! packet function moves from one mode to the other. `docs/build.md` has the table.
//!
//! ```no_run
//! use millrace_exclusive::{Devices, Options};
//!
//! // Everything that comes in by one port goes out by the other.
//! let ports = [("left", "afpacket:eth1"), ("right", "afpacket:eth2")];
//! let mut devices = Devices::open(&ports, 1, &Options::default())?;
//! let mut packets = Vec::new();
//! let Some(queue) = devices.queues.first_mut() else { return Ok(()) };
//! loop {
//!     queue.receive(&mut packets, 64);
//!     for packet in &mut packets {
//!         packet.set_port(1 - packet.port());
//!     }
//!     queue.send_burst(&mut packets);
//!     queue.release_burst(&mut packets); // What found no room is dropped.
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), millrace_exclusive::Error>(())
//! ```
//!
//! There is one DPDK per process: the first `open` starts it for the devices that it names, with memory for them.
//! Later ones share that memory; buffers of devices that were closed are used again.
#![forbid(unsafe_code)]

mod devices;
mod error;
mod options;
mod packet;
mod pools;
mod queue;
mod sending;
mod sizes;
mod transmit;

pub use devices::{Devices, Port};
pub use dpdk::{Adjustment, Health, Memory, PortStats, Registration, ThreadError, register_thread};
pub use error::{Error, SendError, Unsent};
pub use options::{Dispatch, Options};
pub use packet::Packet;
pub use queue::{Counters, Queue};
