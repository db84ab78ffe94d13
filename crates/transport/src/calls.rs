//! Socket calls. They change state only; [`Stack::flush`] sends what follows from them.

mod bind;
mod close;
mod connect;
mod data;
mod fast_open;
mod glance;
mod info;
mod listen;
mod options;
mod udp;
mod urgent;

pub use data::{Readiness, Write};
pub use glance::{Glance, UdpGlance};
pub use info::{CongestionState, DataCounts, Info};
pub use listen::Backlog;
pub use urgent::UrgentMark;
