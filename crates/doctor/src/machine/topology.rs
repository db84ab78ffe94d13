//! Cores, their siblings, sockets and NUMA nodes.

use super::cache::{self, Cache};
use super::time::ProcessorTime;
use crate::cores::CoreSet;
use crate::root::{Fact, Root};

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// Cores, and how they lie.
#[derive(Debug, Clone)]
pub struct Topology {
    /// Cores that are online, in order.
    pub cores: Vec<Core>,
    /// Caches, the nearest first.
    pub caches: Fact<Vec<Cache>>,
    /// NUMA nodes with their cores, in order; node 0 where the kernel tells of none.
    pub nodes: Vec<(u16, CoreSet)>,
    /// Cores that the scheduler leaves alone.
    pub isolated: Fact<CoreSet>,
    /// Cores whose tick stops while one thread runs.
    pub nohz_full: Fact<CoreSet>,
    /// Share of the time since boot in which the host ran something else, of all cores together: 0 to 1.
    pub stolen: Fact<f64>,
}

/// A core: a logical processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// Its number.
    pub number: u16,
    /// Its NUMA node.
    pub node: u16,
    /// All threads of its physical core, itself among them.
    pub siblings: CoreSet,
}

impl Topology {
    pub(super) fn read(root: &Root) -> Self {
        let online = online(root).unwrap_or_default();
        let nodes = nodes(root, &online);
        let core = |number| {
            let holds = |(_, cores): &&(u16, CoreSet)| cores.contains(number);
            let node = nodes.iter().find(holds).map_or(0, |(node, _)| *node);
            let path = format!("{CPUS}/cpu{number}/topology/thread_siblings_list");
            let told: CoreSet = root.value(&path).unwrap_or_default();
            let siblings = told.common(&online).with(&CoreSet::from_iter([number]));
            Core { number, node, siblings }
        };
        Self {
            cores: online.iter().map(core).collect(),
            caches: cache::read(root),
            isolated: root.value(&format!("{CPUS}/isolated")),
            nohz_full: root.value(&format!("{CPUS}/nohz_full")),
            stolen: ProcessorTime::of(root).map(ProcessorTime::stolen_share),
            nodes,
        }
    }

    /// Cores that are online.
    #[must_use]
    pub fn online(&self) -> CoreSet {
        self.cores.iter().map(|core| core.number).collect()
    }

    /// A core that is online.
    #[must_use]
    pub fn core(&self, number: u16) -> Option<&Core> {
        let place = self.cores.binary_search_by_key(&number, |core| core.number).ok()?;
        self.cores.get(place)
    }

    /// The node of a core; node 0 where that is not known.
    #[must_use]
    pub fn node_of(&self, core: u16) -> u16 {
        self.core(core).map_or(0, |core| core.node)
    }

    /// The other threads of a core's physical core.
    #[must_use]
    pub fn siblings(&self, core: u16) -> CoreSet {
        let all = self.core(core).map(|core| core.siblings.clone()).unwrap_or_default();
        all.without(&CoreSet::from_iter([core]))
    }
}

fn online(root: &Root) -> Fact<CoreSet> {
    root.value(&format!("{CPUS}/online")).or_else(|unread| {
        // proc(5): what is left where /sys is hidden.
        let status = root.text("/proc/self/status").map_err(|_| unread.clone())?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.and_then(|list| list.parse().ok()).ok_or(unread)
    })
}

fn nodes(root: &Root, online: &CoreSet) -> Vec<(u16, CoreSet)> {
    let numbers = root.numbered(NODES, "node").unwrap_or_default();
    let cores = |node: u16| {
        let list: CoreSet = root.value(&format!("{NODES}/node{node}/cpulist")).ok()?;
        Some((node, list.common(online)))
    };
    let nodes: Vec<_> = numbers.into_iter().filter_map(cores).collect();
    if nodes.is_empty() { vec![(0, online.clone())] } else { nodes }
}
