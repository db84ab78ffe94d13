//! Routes and static neighbours: the shapes that configuration, files and API share.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::source::Source;
use super::vrf::named;
use crate::net::{MacAddr, Prefix};

/// Next hops of one route at most.
pub const MAX_NEXT_HOPS: usize = 64;

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RouteShape", into = "RouteShape")]
pub struct Route {
    /// VRF that it is a route of; none: the default one.
    pub vrf: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// Destinations.
    pub prefix: Prefix,
    /// Administrative distance: of the usable routes to a prefix, packets follow one with the least. A prefix has one route
    /// from each source at each distance.
    pub distance: u8,
    /// Of routes with the same distance, packets follow the one with the least metric.
    pub metric: u32,
    /// What becomes of packets to them.
    pub target: RouteTarget,
}

impl Route {
    /// A static route of the default VRF, at its usual distance and with metric 0.
    #[must_use]
    pub fn new(prefix: Prefix, target: RouteTarget) -> Self {
        let source = Source::STATIC;
        Self { vrf: None, distance: source.distance(), source, prefix, metric: 0, target }
    }
}

/// What becomes of packets to a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteTarget {
    /// They go to one of these, chosen by flow: 1 to 64.
    Via(Vec<NextHop>),
    /// They leave by that interface: to its `next-hop-mac`, else to the destination itself.
    Port(String),
    /// They are looked up in the VRF of that name.
    Lookup(String),
    /// Dropped in silence.
    Blackhole,
    /// Dropped, and the sender is told.
    Unreachable,
    /// For this router.
    Local,
}

/// A router on a connected network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RouteNextHop)]
pub struct NextHop {
    /// Its address, of the route's family.
    #[schema(value_type = String, example = "192.0.2.2")]
    pub address: IpAddr,
    /// Interface that it is behind; absent: the one on whose network the address lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Share of the flows, against the other next hops' weights: 1..=64.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schema(minimum = 1, maximum = 64, default = 1)]
    pub weight: u8,
}

impl NextHop {
    /// A next hop of weight 1 on a connected network.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self { address, interface: None, weight: 1 }
    }
}

const fn one() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes by reference")]
const fn is_one(weight: &u8) -> bool {
    *weight == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes by reference")]
const fn is_zero(metric: &u32) -> bool {
    *metric == 0
}

/// A route as it is written: exactly one of `via`, `port`, `lookup` and `kind`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RouteShape {
    /// VRF that it is a route of; absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vrf: Option<String>,
    /// Where it comes from: `static` or the name of a protocol, 1 to 15 letters, digits, `.`, `_` and `-`. Absent: `static`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    /// Destinations.
    prefix: Prefix,
    /// Administrative distance, 0 to 254: of the usable routes to a prefix, packets follow one with the least. A prefix has one
    /// route from each source at each distance. Absent: the usual one of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 254)]
    distance: Option<u8>,
    /// Of routes with the same distance, packets follow the one with the least metric. Absent: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    metric: u32,
    /// Next hops: 1 to 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    via: Option<Vec<NextHop>>,
    /// Egress interface, instead of next hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    /// VRF in which packets are looked up instead, `default` being the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lookup: Option<String>,
    /// Instead of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<RouteKind>,
}

/// What becomes of packets that are not sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum RouteKind {
    /// Dropped in silence.
    Blackhole,
    /// Dropped, and the sender is told.
    Unreachable,
    /// For this router.
    Local,
}

/// A route's shape is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a route has exactly one of via, port, lookup and kind; give one of them")]
pub struct RouteShapeError;

impl TryFrom<RouteShape> for Route {
    type Error = RouteShapeError;

    fn try_from(shape: RouteShape) -> Result<Self, RouteShapeError> {
        let target = match (shape.via, shape.port, shape.lookup, shape.kind) {
            (Some(via), None, None, None) => RouteTarget::Via(via),
            (None, Some(port), None, None) => RouteTarget::Port(port),
            (None, None, Some(vrf), None) => RouteTarget::Lookup(vrf),
            (None, None, None, Some(RouteKind::Blackhole)) => RouteTarget::Blackhole,
            (None, None, None, Some(RouteKind::Unreachable)) => RouteTarget::Unreachable,
            (None, None, None, Some(RouteKind::Local)) => RouteTarget::Local,
            _ => return Err(RouteShapeError),
        };
        let source = shape.source.unwrap_or(Source::STATIC);
        let distance = shape.distance.unwrap_or_else(|| source.distance());
        let (vrf, prefix, metric) = (named(shape.vrf), shape.prefix, shape.metric);
        Ok(Self { vrf, source, prefix, distance, metric, target })
    }
}

impl From<Route> for RouteShape {
    fn from(route: Route) -> Self {
        let Route { vrf, source, prefix, distance, metric, target } = route;
        let distance = Some(distance).filter(|distance| *distance != source.distance());
        let source = Some(source).filter(|source| *source != Source::STATIC);
        let (via, port, lookup, kind) = (None, None, None, None);
        let mut shape = Self { vrf, source, prefix, distance, metric, via, port, lookup, kind };
        match target {
            RouteTarget::Via(via) => shape.via = Some(via),
            RouteTarget::Port(port) => shape.port = Some(port),
            RouteTarget::Lookup(vrf) => shape.lookup = Some(vrf),
            RouteTarget::Blackhole => shape.kind = Some(RouteKind::Blackhole),
            RouteTarget::Unreachable => shape.kind = Some(RouteKind::Unreachable),
            RouteTarget::Local => shape.kind = Some(RouteKind::Local),
        }
        shape
    }
}

impl PartialSchema for Route {
    fn schema() -> RefOr<Schema> {
        RouteShape::schema()
    }
}

impl ToSchema for Route {
    fn name() -> Cow<'static, str> {
        "Route".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        RouteShape::schemas(schemas);
    }
}

/// A neighbour that is known without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticNeighbor {
    /// Interface that it is behind.
    pub interface: String,
    /// Its address.
    #[schema(value_type = String, example = "192.0.2.9")]
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: MacAddr,
}
