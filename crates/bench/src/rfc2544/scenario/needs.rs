//! What the machine must have for a scenario, and what it has.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::machine;

/// What the machine must have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(in crate::rfc2544) struct Needs {
    /// NUMA nodes.
    nodes: usize,
    /// Cores that the process may use.
    cores: usize,
    /// Memory that can be had: MB.
    memory: u64,
    /// Free hugepages of any size: MB.
    hugepages: u64,
    /// What nobody can look up, such as another model of server.
    also: Vec<String>,
}

/// What it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rfc2544) struct Machine {
    nodes: usize,
    cores: usize,
    memory: u64,
    hugepages: u64,
}

impl Machine {
    /// This one.
    pub(in crate::rfc2544) fn here() -> Self {
        Self::of(Path::new("/"), machine::cores().len())
    }

    fn of(root: &Path, cores: usize) -> Self {
        let seen = doctor::Machine::read(root, None);
        let pools = seen.memory.pools.unwrap_or_default();
        // Pages are in KiB.
        let free = pools.iter().map(|pool| pool.free.saturating_mul(pool.page));
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let memory = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        Self {
            nodes: seen.topology.nodes.len(),
            cores,
            memory: memory.unwrap_or_default() / 1024,
            hugepages: free.fold(0, u64::saturating_add) / 1024,
        }
    }
}

impl Needs {
    /// What the machine lacks, in words; empty: the scenario can be measured.
    pub(in crate::rfc2544) fn missing(&self, machine: &Machine) -> Vec<String> {
        let Self { nodes, cores, memory, hugepages, also } = self;
        let lacks = |what: &str, need: u64, has: u64| {
            (has < need).then(|| format!("{need} {what} (here: {has})"))
        };
        [
            lacks("NUMA nodes", *nodes as u64, machine.nodes as u64),
            lacks("cores", *cores as u64, machine.cores as u64),
            lacks("MB of free memory", *memory, machine.memory),
            lacks("MB of free hugepages", *hugepages, machine.hugepages),
        ]
        .into_iter()
        .flatten()
        .chain(also.iter().cloned())
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_what_its_files_say() {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (number, size, free) in [(0, 2_048, "512\n"), (1, 1_048_576, "3\n")] {
            let node = format!("sys/devices/system/node/node{number}");
            put(&format!("{node}/cpulist"), "0-1\n");
            for (file, pages) in [("nr_hugepages", "600\n"), ("free_hugepages", free)] {
                put(&format!("{node}/hugepages/hugepages-{size}kB/{file}"), pages);
            }
        }
        put("sys/devices/system/node/has_cpu", "0-1\n");
        put("proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:    2097152 kB\n");
        let machine = Machine::of(root.path(), 2);
        assert_eq!(machine, Machine { nodes: 2, cores: 2, memory: 2048, hugepages: 4096 });
        let needs = |text: &str| toml::from_str::<Needs>(text).unwrap().missing(&machine);
        assert!(needs("nodes = 2\ncores = 2\nmemory = 2048\nhugepages = 4096").is_empty());
        assert_eq!(needs("cores = 6"), ["6 cores (here: 2)"]);
        assert_eq!(needs("nodes = 4\nhugepages = 5000\nalso = [\"a card\"]").len(), 3);
        assert!(Machine::here().cores >= 1 && Machine::here().memory > 0);
    }
}
