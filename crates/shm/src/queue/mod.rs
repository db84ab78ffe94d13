//! The packet queue: self-described buffers in a ring, from one producer to one consumer.
//!
//! A slot is four bytes of mark and the packet right behind them. The mark says all there is to say:
//! whose turn the slot is, how long the packet is, which port it belongs to. The consumer looks only at
//! the next slot's mark; the producer too; no index is shared. A frame of minimum size (60 bytes, the
//! check sequence is the port's) and its mark are one cache line, which crosses between two cores twice:
//! filled, and returned.

mod consumer;
mod layout;
mod mark;
#[cfg(loom)]
mod modelled;
mod producer;
#[cfg(not(loom))]
mod slots;

#[cfg(not(loom))]
pub use consumer::Trusting;
pub use consumer::{Consumer, Taken};
pub use layout::{Layout, LayoutError};
pub use mark::Meta;
#[cfg(not(loom))]
pub use producer::Filling;
pub use producer::{Producer, PushError};

#[cfg(loom)]
use modelled::Slots;
#[cfg(not(loom))]
use slots::Slots;

#[cfg(test)]
#[cfg(loom)]
mod model_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
