//! What the data plane is to do on the machine.

use serde::Serialize;

use crate::cores::CoreSet;
use crate::machine::{Machine, Nic};

/// Least that the daemon needs of hugepages on a node: bytes. What DPDK allocates beside the buffers fits in, too.
const LEAST_HUGEPAGES: u64 = 128 << 20;

/// What a buffer takes besides its data room, rounded up: descriptor, head room, the pool's object header; bytes.
const BUFFER_OVERHEAD: u64 = 512;

/// What a daemon does, or would do: worker cores, ports, memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// Where this comes from, in words.
    pub origin: String,
    /// Cores with a worker each.
    pub workers: CoreSet,
    /// Whether an idle worker polls on instead of sleeping.
    pub busy: bool,
    /// Ports; empty also where nothing is known of any.
    pub ports: Vec<Port>,
    /// Packet buffers per NUMA node.
    pub buffers: u64,
    /// Data room of a buffer: bytes.
    pub buffer_size: u64,
    /// Use of hugepages.
    pub hugepages: Hugepages,
    /// The daemon's process, if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
}

/// Use of hugepages: the configuration's `memory.hugepages`, which this crate does not know. Each of the three judges a node
/// without enough of them in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hugepages {
    /// When there are any.
    Auto,
    /// Or the daemon does not start.
    Require,
    /// Not at all.
    Never,
}

/// A port of the data plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its name in the configuration.
    pub name: String,
    /// Its device, as the configuration has it.
    pub device: String,
    /// Kind of its device: `pci`, `afxdp`, `afpacket`, ...
    pub kind: String,
    /// What the kind needs: a PCI address, a kernel interface.
    pub argument: String,
    /// Speed of the link, when the daemon knows it: Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<u32>,
    /// Descriptors per receive queue.
    pub rx_descriptors: u16,
    /// Descriptors per transmit queue.
    pub tx_descriptors: u16,
    /// Cores that poll its receive queues, or share them by software.
    pub cores: CoreSet,
}

impl Setup {
    /// What the daemon does on a machine when its configuration says nothing: a worker on every core but the first.
    #[must_use]
    pub fn assumed(machine: &Machine) -> Self {
        let online = machine.topology.online();
        let workers: CoreSet = online.iter().skip(1).collect();
        Self {
            origin: "no configuration is known: the default, a worker on every core but the first"
                .into(),
            workers: if workers.is_empty() { online } else { workers },
            busy: false,
            ports: Vec::new(),
            buffers: 16_384,
            buffer_size: 2_048,
            hugepages: Hugepages::Auto,
            process: None,
        }
    }

    /// Hugepages that the daemon needs on each node: bytes.
    #[must_use]
    pub fn hugepage_bytes(&self) -> u64 {
        let buffer = self.buffer_size.saturating_add(BUFFER_OVERHEAD);
        self.buffers.saturating_mul(buffer).saturating_add(LEAST_HUGEPAGES / 2).max(LEAST_HUGEPAGES)
    }
}

impl Port {
    /// Whether it is on a network card: by PCI address, or by a kernel interface.
    #[must_use]
    pub fn is_on(&self, nic: &Nic) -> bool {
        match self.kind.as_str() {
            // The kernel writes it in small letters.
            "pci" => self.argument.eq_ignore_ascii_case(&nic.address),
            "afxdp" | "afpacket" => nic.interfaces.contains(&self.argument),
            _ => false,
        }
    }
}
