//! The machine as `/proc` and `/sys` show it.

mod cache;
mod interrupt;
mod kernel;
mod limits;
mod memory;
mod nic;
mod power;
mod service;
mod sharing;
mod time;
mod topology;

use std::path::Path;

pub use cache::Cache;
pub use interrupt::Interrupt;
pub use kernel::{Clock, Kernel, Vendor, Watchdog};
pub use limits::{Bound, Limits};
pub use memory::{Memory, Pool};
pub use nic::{Lanes, Nic};
pub use power::{CorePower, IdleState, Power};
pub use service::{KNOWN_SERVICES, KnownService, Service};
pub use sharing::Sharing;
pub use time::ProcessorTime;
pub use topology::{Core, Topology};

use crate::root::{Fact, Root};

/// What was read of a machine. Every part that could not be read says why.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Cores, sockets and NUMA nodes.
    pub topology: Topology,
    /// Frequencies and idle states.
    pub power: Power,
    /// Hugepages, and what the kernel does with other pages.
    pub memory: Memory,
    /// Network cards on PCI.
    pub nics: Fact<Vec<Nic>>,
    /// Addresses of everything on PCI.
    pub devices: Fact<Vec<String>>,
    /// Network interfaces of the kernel.
    pub interfaces: Fact<Vec<String>>,
    /// Interrupts of devices.
    pub interrupts: Fact<Vec<Interrupt>>,
    /// Services that run and are known to disturb.
    pub services: Fact<Vec<Service>>,
    /// The kernel and its settings.
    pub kernel: Kernel,
    /// Limits of a process.
    pub limits: Fact<Limits>,
    /// What sharing memory with processes needs.
    pub sharing: Sharing,
}

impl Machine {
    /// Reads the machine whose `/proc` and `/sys` are below `root`, and limits and rights of a process of it: `None` is this one.
    /// Nothing is changed, and nothing that is missing or malformed is an error.
    #[must_use]
    pub fn read(root: &Path, process: Option<u32>) -> Self {
        let root = Root::new(root);
        Self {
            topology: Topology::read(&root),
            power: Power::read(&root),
            memory: Memory::read(&root),
            nics: nic::read(&root),
            devices: root.entries(nic::DEVICES),
            interfaces: root.entries("/sys/class/net"),
            interrupts: interrupt::read(&root),
            services: service::read(&root),
            kernel: Kernel::read(&root),
            limits: Limits::read(&root, process),
            sharing: Sharing::read(&root, process),
        }
    }

    /// Whether it is a virtual machine.
    #[must_use]
    pub const fn is_virtual(&self) -> bool {
        self.kernel.hypervisor
    }
}
