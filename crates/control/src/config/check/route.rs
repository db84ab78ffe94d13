//! Whether a route fits.

use std::net::IpAddr;

use super::interfaces::is_link_local;
use crate::config::{
    Config, DEFAULT_VRF, MAX_NEXT_HOPS, MOST_DISTANCE, NextHop, Route, RouteTarget, Source,
};
use crate::net::{Prefix, shortened};

/// A route does not fit: `what is wrong; what would be right`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No next hop.
    #[error("{0} has no next hop; give 1 to 64, or kind = \"blackhole\"")]
    NoNextHop(Prefix),
    /// Too many next hops.
    #[error("{prefix} has {count} next hops; use at most 64")]
    NextHops {
        /// The route.
        prefix: Prefix,
        /// Its next hops.
        count: usize,
    },
    /// Weight out of bounds.
    #[error("next hop {address} has weight {weight}; use 1 to 64")]
    Weight {
        /// The next hop.
        address: IpAddr,
        /// Its weight.
        weight: u8,
    },
    /// The weights cannot be kept apart in a group of 64 slots.
    #[error("{prefix} has weights that sum up to {sum}; use at most 64 in all")]
    Weights {
        /// The route.
        prefix: Prefix,
        /// The sum.
        sum: u32,
    },
    /// Families differ.
    #[error("next hop {address} is not of the family of {prefix}; use one that is")]
    Family {
        /// The route.
        prefix: Prefix,
        /// The next hop.
        address: IpAddr,
    },
    /// Named twice.
    #[error("next hop {0} is given twice; give it once, with a weight")]
    Twice(IpAddr),
    /// No unicast address.
    #[error("next hop {0} is not the address of one host; use a router's unicast address")]
    NotHost(IpAddr),
    /// The router itself.
    #[error("next hop {0} is an own address; use another router's, or kind = \"local\"")]
    Own(IpAddr),
    /// A link-local address without interface.
    #[error("next hop {0} is link-local; add its interface")]
    LinkLocal(IpAddr),
    /// On no connected network.
    #[error("next hop {0} is on no interface's network; add its interface, or an address near it")]
    Unreachable(IpAddr),
    /// No such interface.
    #[error("'{name}' is no interface; use one of {known}")]
    Interface {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// The interface is a bridge's member or cross-connected.
    #[error("'{name}' is bridged or cross-connected and cannot route; use one of {known}")]
    Layer2 {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// No such VRF to be a route of.
    #[error("'{name}' is no VRF; use one of {known}, or none for the default one")]
    Vrf {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// No such VRF to be looked up in.
    #[error("'{name}' is no VRF to look up in; use one of {known}, or 'default'")]
    Lookup {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// Whoever has the destination address is looked for in the route's own VRF.
    #[error(
        "'{name}' is in VRF '{vrf}'; use lookup = \"{vrf}\", or a next hop with that interface"
    )]
    OtherVrf {
        /// The interface.
        name: String,
        /// Its VRF.
        vrf: String,
    },
    /// It leads to where it is.
    #[error("{0} is to be looked up in its own VRF; name another")]
    SameVrf(Prefix),
    /// The prefix is an interface's own network.
    #[error("{prefix} is the network of '{interface}' already; remove the route")]
    Connected {
        /// The route.
        prefix: Prefix,
        /// The interface.
        interface: String,
    },
    /// Interfaces and neighbours alone make such routes.
    #[error("routes from '{0}' follow from interfaces and neighbours; use another source")]
    Implied(Source),
    /// The distance is no route's.
    #[error("distance {0} is out of bounds; use 0 to {MOST_DISTANCE}")]
    Distance(u8),
    /// Multicast is not routed.
    #[error("{0} is multicast, which is not routed; remove the route")]
    Multicast(Prefix),
}

impl RouteError {
    /// The key of the configuration or of the API's body that it is about.
    #[must_use]
    pub fn key(&self, route: &Route) -> &'static str {
        match self {
            Self::Connected { .. } | Self::Multicast(_) => "prefix",
            Self::Implied(_) => "source",
            Self::Distance(_) => "distance",
            Self::Vrf { .. } => "vrf",
            Self::Lookup { .. } | Self::SameVrf(_) => "lookup",
            _ if matches!(route.target, RouteTarget::Port(_)) => "port",
            _ => "via",
        }
    }
}

impl Config {
    /// Whether a route fits the interfaces. The one check of configuration, route files and API.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn check_route(&self, route: &Route) -> Result<(), RouteError> {
        let prefix = route.prefix;
        if route.source.is_implied() {
            return Err(RouteError::Implied(route.source.clone()));
        }
        if route.distance > MOST_DISTANCE {
            return Err(RouteError::Distance(route.distance));
        }
        if prefix.length() > 0 && prefix.address().is_multicast() {
            return Err(RouteError::Multicast(prefix));
        }
        let vrf = route.vrf.as_deref();
        if let Some(name) = vrf.filter(|name| !self.has_vrf(name)) {
            return Err(RouteError::Vrf { name: shortened(name), known: self.vrf_names() });
        }
        // A protocol may know a network that is connected, and leads to it while the link is down.
        let by_hand = route.source == Source::STATIC;
        let mut interfaces = self.interfaces().filter(|i| by_hand && i.vrf == vrf);
        if let Some(own) = interfaces.find(|i| i.addresses.iter().any(|a| a.network() == prefix)) {
            return Err(RouteError::Connected { prefix, interface: own.name.to_owned() });
        }
        match &route.target {
            RouteTarget::Via(next_hops) => self.check_next_hops((vrf, prefix), next_hops),
            RouteTarget::Port(name) => self.check_port(vrf, name),
            RouteTarget::Lookup(name) => self.check_lookup((vrf, prefix), name),
            RouteTarget::Blackhole | RouteTarget::Unreachable | RouteTarget::Local => Ok(()),
        }
    }

    fn check_port(&self, vrf: Option<&str>, name: &str) -> Result<(), RouteError> {
        self.check_routed(name)?;
        match self.interface(name) {
            Some(interface) if interface.vrf != vrf => {
                let vrf = interface.vrf.unwrap_or(DEFAULT_VRF).to_owned();
                Err(RouteError::OtherVrf { name: name.to_owned(), vrf })
            }
            _ => Ok(()),
        }
    }

    fn check_lookup(
        &self,
        (vrf, prefix): (Option<&str>, Prefix),
        name: &str,
    ) -> Result<(), RouteError> {
        if name == vrf.unwrap_or(DEFAULT_VRF) {
            return Err(RouteError::SameVrf(prefix));
        }
        if name != DEFAULT_VRF && !self.has_vrf(name) {
            return Err(RouteError::Lookup { name: shortened(name), known: self.vrf_names() });
        }
        Ok(())
    }

    fn check_next_hops(
        &self,
        (vrf, prefix): (Option<&str>, Prefix),
        next_hops: &[NextHop],
    ) -> Result<(), RouteError> {
        if next_hops.is_empty() {
            return Err(RouteError::NoNextHop(prefix));
        }
        if next_hops.len() > MAX_NEXT_HOPS {
            return Err(RouteError::NextHops { prefix, count: next_hops.len() });
        }
        let sum: u32 = next_hops.iter().map(|hop| u32::from(hop.weight)).sum();
        for (index, hop) in next_hops.iter().enumerate() {
            let address = hop.address;
            let same =
                |other: &NextHop| other.address == address && other.interface == hop.interface;
            if !(1..=64).contains(&hop.weight) {
                return Err(RouteError::Weight { address, weight: hop.weight });
            }
            if address.is_ipv4() != prefix.address().is_ipv4() {
                return Err(RouteError::Family { prefix, address });
            }
            if next_hops.iter().take(index).any(same) {
                return Err(RouteError::Twice(address));
            }
            self.check_next_hop(vrf, hop)?;
        }
        if sum > 64 { Err(RouteError::Weights { prefix, sum }) } else { Ok(()) }
    }

    fn check_next_hop(&self, vrf: Option<&str>, hop: &NextHop) -> Result<(), RouteError> {
        let address = hop.address;
        // The interface may be in another VRF, and the next hop with it.
        let named = hop.interface.as_deref().and_then(|name| self.interface(name));
        let on = named.map_or(vrf, |interface| interface.vrf);
        if !self.is_host(on, address) {
            return Err(RouteError::NotHost(address));
        }
        if self.is_own(on, address) {
            return Err(RouteError::Own(address));
        }
        match &hop.interface {
            Some(name) => self.check_routed(name),
            None if is_link_local(address) => Err(RouteError::LinkLocal(address)),
            None if self.connected(vrf, address).is_none() => Err(RouteError::Unreachable(address)),
            None => Ok(()),
        }
    }

    fn check_routed(&self, name: &str) -> Result<(), RouteError> {
        let known = || self.routed_names();
        if self.interface(name).is_none() {
            return Err(RouteError::Interface { name: shortened(name), known: known() });
        }
        if self.is_layer2(name) {
            return Err(RouteError::Layer2 { name: name.to_owned(), known: known() });
        }
        Ok(())
    }
}
