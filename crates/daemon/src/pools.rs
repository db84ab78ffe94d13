//! Buffer pools, one per NUMA node, and the memory that DPDK is given for them.

use std::collections::BTreeMap;
use std::fs;

use control::config::{Config, Hugepages};
use dpdk::{BufferPool, Device, DeviceKind, EalOptions, HEADROOM, Memory, PoolError};

/// What an mbuf and the pool's own book-keeping take besides headroom and data: bytes.
const BOOK_KEEPING: u64 = 192;

/// Memory for DPDK itself, and for each port's rings: MB.
const BASE: u64 = 64;
const PER_PORT: u64 = 4;

/// Buffers in a thread's cache.
const CACHE: u32 = 256;

/// The pools that exist. DPDK never takes one down.
#[derive(Debug)]
pub(crate) struct Pools {
    count: u32,
    data_room: u16,
    by_node: BTreeMap<u32, BufferPool>,
}

impl Pools {
    /// No pool yet; those that come have the sizes that the configuration says.
    pub(crate) fn new(config: &Config) -> Self {
        let memory = &config.memory;
        Self { count: memory.buffers, data_room: memory.buffer_size, by_node: BTreeMap::new() }
    }

    /// The pool for a device: that of its NUMA node.
    pub(crate) fn of_device(&mut self, device: &Device) -> Result<BufferPool, PoolError> {
        self.of_node(numa_node(device).unwrap_or(0))
    }

    /// The pool of a NUMA node, made when it is not there yet.
    pub(crate) fn of_node(&mut self, node: u32) -> Result<BufferPool, PoolError> {
        if let Some(pool) = self.by_node.get(&node) {
            return Ok(*pool);
        }
        let cache = CACHE.min(self.count / 4);
        let name = format!("buffers-{node}");
        let pool = BufferPool::new(&name, self.count, self.data_room, cache, Some(node))
            // A machine with one node may call it anything: let DPDK choose.
            .or_else(|_| BufferPool::new(&name, self.count, self.data_room, cache, None))?;
        self.by_node.insert(node, pool);
        Ok(pool)
    }

    /// Every pool by its NUMA node.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &BufferPool)> {
        self.by_node.iter().map(|(node, pool)| (*node, pool))
    }
}

/// How DPDK is to be started for a configuration.
pub(crate) fn eal_options(config: &Config, devices: Vec<Device>, log_level: u8) -> EalOptions {
    let mut nodes: Vec<u32> = devices.iter().map(|device| numa_node(device).unwrap_or(0)).collect();
    nodes.push(0);
    nodes.sort_unstable();
    nodes.dedup();
    let buffer = u64::from(config.memory.buffer_size) + u64::from(HEADROOM) + BOOK_KEEPING;
    let pool = (u64::from(config.memory.buffers) * buffer).div_ceil(1 << 20);
    let megabytes = BASE + nodes.len() as u64 * pool + PER_PORT * devices.len() as u64;
    EalOptions {
        megabytes: u32::try_from(megabytes).unwrap_or(u32::MAX),
        memory: match config.memory.hugepages {
            Hugepages::Auto => Memory::Auto,
            Hugepages::Require => Memory::Huge,
            Hugepages::Never => Memory::Plain,
        },
        devices,
        log_level,
    }
}

/// The NUMA node of a device, where the kernel knows it.
fn numa_node(device: &Device) -> Option<u32> {
    let path = match (device.kind(), device.interface()) {
        (DeviceKind::Pci, _) => format!("/sys/bus/pci/devices/{}/numa_node", device.argument()),
        (_, Some(interface)) => format!("/sys/class/net/{interface}/device/numa_node"),
        _ => return None,
    };
    // -1 means that there is none.
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_buffers_and_ports() {
        let mut config = crate::testing::config("");
        config.memory.buffers = 1 << 14;
        config.memory.buffer_size = 2048;
        let none = eal_options(&config, Vec::new(), 4);
        assert_eq!(none.megabytes, 64 + 37);
        let two = eal_options(&config, vec!["null".parse().unwrap(); 2], 4);
        assert_eq!(two.megabytes, none.megabytes + 8);
        config.memory.hugepages = Hugepages::Never;
        assert_eq!(eal_options(&config, Vec::new(), 4).memory, Memory::Plain);
    }
}
