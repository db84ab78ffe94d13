//! Which cores get a worker, and which of them polls which queue.

mod cores;
mod queues;
mod toml;

#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;

use serde::Serialize;

use crate::machine::Machine;
use crate::setup::Port;

/// A proposal for `[workers]` and `[[port]]`, with a reason for each choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Cores with a worker each, in order.
    pub workers: Vec<Worker>,
    /// Ports, in the order in which they were wanted.
    pub ports: Vec<Mapping>,
    /// What else should be known.
    pub notes: Vec<String>,
}

/// A core that gets a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Its number.
    pub core: u16,
    /// Its NUMA node.
    pub node: u16,
    /// Why this one.
    pub why: String,
}

/// A port's queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mapping {
    /// Name of the port.
    pub port: String,
    /// Its device.
    pub device: String,
    /// The core that polls each queue: queue 0 first.
    pub queues: Vec<u16>,
    /// Cores that share its only queue by software.
    pub software_rss: Vec<u16>,
    /// Why these.
    pub why: String,
}

/// A port that is wanted, with what the machine tells of it.
struct Wanted<'a> {
    port: &'a Port,
    /// NUMA node of its card.
    node: Option<u16>,
    /// Cores that it deserves: one for 10 Gbit/s.
    weight: u32,
}

/// One core reached 74 % of 10 Gbit/s each way at 66 B without loss, two 93 % (white paper): Mbit/s for each core.
const SPEED_PER_CORE: u32 = 10_000;

/// Proposes workers and queues for the ports, or for the network cards of the machine when none is wanted. `workers`: how many;
/// `None` takes one for 10 Gbit/s of each port, as far as there are physical cores.
#[must_use]
pub fn plan(machine: &Machine, ports: &[Port], workers: Option<NonZeroUsize>) -> Plan {
    let mut notes = Vec::new();
    let found;
    let ports = if ports.is_empty() {
        found = cards(machine, &mut notes);
        &found
    } else {
        ports
    };
    let wanted: Vec<_> = ports.iter().map(|port| Wanted::of(machine, port)).collect();
    let workers = cores::choose(machine, &wanted, workers, &mut notes);
    let ports = queues::assign(machine, &wanted, &workers);
    Plan { workers, ports, notes }
}

impl<'a> Wanted<'a> {
    fn of(machine: &Machine, port: &'a Port) -> Self {
        let nics = machine.nics.as_deref().unwrap_or_default();
        let nic = nics.iter().find(|nic| port.is_on(nic));
        let speed = port.speed.or(nic.and_then(|nic| nic.speed)).unwrap_or_default();
        let weight = speed.div_ceil(SPEED_PER_CORE).max(1);
        let single = machine.topology.nodes.len() < 2;
        let node = nic.and_then(|nic| nic.node).filter(|_| !single);
        Self { port, node, weight }
    }
}

/// The machine's own network cards as ports, without the one that reaches the world.
fn cards(machine: &Machine, notes: &mut Vec<String>) -> Vec<Port> {
    let nics = machine.nics.as_deref().unwrap_or_default();
    let mut ports = Vec::new();
    for nic in nics.iter().filter(|nic| !nic.is_virtual) {
        if nic.default_route {
            notes.push(format!(
                "{} ({}) carries the default route and stays with the kernel",
                nic.name(),
                nic.address
            ));
            continue;
        }
        let fits =
            |name: &&String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let name = nic.interfaces.first().filter(fits);
        ports.push(Port {
            name: name.cloned().unwrap_or_else(|| format!("port{}", ports.len())),
            device: format!("pci:{}", nic.address),
            kind: "pci".into(),
            argument: nic.address.clone(),
            speed: nic.speed,
            rx_descriptors: 0,
            tx_descriptors: 0,
            cores: crate::cores::CoreSet::default(),
        });
    }
    if ports.is_empty() {
        notes.push(
            "no network card is free for a port; name ports in a configuration (--config)".into(),
        );
    }
    ports
}
