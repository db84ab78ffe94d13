//! The daemon among the system's services.
//!
//! | file | job |
//! | --- | --- |
//! | `socket` | a socket that one daemon holds |
//! | `sockets` | those that a daemon has |
//! | `notify`, `outbox` | what the service manager is told, and what it has no room for yet |
//! | `restart` | the program run anew in the same process |
//! | `takeover` | the program run anew in another process, which takes over |
//! | `progress` | whether every task still makes progress, for the watchdog |
//! | `threads` | whether threads still come round that come and go |

pub(crate) mod notify;
mod outbox;
mod progress;
mod restart;
mod socket;
mod sockets;
mod takeover;
mod threads;

pub(crate) use progress::{Answering, Beat, Progress};
pub(crate) use restart::{Again, Lineage, program};
pub(crate) use socket::{Access, Carries, Claim, SocketError, group_id};
pub(crate) use sockets::{Places, Sockets};
pub(crate) use takeover::{Predecessor, Successor, TakeoverError};
pub(crate) use threads::{Pulse, Threads};
