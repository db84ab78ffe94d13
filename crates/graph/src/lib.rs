//! The vector engine: vectors, nodes, the worker loop, counters, tracing.
//!
//! A worker polls its receive queues, puts what is there into a [`Vector`], and runs the [`Graph`]
//! on it: each [`Node`] takes a list of slots, decides, and sends every slot to one of its typed
//! next nodes, to a port's transmit buffer, to the control thread, or to a counted drop.
//!
//! | file | job |
//! | --- | --- |
//! | `vector` | the packets in flight as parallel arrays |
//! | `reason` | the one vocabulary of drops |
//! | `node` | what a node is; typed edges |
//! | `context` | what a node may do with a slot |
//! | `engine` | nodes joined into a graph, run on a vector |
//! | `exits` | the ways in which packets leave the graph |
//! | `handoff` | packets between threads: punt, inject, worker to worker |
//! | `output` | per-(core, port) transmit buffers |
//! | `counters` | per-worker counters that other threads may read |
#![forbid(unsafe_code)]

mod context;
mod counters;
mod engine;
mod exits;
mod handoff;
mod node;
mod output;
mod reason;
mod vector;

pub use context::Context;
pub use counters::{Counter, Counters, NodeCounters, PortCounters};
pub use engine::{Graph, GraphBuilder, GraphError, NodeId};
pub use exits::Exits;
pub use handoff::{Handoff, HandoffReceiver, HandoffSender, ring};
pub use node::{Edge, NoEdge, Node};
pub use output::{Output, TransmitPath};
pub use reason::Reason;
pub use vector::{CAPACITY, InterfaceId, PortId, Slot, Vector};
