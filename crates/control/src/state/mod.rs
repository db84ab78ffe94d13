//! What a daemon keeps from one run to the next, as a file: one JSON value a line.
//!
//! | line | holds |
//! | --- | --- |
//! | the first | `{"millrace-state":1,"by":VERSION}`: the form of the file, and who wrote it |
//! | all others | a [`Record`] |
//! | the last | `{"end":COUNT}`: the records before it; a file without it is not whole |
//!
//! A reader believes nothing: each line is bounded, each value is checked, unknown ones are refused.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::api::FunctionAdd;
use crate::config::{Flow, Route};
use crate::net::MacAddr;

pub use read::{Reader, StateError};
pub use write::Writer;

/// The form of the file: changes when a reader of before would misread it.
pub const STATE_VERSION: u32 = 1;

/// Longest line: bytes. A route over 64 next hops with interfaces and weights fits.
pub const LONGEST_LINE: usize = 16 << 10;

/// Records of a file at most: more than all tables hold.
const MOST_RECORDS: u64 = 1 << 28;

/// One thing that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// The MAC address of a port whose device makes one up at each start.
    Port(KeptPort),
    /// A neighbour.
    Neighbor(KeptNeighbor),
    /// A route that came by the API.
    Route(Route),
    /// A flow that came by the API.
    Flow(Flow),
    /// A packet function that came by the API.
    Function(FunctionAdd),
    /// Local ports of a process with a stack, which may have connections from there.
    Lease(KeptLease),
}

/// A range of local ports that was leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptLease {
    /// Its first port.
    pub first: u16,
    /// The user of the process that leased it.
    pub uid: u32,
}

/// The MAC address of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptPort {
    /// The port's name.
    pub name: String,
    /// Its device, as the configuration names it: another device has another address.
    pub device: String,
    /// Its address.
    pub mac: MacAddr,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptNeighbor {
    /// Interface that it is behind.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: MacAddr,
    /// It was learned, and may have changed meanwhile; else it came by the API.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learned: bool,
}
