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
//! | `node`, `edge` | what a node is, and where it sends packets |
//! | `context` | what a node may do with a slot |
//! | `feature` | stages that packets of some interfaces go through |
//! | `engine`, `pending` | nodes joined into a graph, run on a vector |
//! | `exits`, `output` | the ways in which packets leave the graph; transmit buffers |
//! | `handoff` | packets between threads: punt, inject, worker to worker |
//! | `receive`, `spread`, `flow_hash` | receive queues and rings; software RSS |
//! | `worker`, `backoff` | the loop of one core; when it rests |
//! | `function` | packet functions: before the graph, by worker |
//! | `client` | the packet function that serves a client process; receive queues of a client's own |
//! | `stack`, `stack_id` | queues of stacks: packets from their IP header on |
//! | `deliveries` | what nodes have decided about packets to and from stacks |
//! | `kernel` | the packet function between a port and its tap |
//! | `handle` | the control thread's side of a worker |
//! | `doorbell`, `sockets` | waking a thread that sleeps |
//! | `counters` | per-worker counters that other threads may read |
//! | `filter`, `trace`, `capture` | looking at single packets |
#![forbid(unsafe_code)]

mod backoff;
mod capture;
mod classifier;
mod client;
mod commands;
mod context;
mod counters;
mod deliveries;
mod doorbell;
mod edge;
mod engine;
mod exits;
mod feature;
mod filter;
mod flow_hash;
mod function;
mod handle;
mod handoff;
mod id;
mod kernel;
mod node;
mod output;
mod pending;
mod reason;
mod receive;
mod sockets;
mod spread;
mod stack;
mod stack_id;
#[cfg(test)]
mod testbed;
mod trace;
mod vector;
mod worker;

pub use backoff::PollMode;
pub use capture::{CaptureOptions, Direction, Frame, Frames, Tap, Taps, capture};
pub use client::{
    ClientChannel, ClientCounters, ClientPace, ClientPorts, ClientQueues, ClientSetup, ClientWake,
    Errand, Lane, LaneClient,
};
pub use context::Context;
pub use counters::{BURST_SIZES, Counter, Counters, NodeCounters, PortCounters};
pub use doorbell::Doorbell;
pub use edge::{Edge, NoEdge};
pub use engine::{Graph, GraphBuilder, GraphError};
pub use exits::Exits;
pub use feature::{FeatureSet, Onward};
pub use filter::{Filter, Match, MatchError};
pub use function::{Function, Outgoing, Wants};
pub use handle::{Remote, WorkerError, WorkerHandle, WorkerSetup};
pub use handoff::{Entry, Handoff, HandoffReceiver, HandoffSender, Punt, ring};
pub use id::{InterfaceId, PortId};
pub use kernel::{KernelFilter, KernelSide, Served};
pub use node::Node;
pub use output::{Output, Room, TransmitPath};
pub use reason::Reason;
pub use receive::{Inbound, KeptLane, LaneError, RxAssignment};
pub use sockets::Sockets;
pub use spread::Spread;
pub use stack::{StackCounters, StackQueue, StackSetup, Stacks};
pub use stack_id::StackId;
pub use trace::{Fate, Step, TraceOptions, Tracer, trace};
pub use vector::{CAPACITY, IcmpError, NodeId, Picked, Slot, Vector, in_place};
pub use worker::{Stopped, WorkerState};
