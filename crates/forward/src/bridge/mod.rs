//! What a bridge has learned: written by the control thread, read and refreshed by the workers.
//!
//! A worker that sees a source address that is not known behind the interface it came in by sends a
//! [`Learn`] over a ring; until the control thread has entered it, frames to it are flooded. A
//! known address is refreshed by the worker itself, with one store per address and second.
//!
//! What is learned names interfaces, not places in a list of members: it stays true when other members
//! come and go. An interface that is no member any more is as good as none.

mod table;

pub use table::{MacEntry, MacReader, MacTable};

use graph::InterfaceId;
use wire::MacAddr;

/// An address within a bridge's VLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacKey {
    /// Place in `Interfaces::bridges`.
    pub bridge: u16,
    /// VLAN id; 0 without VLAN filtering.
    pub vlan: u16,
    /// The address.
    pub mac: MacAddr,
}

impl MacKey {
    pub(crate) fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&self.mac.octets());
        bytes[6..8].copy_from_slice(&self.bridge.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.vlan.to_be_bytes());
        bytes
    }
}

/// An address was seen behind an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learn {
    /// The address.
    pub key: MacKey,
    /// The interface, a member of the bridge.
    pub interface: InterfaceId,
}

/// Worker's end of the ring of what it has seen.
pub type LearnSender = rtrb::Producer<Learn>;
/// Control thread's end.
pub type LearnReceiver = rtrb::Consumer<Learn>;

/// A ring of `capacity` learned addresses. A full ring loses news that the next frame brings again.
#[must_use]
pub fn learn_ring(capacity: usize) -> (LearnSender, LearnReceiver) {
    rtrb::RingBuffer::new(capacity)
}
