//! The kernel's side of ports: a packet function between a port and its tap on every worker.

use std::net::IpAddr;

use control::config;
use graph::{Filter, KernelFilter, KernelSide, PortId};
use wire::EtherType;

use crate::daemon::Daemon;

/// On the workers they come after functions and clients, whose numbers are lower.
const FIRST: u64 = 1 << 63;

/// A port and its tap, as the workers have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Side {
    config: config::KernelSide,
    ids: (PortId, PortId),
}

impl Daemon {
    /// Gives the workers the kernel's sides as configuration and ports are now.
    pub(crate) fn renew_kernel_sides(&mut self) {
        let id = |name: &str| self.ports.iter().find(|port| port.config.name == name)?.id();
        let wanted: Vec<Side> = self
            .config
            .kernel_sides
            .iter()
            .filter_map(|config| {
                let ids = (id(&config.port)?, id(&config.tap)?);
                Some(Side { config: config.clone(), ids })
            })
            .collect();
        if wanted == self.kernel_sides {
            return;
        }
        for at in 0..self.kernel_sides.len() {
            let number = FIRST + at as u64;
            for worker in self.workers.iter() {
                if let Err(error) =
                    self.workers.call(worker, move |state| state.remove_function(number))
                {
                    tracing::error!("{error}");
                }
            }
        }
        for (at, side) in wanted.iter().enumerate() {
            self.share_mac(&side.config);
            let number = FIRST + at as u64;
            let function = self.function_of(side);
            for worker in self.workers.iter() {
                let function = Box::new(function.clone());
                let added =
                    self.workers.call(worker, move |state| state.add_function(number, function));
                if let Err(error) = added {
                    tracing::error!("{error}");
                }
            }
        }
        self.kernel_sides = wanted;
    }

    fn function_of(&self, side: &Side) -> KernelSide {
        let filters = side.config.filters.iter().filter_map(filter);
        let addresses = side.config.addresses.iter().flat_map(about);
        KernelSide {
            port: side.ids.0,
            tap: side.ids.1,
            filters: addresses.chain(filters).collect(),
            others: side.config.others,
            pool: self.pool,
        }
    }

    /// On the wire the kernel is the same station as the port.
    fn share_mac(&mut self, side: &config::KernelSide) {
        let mac = self.ports.iter().find(|port| port.config.name == side.port).map(|port| port.mac);
        let tap = self.ports.iter_mut().find(|port| port.config.name == side.tap);
        let (Some(mac), Some(tap)) = (mac, tap.and_then(|port| port.open.as_mut())) else { return };
        if let Err(error) = tap.set_mac(wire::MacAddr::from(mac).octets()) {
            tracing::warn!(
                "{error}; frames for the kernel need the port's address {mac} on {}",
                side.tap
            );
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
