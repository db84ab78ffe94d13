//! Routes as they are given and as they are listed.

use std::net::IpAddr;

use graph::InterfaceId;

use super::Prefix;
use crate::state::VrfId;

/// A route, as configuration or API give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// VRF that it is a route of.
    pub vrf: VrfId,
    /// Destinations.
    pub prefix: Prefix,
    /// What becomes of packets to them.
    pub target: Target,
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

/// One change of the static routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Adds a route, or replaces the one of that prefix in its VRF.
    Add(Route),
    /// Removes the route of that prefix from that VRF.
    Remove(VrfId, Prefix),
}

/// A static route to set (`Some`: its target, one user more) or to remove.
pub(super) type Step = (VrfId, Prefix, Option<u32>);

/// Where a route comes from; the earlier one wins for the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The router's own addresses and the broadcast addresses of its networks.
    Own,
    /// Configuration and API.
    Static,
    /// A neighbour on a connected network.
    Neighbor,
    /// The network of an interface's address.
    Connected,
}

/// A route as it is listed. Connected routes show as [`Target::Port`], neighbours as
/// [`Target::Via`] themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    /// VRF that it is a route of.
    pub vrf: VrfId,
    /// Destinations.
    pub prefix: Prefix,
    /// Where it comes from.
    pub source: Source,
    /// What becomes of packets to them.
    pub target: Target,
    /// Whether packets could follow it: its VRF is there, and an interface that it leads to is there and up, if it leads
    /// anywhere.
    pub usable: bool,
    /// Whether it is what packets follow: usable, and first of its prefix.
    pub active: bool,
}
