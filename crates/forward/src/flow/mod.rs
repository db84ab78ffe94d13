//! Exact-match flows: a 5-tuple goes to an egress interface with a rewrite, before the routes.
//!
//! The value of a flow's entry is a next-hop index; with [`TRANSLATED`] set it is the number of a
//! [`Translation`], which names the next hop and the new addresses and ports. Flows with the same
//! egress and MAC addresses share one next hop, so 2 x 16 M flows need no more of them than there
//! are neighbours.

mod table;
mod translation;

use std::net::IpAddr;

use graph::InterfaceId;
use thiserror::Error;
use wire::MacAddr;
use wire::flow::FiveTuple;

pub use table::{FlowLimits, FlowReaders, Flows};
pub use translation::{Translation, Translations};

/// Set in a flow's value when the rest is the number of a translation.
pub const TRANSLATED: u32 = 1 << 30;

/// Different combinations of egress and MAC addresses that flows may have.
pub const NEXT_HOPS: usize = 4096;

/// What to do with the packets of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Which packets.
    pub tuple: FiveTuple,
    /// Interface that they leave by.
    pub egress: InterfaceId,
    /// New source MAC address.
    pub source_mac: MacAddr,
    /// New destination MAC address.
    pub destination_mac: MacAddr,
    /// New addresses and ports, if any.
    pub rewrite: Rewrite,
}

/// New addresses and ports; what is `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// New source address, of the flow's family.
    pub source: Option<IpAddr>,
    /// New destination address, of the flow's family.
    pub destination: Option<IpAddr>,
    /// New source port.
    pub source_port: Option<u16>,
    /// New destination port.
    pub destination_port: Option<u16>,
}

impl Rewrite {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a flow was not entered. What was there before is kept.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FlowRefusal {
    /// The stage is off or full.
    #[error("no room for another {family} flow: {capacity} are allowed; raise limits.{key}")]
    Full {
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// Flows that fit.
        capacity: usize,
        /// Key of the configuration.
        key: &'static str,
    },
    /// Too many different egress and MAC combinations.
    #[error("no room for another egress and MAC combination: {0} are allowed")]
    NextHops(usize),
    /// Too many flows with new addresses or ports.
    #[error(
        "no room for another translation: {0} are allowed, as many as flows up to 1048576; raise limits.flows4 or limits.flows6"
    )]
    Translations(usize),
    /// A new address is of the other family.
    #[error("the new address {0} is not of the flow's family")]
    Family(IpAddr),
    /// The egress interface does not exist.
    #[error("interface {0} does not exist")]
    Egress(InterfaceId),
}
