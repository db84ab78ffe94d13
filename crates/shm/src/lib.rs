//! Shared memory between processes: segments, packet queues of self-described buffers, byte FIFOs, doorbells, claims of flows;
//! and between the threads of one process the [token queue](tokens).
//!
//! Nothing that stands in a segment is trusted by the side that owns it: every word is loaded once,
//! checked, then used. `docs/build.md` has the layout and how it was chosen.

#[cfg(not(loom))]
mod abandon;
#[cfg(not(loom))]
pub mod attach;
#[cfg(not(loom))]
pub mod bell;
#[cfg(not(loom))]
pub mod book;
#[cfg(not(loom))]
mod bytes;
pub mod claims;
pub mod connections;
#[cfg(not(loom))]
mod copy;
mod courtesy;
#[cfg(not(loom))]
pub mod doorbell;
pub mod fifo;
#[cfg(not(loom))]
mod lent;
#[cfg(not(loom))]
mod process;
pub mod queue;
#[cfg(not(loom))]
pub mod records;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod session;
pub mod sleep;
mod spin;
mod sync;
pub mod tokens;

#[cfg(not(loom))]
pub use abandon::Abandoned;
#[cfg(not(loom))]
pub use copy::read_shared;
pub use courtesy::Courtesy;
#[cfg(not(loom))]
pub use doorbell::Doorbell;
#[cfg(not(loom))]
pub use lent::{Buffers, Lent};
#[cfg(not(loom))]
pub use process::Process;
pub use queue::{Consumer, Layout, LayoutError, Meta, Producer, PushError, Taken};
#[cfg(not(loom))]
pub use queue::{Filling, Trusting};
#[cfg(not(loom))]
pub use segment::{Growing, Grown, Region, Segment, SegmentError};
pub use sleep::SleepWord;
pub use spin::Spin;
