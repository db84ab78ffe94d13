//! Sessions of one process on a stack in another: a stack worker of the daemon runs it ([`Served`]), the process calls it
//! ([`Remote`]), with the same calls as [`Sessions`](crate::Sessions).
//!
//! Data of connections goes through two byte FIFOs in memory that both have, without asking anybody; so do datagrams, in frames,
//! unless the stack may have something to say about them. Everything else is a call:
//! a record in the ring of commands, answered by one in the ring of answers with the number of the question, so that several
//! threads may wait for answers at the same time. What happens to a session is told in the ring
//! of events, once until the process looks. So a connection on which something unusual is to be said (an error) is asked about,
//! and the stack's answer is the one that it would have given its own process.
//!
//! When the process goes, its worker gives away what it has closed and what is not over ([`Served::leave`]).
//!
//! The worker believes nothing that the process writes: an index or a length is loaded once, checked, then used. A process that
//! does not keep to the protocol loses its sessions ([`Served::is_broken`]), and harms nobody else.

mod asking;
mod call;
mod calls;
mod closing;
mod connecting;
mod data;
mod datagrams;
mod flow;
mod frame;
mod leaving;
mod own;
mod parcels;
mod perform;
mod plan;
mod pump;
mod remote;
mod served;
mod split;

pub use asking::{Answer, Question, Wire};
pub use leaving::Orphans;
pub use plan::{Plan, ProcessEnd, WorkerEnd};
pub use remote::Remote;
pub use served::Served;

/// Among the bits of a session's status: its data goes through the FIFOs. Below are those of its readiness.
const FLOWS: u32 = 1 << 31;
/// The same: all that came is in the FIFO, and nothing more will.
const ENDED: u32 = 1 << 30;
/// The same: nothing is sent, which was shut down before it was connected.
const MUTE: u32 = 1 << 29;
/// Bytes that are copied at once.
const PIECE: usize = 16 << 10;

#[cfg(test)]
mod tests;
