//! How two cores lie to each other: what packets cost that go from one to the other depends on it.

use std::fmt;

use doctor::CoreSet;
use doctor::machine::Topology;

/// How two cores lie to each other, the nearest first. Each kind lies within the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pair {
    /// One logical core.
    Same,
    /// Two threads of a physical core.
    Sibling,
    /// Two physical cores that share an L3 cache.
    Cache,
    /// Two of one NUMA node that share no L3 cache, or of which the kernel does not say so.
    Node,
    /// Two of different NUMA nodes.
    Far,
}

impl Pair {
    pub(super) const ALL: [Self; 5] =
        [Self::Same, Self::Sibling, Self::Cache, Self::Node, Self::Far];
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "same core",
            Self::Sibling => "SMT sibling",
            Self::Cache => "same L3",
            Self::Node => "same node",
            Self::Far => "other node",
        })
    }
}

/// A core, and what it shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) core: u16,
    pub(super) node: u16,
    /// The first thread of its physical core.
    pub(super) physical: u16,
    /// The first core that shares its L3 cache; none where the kernel tells of no such cache.
    pub(super) cache: Option<u16>,
}

impl Place {
    /// The cores of a machine that may be used.
    pub(super) fn all(topology: &Topology, usable: &[usize]) -> Vec<Self> {
        let caches = topology.caches.iter().flatten().filter(|cache| cache.level == 3);
        let caches: Vec<CoreSet> = caches.filter_map(|cache| cache.cores.parse().ok()).collect();
        let cores = topology.cores.iter();
        let usable = cores.filter(|core| usable.contains(&usize::from(core.number)));
        usable
            .map(|core| Self {
                core: core.number,
                node: core.node,
                physical: core.siblings.first().unwrap_or(core.number),
                cache: caches
                    .iter()
                    .find(|cores| cores.contains(core.number))
                    .and_then(CoreSet::first),
            })
            .collect()
    }

    /// How another core lies to this one.
    pub(super) fn to(&self, other: &Self) -> Pair {
        if self.core == other.core {
            Pair::Same
        } else if self.physical == other.physical {
            Pair::Sibling
        } else if self.node != other.node {
            Pair::Far
        } else if self.cache.is_some() && self.cache == other.cache {
            Pair::Cache
        } else {
            Pair::Node
        }
    }
}
