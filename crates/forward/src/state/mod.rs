//! What the nodes of all workers read and the control thread alone writes.

mod features;
mod interface;
mod next_hop;
mod published;
mod vrf;

use std::sync::Arc;

pub use features::{Features, InputFeature, OutputFeature};
pub use interface::{Bridge, BridgeMember, Interface, Interfaces, Mode, PortEntry};
pub use next_hop::{
    GROUP_BIT, GROUP_SLOTS, Group, Kind, NextHop, NextHops, NextNode, Reader, Words, reserved,
};
pub use published::Published;
pub use vrf::{DEFAULT_VRF, MOST_VRFS, NO_VRF, VRF_NUMBERS, VrfId, VrfTables, Vrfs};

/// Handles on all shared tables. Cloning is cheap; each worker's nodes hold clones.
#[derive(Clone)]
pub struct State {
    /// Ports, interfaces and bridges: replaced as a whole.
    pub interfaces: Arc<Published<Interfaces>>,
    /// Next hops and ECMP groups: changed in place.
    pub next_hops: Arc<NextHops>,
    /// IPv4 routes of the default VRF: a look-up gives a next-hop index, or a group index with [`GROUP_BIT`].
    pub routes4: tables::Lpm4Reader,
    /// IPv6 routes, likewise.
    pub routes6: tables::Lpm6Reader,
    /// Routes of the other VRFs, likewise: replaced as a whole.
    pub vrfs: Arc<Published<Vrfs>>,
    /// Switches: replaced as a whole.
    pub settings: Arc<Published<Settings>>,
}

impl State {
    /// Frees snapshots that were replaced and that no worker has any more. Not for workers.
    pub fn reclaim(&self) {
        self.interfaces.reclaim();
        self.vrfs.reclaim();
        self.settings.reclaim();
    }

    /// A VRF in words.
    pub(crate) fn describe_vrf(&self, id: VrfId) -> String {
        match self.interfaces.load().vrfs.get(&id) {
            Some(name) => format!("VRF {name}"),
            None if id == DEFAULT_VRF => "the default VRF".to_owned(),
            None => "a VRF that is gone".to_owned(),
        }
    }
}

/// Switches that nodes read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Drop packets with martian addresses (RFC 1812 5.3.7).
    pub martians: bool,
    /// Forward directed broadcasts (RFC 1812 5.3.5.2; RFC 2644 says off).
    pub directed_broadcast: bool,
    /// ICMP errors per second and worker.
    pub icmp_rate: u32,
    /// Look for an exact match of IPv4 flows before the routes. Fixed for the life of a graph.
    pub flows4: bool,
    /// Look for an exact match of IPv6 flows before the routes. Fixed for the life of a graph.
    pub flows6: bool,
    /// Seed of the hash that chooses among the members of an ECMP group.
    pub hash_seed: u64,
    /// TSC cycles per second.
    pub tsc_hz: u64,
}
