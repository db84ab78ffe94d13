//! What is offered: frames of which sizes, versions and flows, and when.

pub use flows::{Flows, Order};
pub use schedule::{Departure, Schedule};
pub use sizes::{Mix, SizeError, Sizes};
pub use versions::versions;

mod flows;
mod schedule;
mod sizes;
mod versions;

/// What Ethernet adds to each frame on the wire: preamble, start of frame and gap between frames (IEEE 802.3): bytes.
pub const GAP: u16 = 20;

/// Bits that a frame takes on the wire; `size`: bytes, frame check sequence included.
#[must_use]
pub const fn wire_bits(size: u16) -> u64 {
    (size as u64 + GAP as u64) * 8
}
