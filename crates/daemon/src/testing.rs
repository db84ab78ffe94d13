//! Configurations for tests.

use std::path::Path;
use std::sync::OnceLock;

use control::Config;
use dpdk::{BufferPool, Eal, EalOptions, Memory};

/// The configuration of a text, on a machine with cores 0 and 1.
pub(crate) fn config(text: &str) -> Config {
    Config::parse_for(text, Path::new("test.toml"), &[0, 1]).unwrap()
}

/// Buffers for packets, without hugepages and devices.
pub(crate) fn pool() -> BufferPool {
    static POOL: OnceLock<BufferPool> = OnceLock::new();
    *POOL.get_or_init(|| {
        let options = EalOptions { megabytes: 64, memory: Memory::Plain, ..EalOptions::default() };
        Eal::init(&options).unwrap();
        BufferPool::new("tests", 1023, 2048, 0, None).unwrap()
    })
}
