//! Sockets on a stack of the process's own: the connection to the daemon's sessions socket, and the packet queues of the stack.

mod link;
mod links;
mod moving;
mod queues;

pub use link::{DEFAULT_SESSIONS, LINKS_VARIABLE, Link, SESSIONS_VARIABLE};
pub use links::{Exits, Links, Served, Turned, Ways};
pub use moving::{Withdrawal, carrier_id, open_carrier};
pub use queues::{Inbound, Outbound, Queues};
