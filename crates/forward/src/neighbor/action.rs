//! What the caller is to do, and what a packet must offer.

use std::net::IpAddr;

use graph::{Handoff, InterfaceId, Reason};
use wire::MacAddr;

/// A packet that a worker handed up.
pub trait Packet {
    /// Its bytes from the network header on.
    fn network(&self) -> &[u8];

    /// Interface that it came in by.
    fn interface(&self) -> InterfaceId;

    /// Next hop that the look-up chose.
    fn next_hop(&self) -> u32;
}

impl Packet for Handoff {
    fn network(&self) -> &[u8] {
        self.buffer.data().get(usize::from(self.network)..).unwrap_or(&[])
    }

    fn interface(&self) -> InterfaceId {
        self.interface
    }

    fn next_hop(&self) -> u32 {
        self.next_hop
    }
}

/// What the caller is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Action<P> {
    /// Send a whole untagged Ethernet frame out of an interface (node `interface-output`).
    Send {
        /// The interface.
        interface: InterfaceId,
        /// The frame, not padded.
        frame: Vec<u8>,
    },
    /// Look the packet up again: its neighbour answered, or is known not to (then the look-up tells
    /// the sender). It enters at the node [`RELEASED`](crate::nodes::RELEASED).
    Release {
        /// The packet.
        packet: P,
    },
    /// Drop the packet and count why.
    Drop {
        /// The packet.
        packet: P,
        /// Why.
        reason: Reason,
    },
    /// Tell people that another station uses one of our addresses.
    Conflict {
        /// Interface where it was heard.
        interface: InterfaceId,
        /// The address.
        address: IpAddr,
        /// The other station.
        mac: MacAddr,
    },
}
