//! A simulated network for transport stacks, for tests and benches: hosts on two sides of one path, whose
//! links lose, delay, reorder, duplicate, corrupt, queue, mark and cut off as they are told.
//!
//! Time is simulated and everything comes from one seed, so a run can be replayed packet for packet, and
//! written as a pcapng file.
//!
//! | module | job |
//! | --- | --- |
//! | `random` | numbers from a seed |
//! | `link` | what one direction of the path does to a packet |
//! | `router` | ICMP errors about packets that do not fit |
//! | `network` | hosts, links and time |
//! | `departed` | connections on the way from one stack of a host to the next |
//! | `steering` | which stack of a host gets a packet, where it has two |
//! | `segment` | a port that cuts large segments |
//! | `buffers` | FIFOs that are counted |
//! | `talk` | one end of a conversation, which checks every byte |
//! | `capture` | pcapng |
//! | `flows` | throughput of flows that share a path |
#![forbid(unsafe_code)]

mod buffers;
mod capture;
mod departed;
pub mod flows;
mod link;
mod network;
mod random;
mod router;
mod segment;
mod steering;
mod talk;
mod talks;

pub use buffers::{CountedRings, HostStack};
pub use link::LinkOptions;
pub use network::{Application, Network, Passage, Side};
pub use random::Random;
pub use talk::{Plan, Role, Talk, Trouble};
pub use talks::Talks;
