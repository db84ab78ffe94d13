//! Whether a static neighbour fits.

use std::net::IpAddr;

use super::interfaces::is_link_local;
use crate::config::{Config, StaticNeighbor};
use crate::net::{MacAddr, shortened};

/// A static neighbour does not fit: `what is wrong; what would be right`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeighborError {
    /// No such interface.
    #[error("'{name}' is no interface; use one of {known}")]
    Interface {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// The interface is a bridge's member or cross-connected.
    #[error("'{name}' is bridged or cross-connected and has no neighbours; use one of {known}")]
    Layer2 {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// No unicast address.
    #[error("{0} is not the address of one host; use a unicast address")]
    NotHost(IpAddr),
    /// The router itself.
    #[error("{0} is an own address; use another host's")]
    Own(IpAddr),
    /// On another interface's network.
    #[error("{address} is on the network of '{other}'; use that interface")]
    Elsewhere {
        /// The neighbour.
        address: IpAddr,
        /// The interface that it belongs to.
        other: String,
    },
    /// A group's MAC address.
    #[error("{0} is not the address of one station; use one with an even first byte")]
    Mac(MacAddr),
}

impl NeighborError {
    /// The key of the configuration or of the API's body that it is about.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Interface { .. } | Self::Layer2 { .. } => "interface",
            Self::NotHost(_) | Self::Own(_) | Self::Elsewhere { .. } => "address",
            Self::Mac(_) => "mac",
        }
    }
}

impl Config {
    /// Whether a static neighbour fits the interfaces. An address on no connected network is
    /// taken: it can be the next hop of a route that names its interface.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn check_neighbor(&self, neighbor: &StaticNeighbor) -> Result<(), NeighborError> {
        let StaticNeighbor { interface: name, address, mac } = neighbor;
        let known = || self.routed_names();
        let Some(vrf) = self.interface(name).map(|interface| interface.vrf) else {
            return Err(NeighborError::Interface { name: shortened(name), known: known() });
        };
        if self.is_layer2(name) {
            return Err(NeighborError::Layer2 { name: name.clone(), known: known() });
        }
        if !self.is_host(vrf, *address) {
            return Err(NeighborError::NotHost(*address));
        }
        if self.is_own(vrf, *address) {
            return Err(NeighborError::Own(*address));
        }
        match self.connected(vrf, *address) {
            Some(other) if other.name != name && !is_link_local(*address) => {
                let (address, other) = (*address, other.name.to_owned());
                Err(NeighborError::Elsewhere { address, other })
            }
            _ if !mac.is_unicast() => Err(NeighborError::Mac(*mac)),
            _ => Ok(()),
        }
    }
}
