//! The same in software: packets from one core to another, as a descriptor ring whose index is written back
//! and as packets with a mark ahead. What a transfer is on PCIe, a cache line is between two cores.

mod descriptors;
mod lines;
mod marks;
mod measure;
mod queue;
mod words;

pub(super) use lines::Lines;
pub(super) use measure::{Measured, measure};

use words::Packet;

/// Slots of a ring.
const SLOTS: usize = 1024;
/// Bytes of a packet that a slot holds.
const CAPACITY: usize = 2048;
/// Bytes of the check sequence, which the port keeps to itself.
const CHECK: u64 = 4;

/// How packets lie between two cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Descriptors of 16 B, and indexes that are written after so many packets.
    Descriptors { batch: usize },
    /// A mark of 4 B ahead of each packet, on the same words and copies.
    Marks,
    /// The `shm` crate's packet queue: the same layout with its own copies, and asking ahead.
    Queue,
}

/// What is measured, the first being what others are compared with.
const LAYOUTS: [Layout; 4] = [
    Layout::Descriptors { batch: 1 },
    Layout::Descriptors { batch: 32 },
    Layout::Marks,
    Layout::Queue,
];

impl Layout {
    pub(super) fn name(self) -> String {
        match self {
            Self::Descriptors { batch: 1 } => "descriptors, index after each packet".into(),
            Self::Descriptors { batch } => format!("descriptors, index after {batch}"),
            Self::Marks => "mark ahead of the packet".into(),
            Self::Queue => "mark, packet queue of shm".into(),
        }
    }
}

/// The core that fills.
trait Fill: Send {
    /// Whether there was room.
    fn push(&mut self, packet: &Packet) -> bool;
    /// Shows what is held back.
    fn flush(&mut self);
}

/// The core that empties.
trait Empty: Send {
    /// Copies the next packet out, if there is one: gives its first word.
    fn take(&mut self, into: &mut Packet) -> Option<u32>;
}
