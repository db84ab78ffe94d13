//! Routes as they are given and as they are listed.

use std::net::IpAddr;

use graph::InterfaceId;

use super::layer::{Chosen, Slot};
use super::{Prefix, Source};
use crate::state::VrfId;

/// Distance of static routes unless they say another.
pub const STATIC_DISTANCE: u8 = 1;

/// Greatest distance of a route that somebody gives.
pub const MOST_DISTANCE: u8 = 254;

/// Where a route stands: there is one of each. Routes to one prefix with other distances or from other sources are kept
/// beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// VRF that it is a route of.
    pub vrf: VrfId,
    /// Destinations.
    pub prefix: Prefix,
    /// Where it comes from.
    pub source: Source,
    /// Administrative distance: of the usable routes to a prefix, packets follow one with the least.
    pub distance: u8,
}

impl Place {
    /// Of a static route at its usual distance.
    #[must_use]
    pub const fn of_static(vrf: VrfId, prefix: Prefix) -> Self {
        Self { vrf, prefix, source: Source::STATIC, distance: STATIC_DISTANCE }
    }

    pub(super) const fn slot(&self) -> Slot {
        Slot { distance: self.distance, source: self.source }
    }
}

/// A route, as configuration or API give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where it stands.
    pub place: Place,
    /// Of routes with the same distance, packets follow the one with the least metric, then the one whose source comes first by
    /// name.
    pub metric: u32,
    /// What becomes of packets to them.
    pub target: Target,
}

impl Route {
    /// A static route at its usual distance, with metric 0.
    #[must_use]
    pub const fn of_static(vrf: VrfId, prefix: Prefix, target: Target) -> Self {
        Self { place: Place::of_static(vrf, prefix), metric: 0, target }
    }
}

/// What becomes of packets to a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// They go to one of these routers, chosen by flow: 1 to 64.
    Via(Vec<Via>),
    /// They leave by that interface: to its fixed next-hop MAC, else to the destination itself.
    Port(InterfaceId),
    /// Dropped in silence.
    Blackhole,
    /// Dropped, and the sender is told.
    Unreachable,
    /// They are looked up in that VRF.
    Vrf(VrfId),
    /// For this router.
    Local,
    /// Broadcast on a connected network. Only interfaces make such routes.
    Broadcast,
    /// Broadcast on that interface's link. Only interfaces make such routes, where directed
    /// broadcasts are forwarded.
    Flood(InterfaceId),
}

/// A target as it is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Goal {
    /// As a route of that VRF names it; the next hops of [`Target::Via`] sorted, each once.
    Route(VrfId, Target),
    /// The network of an interface.
    Connected(InterfaceId),
}

/// A router on a connected network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Via {
    /// Its address, of the route's family.
    pub address: IpAddr,
    /// Interface that it is behind; `None`: the one on whose network the address lies.
    pub interface: Option<InterfaceId>,
    /// Share of the flows, against the other next hops' weights: from 1.
    pub weight: u8,
}

/// One change of the routes that are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Adds a route, or replaces the one of its place.
    Add(Route),
    /// Removes the route of that place.
    Remove(Place),
}

/// A route to set (its target has one user more) or to remove.
pub(super) type Step = (Place, Option<Chosen>);

/// A route as it is listed. Connected routes show as [`Target::Port`], neighbours as
/// [`Target::Via`] themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    /// Where it stands.
    pub place: Place,
    /// Its metric.
    pub metric: u32,
    /// What becomes of packets to them.
    pub target: Target,
    /// Whether packets could follow it: its VRF is there, and an interface that it leads to is there and up, if it leads
    /// anywhere.
    pub usable: bool,
    /// Whether it is what packets follow: usable, and first of its prefix.
    pub active: bool,
}
