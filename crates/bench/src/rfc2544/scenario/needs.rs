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
        let nodes = names(&root.join("sys/devices/system/node"));
        let is_node = |name: &&String| {
            name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let pages = root.join("sys/kernel/mm/hugepages");
        let sizes = names(&pages);
        let hugepages = sizes.iter().filter_map(|name| {
            let size = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok()?;
            let free = fs::read_to_string(pages.join(name).join("free_hugepages")).ok()?;
            Some(free.trim().parse::<u64>().ok()?.saturating_mul(size) / 1024)
        });
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let memory = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        Self {
            nodes: nodes.iter().filter(is_node).count().max(1),
            cores,
            memory: memory.unwrap_or_default() / 1024,
            hugepages: hugepages.sum(),
        }
    }
}

impl Needs {
    /// What the machine lacks, in words; empty: the scenario can be measured.
    pub(in crate::rfc2544) fn missing(&self, machine: &Machine) -> Vec<String> {
        let Self { nodes, cores, memory, hugepages, also } = self;
        let lacks = |what: &str, need: u64, has: u64| {
            (has < need).then(|| format!("{need} {what} (there are {has})"))
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

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
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
        for name in ["node0/x", "node1/x", "has_cpu", "nodes/x"] {
            put(&format!("sys/devices/system/node/{name}"), "");
        }
        put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "512\n");
        put("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "3\n");
        put("proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:    2097152 kB\n");
        let machine = Machine::of(root.path(), 2);
        assert_eq!(machine, Machine { nodes: 2, cores: 2, memory: 2048, hugepages: 4096 });
        let needs = |text: &str| toml::from_str::<Needs>(text).unwrap().missing(&machine);
        assert!(needs("nodes = 2\ncores = 2\nmemory = 2048\nhugepages = 4096").is_empty());
        assert_eq!(needs("cores = 6"), ["6 cores (there are 2)"]);
        assert_eq!(needs("nodes = 4\nhugepages = 5000\nalso = [\"a card\"]").len(), 3);
        assert!(Machine::here().cores >= 1 && Machine::here().memory > 0);
    }
}
