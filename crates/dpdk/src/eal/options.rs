//! How EAL is to run.

use crate::Device;

/// Which kind of pages to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// Hugepages when enough are free and every device works with them, else ordinary pages.
    #[default]
    Auto,
    /// Hugepages, or an error.
    Huge,
    /// Ordinary pages: works everywhere, costs about half of the speed.
    Plain,
}

/// How EAL is to run.
#[derive(Debug, Clone)]
pub struct EalOptions {
    /// Memory for buffer pools and DPDK itself: MB.
    pub megabytes: u32,
    /// Which kind of pages that memory has.
    pub memory: Memory,
    /// Devices that will be opened. Only these PCI devices are touched, and the memory mode suits
    /// the kinds that are named here.
    pub devices: Vec<Device>,
    /// DPDK's log level for standard error, 1 (emergency) to 8 (debug); 4 is errors only.
    pub log_level: u8,
}

impl Default for EalOptions {
    fn default() -> Self {
        Self { megabytes: 256, memory: Memory::Auto, devices: Vec::new(), log_level: 4 }
    }
}
