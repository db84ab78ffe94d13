//! Sockets: the connection to the daemon's sessions socket, the packet queues of a stack of the process's own, and what it
//! shares with a stack worker of the daemon.

mod link;
mod links;
mod moving;
mod queues;
mod shared;

pub use link::{
    DEFAULT_SESSIONS, LINKS_VARIABLE, Link, PLACEMENT_VARIABLE, SESSIONS_VARIABLE, STACK,
};
pub use links::{Exits, Links, Served, Turned, Ways};
pub use moving::{Withdrawal, carrier_id, open_carrier};
pub use queues::{Inbound, Outbound, Queues};
pub use shared::{Knocker, SHARED, Shared};
