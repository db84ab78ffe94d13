//! The table of a stack's connections and UDP sockets, in its segment: what `millrace show sessions` shows, and which connections
//! the daemon resets when the process dies without a word.
//!
//! One fixed record for each connection, and a shorter one for each UDP socket, which has no peer that waits for a reset. The
//! stack writes a record when a connection comes or goes, and brings it up to date a few times a second; the daemon reads it
//! whenever it likes. Neither waits for the other: a record has a mark by which a reader knows that it has seen a whole one. The
//! first bytes hold what is about all of them: how far the table is used, what the stack has counted, and whether the daemon
//! wants to look.
//!
//! The reader trusts nothing: every word is loaded once and [checked](Record) where it must mean something. A stack
//! that writes nonsense there shows nonsense about itself.

mod mark;
#[cfg(not(loom))]
mod place;
#[cfg(not(loom))]
mod reader;
#[cfg(not(loom))]
mod record;
#[cfg(not(loom))]
mod socket;
#[cfg(not(loom))]
mod writer;

#[cfg(not(loom))]
pub use place::{ConnectionsError, Count, bytes, sockets};
#[cfg(not(loom))]
pub use reader::ConnectionsReader;
#[cfg(not(loom))]
pub use record::{CongestionControl, Record, Sequences, State};
#[cfg(not(loom))]
pub use socket::SocketRecord;
#[cfg(not(loom))]
pub use writer::ConnectionsWriter;

#[cfg(test)]
#[cfg(loom)]
mod model_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
