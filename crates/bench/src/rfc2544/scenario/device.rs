//! The device under test, as a scenario file says.

use serde::{Deserialize, Serialize};

use crate::rfc2544::args::Faults;

/// Next hops of a route at most, as our daemon has it.
pub(in crate::rfc2544) const NEXT_HOPS: u32 = 64;

/// The device under test.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub(in crate::rfc2544) enum Device {
    /// None: the tester's two ports are joined.
    None {},
    /// One that is there: the tester opens these ports, to which it is attached.
    External {
        ports: [String; 2],
        /// MAC addresses of the device's ports; the tester asks for them if they are not given.
        macs: Option<[String; 2]>,
    },
    /// Our daemon, between two ports of shared memory.
    Millraced(Millraced),
    /// The kernel, which routes between two veth pairs. Needs root.
    Kernel {},
    /// `dpdk-testpmd`, which forwards between two ports of shared memory without looking at frames.
    Testpmd {
        /// Its core; the first that the process may use if not given.
        core: Option<usize>,
    },
    /// A device with known faults, to see that they are found.
    Impaired {
        /// Its core; the first that the process may use if not given.
        core: Option<usize>,
        #[serde(default)]
        faults: Faults,
    },
}

/// Our daemon as the device under test.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(in crate::rfc2544) struct Millraced {
    /// Its workers' cores; the first that the process may use if none is given.
    pub(in crate::rfc2544) cores: Vec<usize>,
    /// Its worker has the first core of another NUMA node than the tester's.
    pub(in crate::rfc2544) other_node: bool,
    /// Its packet buffers.
    pub(in crate::rfc2544) buffers: Option<u32>,
    pub(in crate::rfc2544) forwarding: Forwarding,
    /// How the tester is attached.
    pub(in crate::rfc2544) attach: Attach,
    /// Core of the guest, where there is one; the second that the process may use if there are three.
    pub(in crate::rfc2544) guest_core: Option<usize>,
    /// Routes each way, which share the network of its flows.
    pub(in crate::rfc2544) routes: u32,
    /// Next hops of each route (ECMP).
    pub(in crate::rfc2544) next_hops: u32,
    /// Entries each way of an access list, none of which test frames match.
    pub(in crate::rfc2544) acl: u32,
    /// Routes changed in a second while frames pass.
    pub(in crate::rfc2544) updates: u32,
}

impl Default for Millraced {
    fn default() -> Self {
        Self {
            cores: Vec::new(),
            other_node: false,
            buffers: None,
            forwarding: Forwarding::default(),
            attach: Attach::default(),
            guest_core: None,
            routes: 1,
            next_hops: 1,
            acl: 0,
            updates: 0,
        }
    }
}

/// By what our daemon forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::rfc2544) enum Forwarding {
    /// Routes: a longest-prefix match.
    #[default]
    Routes,
    /// An exact match of the 5-tuple: each flow is an entry.
    FlowTable,
    /// A learning bridge.
    Bridge,
    /// Cross-connects to a guest with two vhost-user ports, which forwards from one to the other.
    Guest,
}

/// How the tester is attached to our daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::rfc2544) enum Attach {
    /// By memif.
    #[default]
    Memif,
    /// As a container is: by virtio-user to the daemon's vhost-user ports.
    VhostUser,
}

impl Device {
    /// The daemon, if it is the device.
    pub(in crate::rfc2544) fn millraced(&self) -> Option<&Millraced> {
        if let Self::Millraced(daemon) = self { Some(daemon) } else { None }
    }

    /// The cores that it names, each with its key.
    pub(super) fn cores(&self) -> Vec<(&'static str, usize)> {
        match self {
            Self::Millraced(daemon) => {
                let own = daemon.cores.iter().map(|core| ("device.cores", *core));
                own.chain(daemon.guest_core.map(|core| ("device.guest-core", core))).collect()
            }
            Self::Testpmd { core } | Self::Impaired { core, .. } => {
                core.iter().map(|core| ("device.core", *core)).collect()
            }
            Self::None {} | Self::External { .. } | Self::Kernel {} => Vec::new(),
        }
    }

    /// Whether the tester's links are memif rings whose size the bench chooses.
    pub(super) fn shares_memory(&self) -> bool {
        match self {
            Self::External { .. } | Self::Kernel {} => false,
            Self::Millraced(daemon) => daemon.attach == Attach::Memif,
            Self::None {} | Self::Testpmd { .. } | Self::Impaired { .. } => true,
        }
    }
}
