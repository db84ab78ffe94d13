//! The nodes of the forwarder and the state machines of its slow path.
//!
//! | folder | job |
//! | --- | --- |
//! | `state` | what all nodes read: interfaces, next hops, route tables |
//! | `nodes` | the stages that packets go through on a worker |
//! | `flow` | exact-match flows and their rewrites |
//! | `bridge` | what bridges have learned |
//! | `rib` | routes and next hops as the control thread keeps them, written into `state` |
//! | `reassembly` | fragments to the router itself, put together again |
//! | `steering` | which stack a packet to the router itself belongs to, and what a stack may send |
//! | `neighbor` | ARP and neighbour discovery: the state machine of RFC 4861, for both |
#![forbid(unsafe_code)]

mod cause;
mod indices;
mod quotation;

pub mod bridge;
pub mod flow;
pub mod neighbor;
pub mod nodes;
mod reassembly;
pub mod rib;
pub mod state;
pub mod steering;

pub use cause::{Cause, CauseError};
