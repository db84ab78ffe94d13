//! The configuration: one TOML file, checked as a whole.
//!
//! Every section has its own file here: its type, and how it is read. Types carry no option where
//! there is a default, and compare, so that a daemon can apply the difference of two.

mod base;
mod check;
mod client;
mod device;
mod error;
mod files;
mod flow;
mod interface;
mod kernel;
mod load;
mod reach;
mod read;
mod route;
mod sessions;
mod source;
mod vrf;

use std::path::PathBuf;

use serde::Serialize;

pub use base::{
    Daemon, Forwarding, Hugepages, Limits, LogLevel, Memory, Miss, Neighbors, Poll, Workers,
};
pub use check::{FlowError, Interface, InterfaceKind, NeighborError, RouteError};
pub use client::{ClientRule, Clients, Functions};
pub use device::{DEVICE_KINDS, Device, DeviceError};
pub use error::ConfigError;
pub use files::{FlowFile, RouteFile, RouteTextError};
pub use flow::{Flow, FlowKey, protocol_number};
pub use interface::{Bridge, BridgeMember, CrossConnect, Features, Port, QueueCore, Vlan};
pub use kernel::{KernelFilter, KernelSide};
pub use reach::Reach;
pub use read::nearest;
pub use route::{MAX_NEXT_HOPS, NextHop, Route, RouteShapeError, RouteTarget, StaticNeighbor};
pub use sessions::{LeasedPorts, LeasedPortsError, Placement, Sessions};
pub use source::{MOST_DISTANCE, Source, SourceError};
pub use vrf::{DEFAULT_VRF, MOST_VRFS, Vrf};

/// A valid configuration. It is written out as the TOML that it is read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// The daemon itself.
    pub daemon: Daemon,
    /// Packet buffers.
    pub memory: Memory,
    /// Worker threads.
    pub workers: Workers,
    /// Capacities.
    pub limits: Limits,
    /// What forwarding does.
    pub forwarding: Forwarding,
    /// Timers of neighbours.
    pub neighbors: Neighbors,
    /// Where the files may lie that it names.
    #[serde(skip)]
    pub reach: Reach,
    /// Files of routes.
    pub routes: Files,
    /// Files of flows.
    pub flows: Files,
    /// Packet functions.
    pub functions: Functions,
    /// Client processes.
    pub clients: Clients,
    /// Who may attach; empty: the group `millrace`.
    #[serde(rename = "client")]
    pub client_rules: Vec<ClientRule>,
    /// Processes with stacks of their own.
    pub sessions: Sessions,
    /// VRFs besides the default one.
    #[serde(rename = "vrf")]
    pub vrfs: Vec<Vrf>,
    /// Ports.
    #[serde(rename = "port")]
    pub ports: Vec<Port>,
    /// VLAN sub-interfaces.
    #[serde(rename = "vlan")]
    pub vlans: Vec<Vlan>,
    /// Bridges.
    #[serde(rename = "bridge")]
    pub bridges: Vec<Bridge>,
    /// Cross-connects.
    #[serde(rename = "cross-connect")]
    pub cross_connects: Vec<CrossConnect>,
    /// The kernel's side of ports.
    #[serde(rename = "kernel")]
    pub kernel_sides: Vec<KernelSide>,
    /// Static routes.
    #[serde(rename = "route")]
    pub static_routes: Vec<Route>,
    /// Static neighbours.
    #[serde(rename = "neighbor")]
    pub static_neighbors: Vec<StaticNeighbor>,
}

/// `[routes]` and `[flows]`: files to load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Files {
    /// In order; absolute, or relative to the working directory.
    pub files: Vec<PathBuf>,
}
