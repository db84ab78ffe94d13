//! How EAL is to run.

use std::num::NonZeroU8;

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
    /// Whether all of `megabytes` is taken at the start (`-m`), from the largest hugepages first that fit, instead of as much
    /// as is needed when it is needed, from the smallest first. Ordinary pages are always taken at the start.
    pub preallocate: bool,
    /// Memory channels over which pools spread their buffers (`-n`); `None`: as DPDK thinks best.
    pub channels: Option<NonZeroU8>,
    /// Devices that will be opened. Only these PCI devices are touched, and the memory mode suits
    /// the kinds that are named here.
    pub devices: Vec<Device>,
    /// DPDK's log level for standard error, 1 (emergency) to 8 (debug); 4 is errors only.
    pub log_level: u8,
}

impl Default for EalOptions {
    fn default() -> Self {
        Self {
            megabytes: 256,
            memory: Memory::Auto,
            preallocate: false,
            channels: None,
            devices: Vec::new(),
            log_level: 4,
        }
    }
}
