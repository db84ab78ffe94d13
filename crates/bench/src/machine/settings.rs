//! The machine's settings, as `/proc` and `/sys` tell them: what a figure depends on besides processor and code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use doctor::Machine;
use doctor::machine::{Nic, Pool};
use serde::Serialize;

/// What was found; what the kernel does not tell is left out.
#[derive(Debug, Default, Serialize)]
pub(super) struct Settings {
    /// The server's vendor and model, or what a virtual machine has in their place.
    product: Option<String>,
    /// Whether it is a virtual machine.
    virtual_machine: bool,
    kernel_command_line: Option<String>,
    /// Cores of each NUMA node.
    numa: Vec<String>,
    /// Logical processors of a physical core.
    threads_per_core: usize,
    isolated_cores: Option<String>,
    nohz_full: Option<String>,
    caches: Vec<String>,
    /// Drivers and governors, each pair once.
    frequency: Vec<String>,
    turbo: Option<bool>,
    /// Reserved pages, by node and size.
    hugepage_pools: Vec<String>,
    transparent_hugepages: Option<String>,
    clock: Option<String>,
    /// What the kernel does about each weakness of the processor.
    mitigations: BTreeMap<String, String>,
    /// Network cards, with driver and link.
    nics: Vec<String>,
}

impl Settings {
    /// Reads the machine whose `/proc` and `/sys` are below a root.
    pub(super) fn read(root: &Path) -> Self {
        let Machine { topology, power, memory, nics, kernel, .. } = Machine::read(root, None);
        let named = |cores: String| (!cores.is_empty()).then_some(cores);
        let threads = topology.cores.iter().map(|core| core.siblings.len());
        let frequency = power.cores.iter().filter_map(|core| {
            let (driver, governor) = (core.driver.as_ref().ok()?, core.governor.as_ref().ok()?);
            Some(format!("{driver} {governor}"))
        });
        let nodes = topology.nodes.iter();
        Self {
            product: product(root),
            virtual_machine: kernel.hypervisor,
            kernel_command_line: kernel.command_line.ok(),
            numa: nodes.map(|(node, cores)| format!("node {node}: {}", cores.named())).collect(),
            threads_per_core: threads.max().unwrap_or_default(),
            isolated_cores: topology.isolated.ok().and_then(|cores| named(cores.to_string())),
            nohz_full: topology.nohz_full.ok().and_then(|cores| named(cores.to_string())),
            caches: caches(&topology.caches.unwrap_or_default()),
            frequency: frequency.collect::<BTreeSet<_>>().into_iter().collect(),
            turbo: power.turbo.ok(),
            hugepage_pools: memory.pools.unwrap_or_default().iter().filter_map(pool).collect(),
            transparent_hugepages: memory.transparent.ok(),
            clock: kernel.clock.ok().map(|clock| clock.current),
            mitigations: kernel.vulnerabilities.unwrap_or_default().into_iter().collect(),
            nics: nics.unwrap_or_default().iter().map(nic).collect(),
        }
    }
}

/// `Dell Inc. PowerEdge R740`
fn product(root: &Path) -> Option<String> {
    let folder = root.join("sys/class/dmi/id");
    let read = |name: &str| std::fs::read_to_string(folder.join(name));
    let told = ["sys_vendor", "product_name"].map(read);
    let words = told.iter().flatten().map(|text| text.trim()).filter(|text| !text.is_empty());
    let words: Vec<&str> = words.collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// `2 x level 1 Data of 48 KiB`
fn caches(all: &[doctor::machine::Cache]) -> Vec<String> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for cache in all {
        *counts.entry((cache.level, &cache.kind, cache.size)).or_default() += 1;
    }
    let text =
        |((level, kind, size), count)| format!("{count} x level {level} {kind} of {size} KiB");
    counts.into_iter().map(text).collect()
}

/// `node 0: 512 of 2048 KiB`; nothing where none is reserved. How many are free changes while a run goes on.
fn pool(pool: &Pool) -> Option<String> {
    let Pool { node, page, total, .. } = pool;
    (*total > 0).then(|| format!("node {node}: {total} of {page} KiB"))
}

/// `0000:18:00.0 ice, 25000 Mbit/s, node 0`
fn nic(nic: &Nic) -> String {
    let mut text = format!("{} {}", nic.address, nic.driver.as_deref().unwrap_or("no driver"));
    if let Some(speed) = nic.speed {
        text += &format!(", {speed} Mbit/s");
    }
    if let Some(node) = nic.node {
        text += &format!(", node {node}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_found() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let place = root.path().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, format!("{text}\n")).unwrap();
        };
        let cpu = "sys/devices/system/cpu";
        put(&format!("{cpu}/online"), "0-1");
        put(&format!("{cpu}/isolated"), "1");
        for core in 0..2 {
            let own = format!("{cpu}/cpu{core}");
            put(&format!("{own}/topology/thread_siblings_list"), "0-1");
            put(&format!("{own}/cpufreq/scaling_driver"), "intel_pstate");
            put(&format!("{own}/cpufreq/scaling_governor"), "performance");
            for (name, text) in [("level", "2"), ("type", "Unified"), ("size", "2048K")] {
                put(&format!("{own}/cache/index2/{name}"), text);
            }
            put(&format!("{own}/cache/index2/shared_cpu_list"), &core.to_string());
        }
        put(&format!("{cpu}/intel_pstate/no_turbo"), "1");
        put(&format!("{cpu}/vulnerabilities/meltdown"), "Mitigation: PTI");
        let node = "sys/devices/system/node/node0";
        put(&format!("{node}/cpulist"), "0-1");
        for (size, count) in [(2_048, "512"), (1_048_576, "0")] {
            put(&format!("{node}/hugepages/hugepages-{size}kB/nr_hugepages"), count);
            put(&format!("{node}/hugepages/hugepages-{size}kB/free_hugepages"), "0");
        }
        put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
        put("sys/class/dmi/id/sys_vendor", "Dell Inc.");
        put("sys/class/dmi/id/product_name", "PowerEdge R740");
        put("proc/cmdline", "quiet isolcpus=1");
        put("proc/cpuinfo", "flags : fpu hypervisor");
        put("sys/bus/pci/devices/0000:18:00.0/class", "0x020000");
        put("sys/bus/pci/devices/0000:18:00.0/numa_node", "0");
        let found = serde_json::to_value(Settings::read(root.path())).unwrap();
        let expected = serde_json::json!({
            "product": "Dell Inc. PowerEdge R740",
            "virtual_machine": true,
            "kernel_command_line": "quiet isolcpus=1",
            "numa": ["node 0: cores 0-1"],
            "threads_per_core": 2,
            "isolated_cores": "1",
            "nohz_full": null,
            "caches": ["2 x level 2 Unified of 2048 KiB"],
            "frequency": ["intel_pstate performance"],
            "turbo": false,
            "hugepage_pools": ["node 0: 512 of 2048 KiB"],
            "transparent_hugepages": "madvise",
            "clock": null,
            "mitigations": {"meltdown": "Mitigation: PTI"},
            "nics": ["0000:18:00.0 no driver, node 0"],
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_machine_that_tells_nothing_has_settings_all_the_same() {
        let root = tempfile::tempdir().unwrap();
        let found = serde_json::to_value(Settings::read(root.path())).unwrap();
        assert_eq!(found["virtual_machine"], false);
        assert_eq!(found["caches"], serde_json::json!([]));
    }
}
