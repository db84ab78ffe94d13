//! Which stack a packet to this router itself belongs to, and from where a stack may send.
//!
//! One thread owns [`Steering`]; workers look at it through a [`SteeringReader`] and never wait. A port is leased to
//! one stack, for what it opens itself, or served by a listener: a group of members that share new flows. Each listener
//! has 256 buckets, which flows fall into by their hash; when members come and go, only the buckets change that must.
//! A bucket remembers its earlier members. A packet that opens no flow belongs to the one among them that claims it
//! ([`shm::claims`]), else to the bucket's member of now: so flows stay where they are, and none needs an entry here. Only a
//! flow whose connection has moved to a stack that neither leases nor serves its port has one ([`Steering::redirect`]), or whose
//! TIME-WAIT such a stack has ([`Steering::wait_out`]).

mod bind;
mod buckets;
mod error;
mod flow;
mod listener;
mod moving;
mod packet;
mod reader;
mod redirects;
mod served;
mod table;
mod time_wait;
mod vacant;

pub use bind::{Bind, ListenerId};
pub use error::SteeringError;
pub use flow::Flow;
pub use listener::{ListenerView, MemberView};
pub use reader::SteeringReader;
pub use served::ServedFrames;
pub use table::{Claims, Steering, SteeringLimits};

#[cfg(test)]
mod tests;
