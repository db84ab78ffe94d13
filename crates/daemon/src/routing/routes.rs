//! Routes by the names of their interfaces, and by the numbers that the tables have.

use std::collections::BTreeMap;
use std::sync::Arc;

use control::config::{self, Config, NextHop, Route, RouteTarget};
use control::net::Prefix;
use forward::rib::{self, Change, NextHopMacs, RouteInfo, Target, Via};
use forward::state::{DEFAULT_VRF, VrfId};

use super::{Routing, Topology};

/// What a route names and has no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unknown {
    #[error("there is no interface {0}; see millrace show interfaces")]
    Interface(String),
    #[error("there is no VRF {0}; see millrace show vrfs")]
    Vrf(String),
}

/// Where a route stands: there is one of each.
pub(crate) type Place = (VrfId, rib::Prefix);

/// A route for the tables.
pub(super) fn to_rib(route: &Route, topology: &Topology) -> Result<rib::Route, Unknown> {
    let unknown = |name: &str| Unknown::Interface(name.to_owned());
    let id = |name: &str| topology.interfaces.get(name).ok_or_else(|| unknown(name));
    let vrf = |name: Option<&str>| {
        let unknown = || Unknown::Vrf(name.unwrap_or_default().to_owned());
        topology.vrf(name).ok_or_else(unknown)
    };
    let target = match &route.target {
        RouteTarget::Via(hops) => {
            let hop = |hop: &NextHop| {
                let interface = hop.interface.as_deref().map(id).transpose()?;
                Ok(Via { address: hop.address, interface, weight: hop.weight })
            };
            Target::Via(hops.iter().map(hop).collect::<Result<_, _>>()?)
        }
        RouteTarget::Port(name) => Target::Port(id(name)?),
        RouteTarget::Lookup(name) => Target::Vrf(vrf(Some(name.as_str()))?),
        RouteTarget::Blackhole => Target::Blackhole,
        RouteTarget::Unreachable => Target::Unreachable,
        RouteTarget::Local => Target::Local,
    };
    let vrf = vrf(route.vrf.as_deref())?;
    Ok(rib::Route { vrf, prefix: prefix_to_rib(route.prefix), target })
}

/// A prefix for the tables.
pub(crate) fn prefix_to_rib(prefix: Prefix) -> rib::Prefix {
    // The length is at most the family's, in either type.
    rib::Prefix::containing(prefix.address(), prefix.length())
        .unwrap_or_else(|_| rib::Prefix::host(prefix.address()))
}

/// A prefix as people see it.
pub(crate) fn prefix_from_rib(prefix: rib::Prefix) -> Prefix {
    Prefix::of(prefix.address(), prefix.length())
}

/// The fixed MAC addresses of what is beyond the ports, for routes by egress port.
pub(crate) fn next_hop_macs(config: &Config, topology: &Topology) -> NextHopMacs {
    let ports = config.ports.iter().filter_map(|port| {
        let mac = port.next_hop_mac?;
        Some((topology.interfaces.get(&port.name)?, mac.into()))
    });
    ports.collect::<BTreeMap<_, _>>()
}

impl Routing {
    /// A route for the tables.
    pub(crate) fn route(&self, route: &Route) -> Result<rib::Route, Unknown> {
        to_rib(route, &self.topology)
    }

    /// Where a route stands, or would stand. `None`: there is no such VRF.
    pub(crate) fn place(&self, vrf: Option<&str>, prefix: Prefix) -> Option<Place> {
        Some((self.topology.vrf(vrf)?, prefix_to_rib(prefix)))
    }

    /// Notes the places of the routes that come from files, sorted. Returns those before.
    pub(crate) fn exchange_file_routes(&mut self, places: Arc<Vec<Place>>) -> Arc<Vec<Place>> {
        std::mem::replace(&mut self.file_routes, places)
    }

    /// Whether the route there came from a file.
    pub(crate) fn is_from_file(&self, place: &Place) -> bool {
        self.file_routes.binary_search(place).is_ok()
    }

    /// Changes static routes: all of them or, on an error, none.
    pub(crate) fn change_routes(&mut self, changes: &[Change]) -> Result<(), rib::ApplyError> {
        self.slow.apply(changes)?;
        self.changes += 1;
        self.changed.notify_one();
        Ok(())
    }

    /// A route as people see it. `None`: what it names has no name any more.
    pub(crate) fn shown(&self, route: &RouteInfo) -> Option<Route> {
        let name = |id| self.topology.interfaces.name(id).map(str::to_owned);
        let hop = |hop: &Via| NextHop {
            address: hop.address,
            interface: hop.interface.and_then(name),
            weight: hop.weight,
        };
        let target = match &route.target {
            Target::Via(hops) => RouteTarget::Via(hops.iter().map(hop).collect()),
            Target::Port(id) => RouteTarget::Port(name(*id)?),
            Target::Blackhole => RouteTarget::Blackhole,
            Target::Unreachable => RouteTarget::Unreachable,
            Target::Local | Target::Broadcast | Target::Flood(_) => RouteTarget::Local,
            Target::Vrf(DEFAULT_VRF) => RouteTarget::Lookup(config::DEFAULT_VRF.to_owned()),
            Target::Vrf(id) => RouteTarget::Lookup(self.topology.vrf_name(*id)?.to_owned()),
        };
        let vrf = match route.vrf {
            DEFAULT_VRF => None,
            id => Some(self.topology.vrf_name(id)?.to_owned()),
        };
        Some(Route { vrf, prefix: prefix_from_rib(route.prefix), target })
    }

    /// Whether configuration, files or API have a route there.
    pub(crate) fn has_static_route(&self, (vrf, prefix): Place) -> bool {
        let routes = self.rib().routes_of(vrf, prefix);
        routes.iter().any(|route| route.source == rib::Source::Static)
    }
}

/// Why routes were refused; none of them was added.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RoutesError {
    #[error("route {}: {error}", at + 1)]
    Unfit { at: usize, error: control::config::RouteError },
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error(transparent)]
    Apply(#[from] rib::ApplyError),
}
