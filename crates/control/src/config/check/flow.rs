//! Whether a flow fits.

use std::net::IpAddr;

use crate::config::{Config, Flow};
use crate::net::{MacAddr, shortened};

/// A flow does not fit: `what is wrong; what would be right`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The stage is off.
    #[error("there is no room for {family} flows; set limits.{key} to their number")]
    Off {
        /// IPv4 or IPv6.
        family: &'static str,
        /// The limit's key.
        key: &'static str,
    },
    /// Families differ.
    #[error("{key} {address} is not of the source's family; use addresses of one family")]
    Family {
        /// What differs.
        key: &'static str,
        /// Its value.
        address: IpAddr,
    },
    /// No such port.
    #[error("'{name}' is no port; use one of {known}")]
    Port {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// The port is in a VRF.
    #[error(
        "port '{port}' is in VRF '{vrf}', and flows are of the default one; use a port of that"
    )]
    Vrf {
        /// The port.
        port: String,
        /// Its VRF.
        vrf: String,
    },
    /// The destination MAC is not given, and the port has none either.
    #[error("destination_mac is missing; give it, or next-hop-mac of port '{0}'")]
    NoMac(String),
    /// A group's MAC address.
    #[error("{key} {mac} is not the address of one station; use one with an even first byte")]
    Mac {
        /// Which.
        key: &'static str,
        /// Its value.
        mac: MacAddr,
    },
    /// Ports for a protocol that has none.
    #[error("protocol {0} has no ports; use 0 for source_port and destination_port")]
    NoPorts(u8),
    /// New ports for a protocol whose checksum covers the whole packet.
    #[error(
        "protocol {0} keeps its ports; leave new_source_port and new_destination_port to TCP, UDP and UDP-Lite"
    )]
    FixedPorts(u8),
}

impl FlowError {
    /// The column of the file, or key of the API's body, that it is about.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Off { .. } => "source",
            Self::Family { key, .. } | Self::Mac { key, .. } => key,
            Self::Port { .. } | Self::Vrf { .. } => "egress_port",
            Self::NoMac(_) => "destination_mac",
            Self::NoPorts(_) | Self::FixedPorts(_) => "protocol",
        }
    }
}

/// Its checksum is a CRC of the whole packet (RFC 9260 6.8), ports included.
const SCTP: u8 = 132;

/// Whether packets of that protocol have ports where TCP has them: TCP, UDP, SCTP, UDP-Lite.
const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | SCTP | 136)
}

impl Config {
    /// Whether a flow fits the ports. The one check of flow files and API.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn check_flow(&self, flow: &Flow) -> Result<(), FlowError> {
        let v4 = flow.source.is_ipv4();
        let (family, key, room) = if v4 {
            ("IPv4", "flows4", self.limits.flows4)
        } else {
            ("IPv6", "flows6", self.limits.flows6)
        };
        if room == 0 {
            return Err(FlowError::Off { family, key });
        }
        let addresses = [
            ("destination", Some(flow.destination)),
            ("new_source", flow.new_source),
            ("new_destination", flow.new_destination),
        ];
        for (key, address) in addresses {
            if let Some(address) = address.filter(|address| address.is_ipv4() != v4) {
                return Err(FlowError::Family { key, address });
            }
        }
        let macs = [("source_mac", flow.source_mac), ("destination_mac", flow.destination_mac)];
        for (key, mac) in macs {
            if let Some(mac) = mac.filter(|mac| !mac.is_unicast()) {
                return Err(FlowError::Mac { key, mac });
            }
        }
        let renumbered = flow.new_source_port.is_some() || flow.new_destination_port.is_some();
        let numbered = renumbered || [flow.source_port, flow.destination_port] != [0, 0];
        if numbered && !has_ports(flow.protocol) {
            return Err(FlowError::NoPorts(flow.protocol));
        }
        if renumbered && flow.protocol == SCTP {
            return Err(FlowError::FixedPorts(flow.protocol));
        }
        let port = self.port(&flow.egress_port);
        if let Some((port, vrf)) = port.and_then(|port| Some((port, port.vrf.clone()?))) {
            return Err(FlowError::Vrf { port: port.name.clone(), vrf });
        }
        match port {
            None => {
                let known: Vec<_> = self.ports.iter().take(12).map(|p| p.name.as_str()).collect();
                let name = shortened(&flow.egress_port);
                Err(FlowError::Port { name, known: known.join(", ") })
            }
            Some(port) if flow.destination_mac.is_none() && port.next_hop_mac.is_none() => {
                Err(FlowError::NoMac(port.name.clone()))
            }
            Some(_) => Ok(()),
        }
    }
}
