//! Why a change of routes is refused.

use std::net::IpAddr;

use graph::InterfaceId;

use super::route::MOST_DISTANCE;
use super::{Place, Prefix, Source};
use crate::state::{GROUP_SLOTS, VrfId};

/// Why a route can't be added or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// There is nothing to remove.
    #[error("there is no {} route {}", .0.source, .0.prefix)]
    NoSuchRoute(Place),
    /// Interfaces and neighbours alone make them.
    #[error("{0} routes follow from interfaces and neighbours: give another source")]
    Implied(Source),
    /// The distance is no route's that is given.
    #[error("distance {0} is no route's: give 0 to {MOST_DISTANCE}")]
    Distance(u8),
    /// The prefix is never routed.
    #[error("{0} is multicast or link-local and is not routed: give a unicast prefix")]
    NotRouted(Prefix),
    /// Interfaces alone make broadcast routes.
    #[error("{0}: broadcast routes come from interface addresses and can't be added")]
    Broadcast(Prefix),
    /// No next hop.
    #[error("route {0} has no next hop: give 1 to {GROUP_SLOTS}")]
    NoNextHop(Prefix),
    /// Too many next hops.
    #[error("route {prefix} has {count} next hops: at most {GROUP_SLOTS} fit")]
    TooManyNextHops {
        /// The route.
        prefix: Prefix,
        /// Its next hops.
        count: usize,
    },
    /// Weight 0.
    #[error("next hop {0} has weight 0: give 1 to {GROUP_SLOTS}")]
    Weight(IpAddr),
    /// A next hop of the other family.
    #[error("next hop {address} is not of the family of {prefix}")]
    FamilyMismatch {
        /// The route.
        prefix: Prefix,
        /// Its next hop.
        address: IpAddr,
    },
    /// The next hop can't be a router.
    #[error("next hop {0} is not another single host's address")]
    NotAHost(IpAddr),
    /// A link-local next hop could be on any link.
    #[error("next hop {0} is link-local: name its interface too")]
    LinkLocal(IpAddr),
    /// The next hop is on no connected network.
    #[error(
        "next hop {0} is on no connected network: add an address of its network to an interface, or name its interface"
    )]
    NextHopUnreachable(IpAddr),
    /// There is no such VRF.
    #[error("VRF {0} does not exist: add it to the configuration")]
    NoSuchVrf(VrfId),
    /// The egress interface is in another VRF than the route.
    #[error(
        "interface {0} is in another VRF than the route: look up in that one, or name a next hop behind it"
    )]
    OtherVrf(InterfaceId),
    /// A look-up that leads to itself.
    #[error("route {0} leads to its own VRF: name another, or remove the route")]
    SameVrf(Prefix),
    /// The interface does not exist or does not route.
    #[error("interface {0} does not exist or is not routed")]
    NoSuchInterface(InterfaceId),
    /// More pairs of source and distance than can be compared.
    #[error("more than {limit} different sources and distances: give fewer")]
    TooManySources {
        /// The limit.
        limit: usize,
    },
    /// More routes than the limit.
    #[error("more than {limit} IPv{family} routes: raise limits.routes{family}")]
    TooManyRoutes {
        /// 4 or 6.
        family: u8,
        /// The limit.
        limit: usize,
    },
    /// The look-up table itself is full.
    #[error("the IPv{family} look-up table is full: raise limits.routes{family}")]
    TableFull {
        /// 4 or 6.
        family: u8,
    },
    /// No next-hop index is free.
    #[error("more than {limit} next hops: raise limits.next-hops")]
    TooManyHops {
        /// The limit.
        limit: usize,
    },
    /// No group is free.
    #[error("more than {limit} different sets of next hops")]
    TooManyGroups {
        /// The limit.
        limit: usize,
    },
}

/// A batch that was refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("change {} of the batch: {error}; nothing was changed", at + 1)]
pub struct ApplyError {
    /// Place of the offending change in the batch, from 0.
    pub at: usize,
    /// What is wrong with it.
    #[source]
    pub error: RouteError,
}
