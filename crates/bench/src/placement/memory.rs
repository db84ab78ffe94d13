//! Memory that DPDK can get: in which pages, how much of it, and over how many channels its buffers are spread.

use std::fmt;
use std::num::NonZeroU8;

use doctor::machine::Pool;
use doctor::root::Fact;

/// Memory that DPDK gets unless it is varied: MB. From here on more of it changed nothing (thesis on layer-3 forwarding, 2016).
pub(super) const MEGABYTES: u32 = 128;
/// Amounts that are tried: MB. The thesis had 256 to 2048.
pub(super) const AMOUNTS: [u32; 5] = [MEGABYTES, 256, 512, 1024, 2048];
/// Memory channels that are tried, as in the thesis.
pub(super) const CHANNELS: std::ops::RangeInclusive<u8> = 1..=4;
/// The smaller size of hugepages of x86 and most others: KiB. It stands for all where the kernel has none.
const USUAL: u64 = 2048;

/// The pages that memory is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// Those of the kernel (`--no-huge`).
    Ordinary,
    /// Hugepages of this size: KiB.
    Huge(u64),
}

/// How DPDK gets its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) pages: Pages,
    pub(super) megabytes: u32,
    /// Over how many channels pools spread their buffers; none: as DPDK thinks best.
    pub(super) channels: Option<NonZeroU8>,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kilobytes = match self {
            Self::Ordinary => (rustix::param::page_size() as u64) >> 10,
            Self::Huge(size) => *size,
        };
        match kilobytes {
            size if size >= 1 << 20 => write!(f, "{} GB", size >> 20),
            size if size >= 1 << 10 => write!(f, "{} MB", size >> 10),
            size => write!(f, "{size} kB"),
        }
    }
}

impl Memory {
    /// That which is the same for all, unless it is varied.
    pub(super) const fn usual(pages: Pages) -> Self {
        Self { pages, megabytes: MEGABYTES, channels: None }
    }
}

/// Hugepages of a machine.
#[derive(Debug)]
pub(super) struct Hugepages<'a> {
    pools: &'a Fact<Vec<Pool>>,
    /// Whether none is to be used.
    forbidden: bool,
}

impl<'a> Hugepages<'a> {
    pub(super) const fn new(pools: &'a Fact<Vec<Pool>>, forbidden: bool) -> Self {
        Self { pools, forbidden }
    }

    /// Sizes that the kernel has on any node, the smallest first.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.pools.iter().flatten().map(|pool| pool.page).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() { vec![USUAL] } else { sizes }
    }

    /// The smallest hugepages of which all these nodes have enough for what DPDK gets as a rule; else ordinary pages.
    pub(super) fn usual(&self, nodes: &[u16]) -> Pages {
        let enough =
            |size: &u64| nodes.iter().all(|node| self.lack(*size, MEGABYTES, *node).is_none());
        self.sizes().into_iter().find(enough).map_or(Pages::Ordinary, Pages::Huge)
    }

    /// Why a node has not so much memory in pages of this size.
    pub(super) fn lack(&self, size: u64, megabytes: u32, node: u16) -> Option<String> {
        let name = Pages::Huge(size);
        if self.forbidden {
            return Some("--no-huge forbids hugepages".into());
        }
        let pools = match self.pools {
            Ok(pools) => pools,
            Err(unread) => return Some(format!("no hugepages are known: {unread}")),
        };
        let Some(pool) = pools.iter().find(|pool| pool.node == node && pool.page == size) else {
            return Some(format!("the kernel has no hugepages of {name} on node {node}"));
        };
        let needed = u64::from(megabytes) << 10;
        if needed < size {
            return Some(format!("a hugepage of {name} is more than that"));
        }
        let count = needed.div_ceil(size);
        (pool.free < count).then(|| {
            format!(
                "hugepages of {name}: {count} needed, {} free on node {node}; write {} to {}",
                pool.free,
                pool.total.saturating_add(count - pool.free),
                pool.path()
            )
        })
    }
}
