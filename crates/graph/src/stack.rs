//! Packets to and from stacks: layer 4 in processes of others, on queues that carry IP packets.
//!
//! Nodes decide which packets a stack gets ([`Context::deliver`](crate::Context::deliver)), and what it sends enters the
//! graph at a node that judges each packet, after it was copied: what is judged is what leaves. Nothing that a stack does
//! reaches further than its own queues, as with clients' ([`ClientQueues`](crate::ClientQueues)), whose rings, pace and share these are.
//! Users take turns, whose stacks send what they must not is looked at more seldom, and who sends to another stack more than that
//! reads waits for a moment ([`backpressure`]).

mod backpressure;
mod bounds;
mod counters;
mod queue;
mod queues;
mod users;

pub use counters::StackCounters;
pub use queue::{StackQueue, StackSetup};
pub use queues::Stacks;

#[cfg(test)]
mod tests;
