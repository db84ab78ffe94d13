//! Caches of the processor.

use crate::cores::CoreSet;
use crate::root::{Fact, Root};

const CPUS: &str = "/sys/devices/system/cpu";

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u8,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// KiB.
    pub size: u64,
    /// Cores that share it, as the kernel lists them.
    pub cores: String,
}

impl Cache {
    fn read(root: &Root, folder: &str) -> Fact<Self> {
        let cores: CoreSet = root.value(&format!("{folder}/shared_cpu_list"))?;
        let path = format!("{folder}/size");
        let size = root.text(&path)?;
        // The kernel writes `32K`, whatever the size.
        let size = size.strip_suffix('K').and_then(|size| size.parse().ok());
        Ok(Self {
            level: root.value(&format!("{folder}/level"))?,
            kind: root.text(&format!("{folder}/type"))?,
            size: size.ok_or_else(|| crate::root::Unread::malformed(&path))?,
            cores: cores.to_string(),
        })
    }
}

/// Each cache once, the nearest first; none where the kernel tells of none, as on many virtual machines.
pub(super) fn read(root: &Root) -> Fact<Vec<Cache>> {
    let mut caches = Vec::new();
    for core in root.numbered(CPUS, "cpu")? {
        let folder = format!("{CPUS}/cpu{core}/cache");
        for index in root.numbered(&folder, "index").unwrap_or_default() {
            caches.push(Cache::read(root, &format!("{folder}/index{index}"))?);
        }
    }
    caches.sort();
    caches.dedup();
    Ok(caches)
}
