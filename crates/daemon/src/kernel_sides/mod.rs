//! The kernel's side of ports: a packet function between a port and its tap on every worker.

use std::net::IpAddr;
use std::sync::Arc;

use control::config::{self, Config};
use dpdk::BufferPool;
use graph::{Filter, KernelFilter, KernelSide, PortId, Served};
use wire::EtherType;

use crate::ports::Ports;
use crate::workers::Crew;

/// On the workers they come after functions and clients, whose numbers are lower.
const FIRST: u64 = 1 << 63;

/// A port and its tap, as the workers have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Side {
    config: config::KernelSide,
    ids: (PortId, PortId),
}

/// The kernel's sides of ports, as the workers have them.
#[derive(Debug)]
pub(crate) struct KernelSides {
    in_force: Vec<Side>,
    /// What stacks serve, which the kernel does not get.
    served: Arc<dyn Served>,
}

/// What is to be done on the workers.
pub(crate) struct Renewal {
    /// Numbers of functions that go.
    pub(crate) gone: Vec<u64>,
    /// Functions that come, by number: one for each worker.
    pub(crate) new: Vec<(u64, Vec<KernelSide>)>,
    /// Ports and their taps, which get the ports' MAC addresses.
    pub(crate) pairs: Vec<(String, String)>,
}

impl KernelSides {
    /// None yet.
    pub(crate) fn new(served: Arc<dyn Served>) -> Self {
        Self { in_force: Vec::new(), served }
    }

    /// What configuration and ports ask for now, noted as in force. `None`: nothing new.
    pub(crate) fn renew(&mut self, config: &Config, ports: &Ports, crew: &Crew) -> Option<Renewal> {
        let wanted: Vec<Side> = config
            .kernel_sides
            .iter()
            .filter_map(|side| {
                let ids = (ports.id(&side.port)?, ports.id(&side.tap)?);
                Some(Side { config: side.clone(), ids })
            })
            .collect();
        if wanted == self.in_force {
            return None;
        }
        let gone = (FIRST..).take(self.in_force.len()).collect();
        let function = |side: &Side, pool| side.function(&self.served, pool);
        let by_worker =
            |side| crew.iter().map(|member| function(side, member.buffers.packets)).collect();
        let new = (FIRST..).zip(wanted.iter().map(by_worker)).collect();
        let pair = |side: &Side| (side.config.port.clone(), side.config.tap.clone());
        let pairs = wanted.iter().map(pair).collect();
        self.in_force = wanted;
        Some(Renewal { gone, new, pairs })
    }
}

impl Side {
    fn function(&self, served: &Arc<dyn Served>, pool: BufferPool) -> KernelSide {
        let filters = self.config.filters.iter().filter_map(filter);
        let addresses = self.config.addresses.iter().flat_map(about);
        KernelSide {
            port: self.ids.0,
            tap: self.ids.1,
            filters: addresses.chain(filters).collect(),
            others: self.config.others,
            served: Some(Arc::clone(served)),
            pool,
        }
    }
}

/// A word that graph does not know was refused with the configuration.
fn filter(filter: &config::KernelFilter) -> Option<KernelFilter> {
    let protocol = filter.protocol.as_deref().map(str::parse).transpose().ok()?;
    let found = Filter {
        host: filter.host,
        protocol,
        ether_type: filter.ether_type.map(EtherType),
        source_port: filter.source_port,
        destination_port: filter.destination_port,
        ..Filter::default()
    };
    Some(KernelFilter { filter: found, copy: filter.copy })
}

/// Everything to and about an address: packets to it, ARP, and for IPv6 what asks who has it
/// (RFC 4291 2.7.1: the solicited-node address).
fn about(address: &IpAddr) -> Vec<KernelFilter> {
    let taken = |filter| KernelFilter { filter, copy: false };
    let to =
        |destination: IpAddr| taken(Filter { destination: Some(destination), ..Filter::default() });
    match address {
        IpAddr::V4(_) => {
            let arp = EtherType::ARP;
            let arp = Filter { host: Some(*address), ether_type: Some(arp), ..Filter::default() };
            vec![to(*address), taken(arp)]
        }
        IpAddr::V6(address) => {
            let [.., a, b, c] = address.octets();
            let asked = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c];
            vec![to(IpAddr::V6(*address)), to(IpAddr::V6(asked.into()))]
        }
    }
}
