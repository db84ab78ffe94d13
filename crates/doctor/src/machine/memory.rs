//! Hugepages of each node, and what the kernel does with other pages.

use crate::root::{Fact, Root, Unread, chosen};

const NODES: &str = "/sys/devices/system/node";

/// Memory and its settings.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Reserved hugepages, node by node.
    pub pools: Fact<Vec<Pool>>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent: Fact<String>,
    /// Kernel same-page merging: 0 stopped, 1 runs, 2 undone.
    pub merging: Fact<u64>,
    /// Automatic NUMA balancing: 0 off.
    pub balancing: Fact<u64>,
    /// Memory channels with a module, as error detection (EDAC) shows them.
    pub channels: Fact<usize>,
}

/// Hugepages of one size on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Number of the node.
    pub node: u16,
    /// Size of a page: KiB.
    pub page: u64,
    /// Pages reserved.
    pub total: u64,
    /// Of which nobody uses.
    pub free: u64,
}

impl Pool {
    /// Reserved: bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.total.saturating_mul(self.page).saturating_mul(1_024)
    }

    /// The file with the number of pages.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{NODES}/node{}/hugepages/hugepages-{}kB/nr_hugepages", self.node, self.page)
    }
}

impl Memory {
    pub(super) fn read(root: &Root) -> Self {
        const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
        let transparent = root.text(TRANSPARENT).and_then(|text| {
            chosen(&text).map(str::to_owned).ok_or_else(|| Unread::malformed(TRANSPARENT))
        });
        Self {
            pools: pools(root),
            transparent,
            merging: root.value("/sys/kernel/mm/ksm/run"),
            balancing: root.value("/proc/sys/kernel/numa_balancing"),
            channels: channels(root),
        }
    }
}

fn pools(root: &Root) -> Fact<Vec<Pool>> {
    let mut pools = Vec::new();
    for node in root.numbered(NODES, "node")? {
        let folder = format!("{NODES}/node{node}/hugepages");
        for name in root.entries(&folder)? {
            let size = name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB"));
            let Some(page) = size.and_then(|size| size.parse().ok()) else { continue };
            let count = |file: &str| root.value(&format!("{folder}/{name}/{file}"));
            let (total, free) = (count("nr_hugepages")?, count("free_hugepages")?);
            pools.push(Pool { node, page, total, free });
        }
    }
    pools.sort_unstable_by_key(|pool| (pool.node, pool.page));
    Ok(pools)
}

/// Each module says where it is, as in `channel 2 slot 0` (EDAC); controllers count their channels from 0.
fn channels(root: &Root) -> Fact<usize> {
    const CONTROLLERS: &str = "/sys/devices/system/edac/mc";
    let mut channels = Vec::new();
    for controller in root.numbered(CONTROLLERS, "mc")? {
        let folder = format!("{CONTROLLERS}/mc{controller}");
        for name in root.entries(&folder)?.iter().filter(|name| name.starts_with("dimm")) {
            let place = root.text(&format!("{folder}/{name}/dimm_location"))?;
            let mut words = place.split_whitespace().skip_while(|word| *word != "channel");
            let channel = words.nth(1).map(str::to_owned);
            let entry = (controller, channel);
            if !channels.contains(&entry) {
                channels.push(entry);
            }
        }
    }
    if channels.is_empty() { Err(Unread::malformed(CONTROLLERS)) } else { Ok(channels.len()) }
}
