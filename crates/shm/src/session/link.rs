//! Links: packet queues between two processes, over which their stacks exchange packets without the daemon, which has
//! introduced them to each other.
//!
//! A link is a segment with two rings, one behind the other: the first carries packets from whoever asked for the link, the
//! second those to it. Each end also has one of a pair of connected sockets, on which it rings the other ([`Doorbell`](crate::Doorbell))
//! and which hangs up when the other is gone. Neither end believes the other anything.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::queue::{Layout, LayoutError};

/// Bytes of an IP packet with one segment: it lies in one slot.
pub const LINK_PACKET: u16 = 1500;
/// Longest packet: bytes. Several segments of a connection that follow each other travel as one, in as many slots as it takes.
pub const LINK_LONGEST: u16 = u16::MAX;
/// Slots of each ring. Who sends more waits: nothing is lost.
const SLOTS: u32 = 512;
/// Where regions of a segment begin.
const PAGE: usize = 4096;

/// Asks for links to the stacks that serve what it is about to connect to. Each answer makes one link at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Introduce {
    /// The stack that connects.
    pub stack: u32,
    /// What to.
    pub destination: SocketAddr,
}

/// The stacks that take new connections there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Introduced {
    /// Where they listen: an unspecified address stands for all of the router's.
    pub address: SocketAddr,
    /// IPv6 only, if the address is the unspecified one of IPv6.
    pub only_v6: bool,
    /// Those that take new connections, in any order.
    pub neighbours: Vec<Neighbour>,
    /// The link that was made for this answer.
    pub made: Option<LinkPlace>,
}

/// A stack that can be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Neighbour {
    /// Its share of new connections: of 256.
    pub share: u16,
    /// The link to it. `None`: there is none, and there will be none for now.
    pub link: Option<u32>,
    /// A link can be had: ask again.
    pub pending: bool,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkPlace {
    /// The link's number.
    pub link: u32,
    /// The stack at this end.
    pub stack: u32,
    /// The stack at the other end.
    pub peer: u32,
}

impl LinkPlace {
    /// Of each ring.
    ///
    /// # Errors
    /// Never.
    pub fn layout() -> Result<Layout, LayoutError> {
        Layout::new(SLOTS, u32::from(LINK_PACKET))
    }

    /// Where the second ring begins: bytes.
    ///
    /// # Errors
    /// Never.
    pub fn second() -> Result<usize, LayoutError> {
        Ok(Self::layout()?.bytes().next_multiple_of(PAGE))
    }

    /// Bytes of the segment.
    ///
    /// # Errors
    /// Never.
    pub fn bytes() -> Result<usize, LayoutError> {
        Ok(2 * Self::second()?)
    }
}
