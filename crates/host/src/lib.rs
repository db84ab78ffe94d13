//! Sockets as Linux has them, over the stack of crate `transport`: non-blocking calls with Linux's
//! results, error numbers, options and readiness bits. Packets and time go in, packets come out; there is
//! no I/O, no clock, no file descriptor and no system call. `docs/sockets.md` is the contract.
#![forbid(unsafe_code)]

mod address;
mod bind;
mod claims;
mod close;
mod connect;
mod cork;
mod data;
mod datagram;
mod errno;
mod errors;
mod fifo;
mod fragments;
mod info;
mod journal;
mod listen;
mod mask;
mod message;
mod moving;
mod names;
mod options;
mod outbox;
mod ports;
mod readiness;
mod round;
mod session;
mod sessions;
mod settings;
mod shared;
mod shown;
mod stream;
mod template;

pub use close::Lingering;
pub use errno::Errno;
pub use fifo::held_bytes;
pub use journal::Journal;
pub use listen::SOMAXCONN;
pub use mask::Mask;
pub use message::{Incoming, Outgoing, Received, Report, Shape};
pub use moving::{Parcel, Parts};
pub use options::{Setting, Stamps, Value, Wanted};
pub use readiness::Ready;
pub use session::{Domain, How, Id, Kind};
pub use sessions::Sessions;
pub use shared::{Answer, Orphans, Plan, ProcessEnd, Question, Remote, Served, Wire, WorkerEnd};
pub use template::Template;
