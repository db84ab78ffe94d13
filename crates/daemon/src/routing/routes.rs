//! Routes by the names of their interfaces, and by the numbers that the tables have.

use std::collections::BTreeMap;
use std::sync::Arc;

use control::config::{self, Config, NextHop, Route, RouteTarget, Source};
use control::net::Prefix;
use forward::rib::{self, Change, NextHopMacs, Place, RouteInfo, Target, Via};
use forward::state::{DEFAULT_VRF, VrfId};

use super::{Routing, Topology};

/// What a route names and has no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unknown {
    #[error("there is no interface {0}; see millrace show interfaces")]
    Interface(String),
    #[error("there is no VRF {0}; see millrace show vrfs")]
    Vrf(String),
    #[error("'{0}' can't be the source of a route; see millrace route add --help")]
    Source(String),
}

/// Where a static route stands that is in a file: its VRF, prefix and distance.
pub(crate) type FilePlace = (VrfId, rib::Prefix, u8);

/// Where a static route stands among those of files.
pub(crate) fn file_place(place: &Place) -> FilePlace {
    (place.vrf, place.prefix, place.distance)
}

/// The place of a static route that is in a file.
pub(crate) fn place_of_file(&(vrf, prefix, distance): &FilePlace) -> Place {
    Place { distance, ..Place::of_static(vrf, prefix) }
}

/// A source for the tables.
pub(crate) fn source_to_rib(source: &Source) -> Result<rib::Source, Unknown> {
    // It has been checked by the same rule.
    source.name().parse().map_err(|_| Unknown::Source(source.name().to_owned()))
}

/// A source as people see it.
pub(crate) fn source_from_rib(source: rib::Source) -> Source {
    source.name().parse().unwrap_or(Source::STATIC)
}

/// A route for the tables.
pub(super) fn to_rib(route: &Route, topology: &Topology) -> Result<rib::Route, Unknown> {
    let unknown = |name: &str| Unknown::Interface(name.to_owned());
    let id = |name: &str| topology.interface(name).ok_or_else(|| unknown(name));
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
    let (vrf, prefix) = (vrf(route.vrf.as_deref())?, prefix_to_rib(route.prefix));
    let place =
        Place { vrf, prefix, source: source_to_rib(&route.source)?, distance: route.distance };
    Ok(rib::Route { place, metric: route.metric, target })
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
        Some((topology.interface(&port.name)?, mac.into()))
    });
    ports.collect::<BTreeMap<_, _>>()
}

impl Routing {
    /// A route for the tables.
    pub(crate) fn route(&self, route: &Route) -> Result<rib::Route, Unknown> {
        to_rib(route, &self.topology)
    }

    /// Where a route stands, or would stand. `None`: there is no such VRF.
    pub(crate) fn place(&self, route: &Route) -> Option<Place> {
        Some(Place {
            vrf: self.topology.vrf(route.vrf.as_deref())?,
            prefix: prefix_to_rib(route.prefix),
            source: source_to_rib(&route.source).ok()?,
            distance: route.distance,
        })
    }

    /// Notes the places of the routes that come from files, sorted. Returns those before.
    pub(crate) fn exchange_file_routes(
        &mut self,
        places: Arc<Vec<FilePlace>>,
    ) -> Arc<Vec<FilePlace>> {
        std::mem::replace(&mut self.file_routes, places)
    }

    /// Whether the route there came from a file.
    pub(crate) fn is_from_file(&self, place: &Place) -> bool {
        place.source == rib::Source::STATIC
            && self.file_routes.binary_search(&file_place(place)).is_ok()
    }

    /// Changes routes that are given: all of them or, on an error, none.
    pub(crate) fn change_routes(&mut self, changes: &[Change]) -> Result<(), rib::ApplyError> {
        self.slow.apply(changes)?;
        self.changes += 1;
        self.changed.notify_one();
        Ok(())
    }

    /// A route as people see it. `None`: what it names has no name any more.
    pub(crate) fn shown(&self, route: &RouteInfo) -> Option<Route> {
        let name = |id| self.topology.interface_name(id).map(str::to_owned);
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
        let Place { vrf, prefix, source, distance } = route.place;
        let vrf = match vrf {
            DEFAULT_VRF => None,
            id => Some(self.topology.vrf_name(id)?.to_owned()),
        };
        let (source, prefix) = (source_from_rib(source), prefix_from_rib(prefix));
        Some(Route { vrf, source, prefix, distance, metric: route.metric, target })
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
