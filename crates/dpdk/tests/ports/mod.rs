//! Starts DPDK and opens ports, for tests.

use millrace_dpdk::{BufferPool, Device, Eal, EalOptions, Memory, Opened, Port, PortConfig};

/// Starts DPDK with plain memory; once in a process.
pub(super) fn start(megabytes: u32) {
    let options = EalOptions { memory: Memory::Plain, megabytes, ..EalOptions::default() };
    Eal::init(&options).unwrap();
}

pub(super) fn open(device: &str, pool: BufferPool) -> Opened {
    Port::open(&device.parse::<Device>().unwrap(), &PortConfig::new(pool)).unwrap()
}
