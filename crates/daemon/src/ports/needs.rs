//! What ports must have beyond their sections: it follows from the rest of the configuration.

use std::collections::HashSet;

use control::config::{Config, Miss, Poll, RouteTarget};

/// What a port is to have beyond its section of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Workers: each gets a transmit queue where the device has as many.
    pub(crate) workers: usize,
    /// Frames for any MAC address are needed.
    pub(crate) promiscuous: bool,
    /// Workers rest, so receive interrupts are of use.
    pub(crate) interrupts: bool,
}

impl Needs {
    /// Of the port `name`.
    pub(crate) fn of(config: &Config, name: &str) -> Self {
        Self {
            workers: config.workers.cores.len(),
            promiscuous: promiscuous_ports(config).contains(name),
            interrupts: config.workers.poll == Poll::Adaptive,
        }
    }
}

/// Ports that must take frames for MAC addresses that are not theirs.
fn promiscuous_ports(config: &Config) -> HashSet<&str> {
    let bridged = config.bridges.iter().flat_map(|bridge| &bridge.members);
    let crossed = config.cross_connects.iter();
    let unnumbered = takes_unnumbered(config);
    let bare = config.ports.iter();
    let bare = bare.filter(|port| port.promiscuous || unnumbered && port.addresses.is_empty());
    bridged
        .map(|member| member.interface.as_str())
        .chain(crossed.flat_map(|connect| [connect.from.as_str(), connect.to.as_str()]))
        .map(|name| port_of(config, name))
        .chain(bare.map(|port| port.name.as_str()))
        .collect()
}

/// The source document's variant routes by egress port, and its ports have no addresses.
pub(crate) fn takes_unnumbered(config: &Config) -> bool {
    config.forwarding.miss == Miss::Reflect
        || config.ports.iter().any(|port| port.next_hop_mac.is_some())
        || config.static_routes.iter().any(|route| matches!(route.target, RouteTarget::Port(_)))
}

/// The port that an interface's frames go through.
pub(crate) fn port_of<'a>(config: &'a Config, interface: &'a str) -> &'a str {
    let vlan = config.vlans.iter().find(|vlan| vlan.name == interface);
    vlan.map_or(interface, |vlan| vlan.port.as_str())
}
