//! Routes and next hops.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::config::{Route, Source};
use crate::net::{MacAddr, Prefix};

/// Which routes `GET /v1/routes` gives.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct RouteQuery {
    /// Only routes of this VRF; absent: of the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Only routes from this source, as in `static`, `connected`, `local` or `bgp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>)]
    pub source: Option<Source>,
    /// 4 or 6; absent: both, IPv4 first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<u8>,
    /// Only routes within this prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// Routes of one page, 1 to 100,000; absent: 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only routes behind this one in order: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Prefix>,
}

/// A page of routes, in order of family, address and length.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RoutePage {
    /// The routes.
    pub routes: Vec<RouteEntry>,
    /// Routes of that VRF and the families asked for that were given: from the source asked for, or from all.
    pub total: u64,
    /// `after` of the next page; absent: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Prefix>,
}

/// A route of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteEntry {
    /// The route.
    #[serde(flatten)]
    pub route: Route,
    /// Who made it.
    pub origin: RouteOrigin,
    /// Packets do not follow it now: its VRF is gone, or the interface, the network or the VRF that it leads to, or the link is
    /// down. It is in force again as soon as that is back. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// Packets would follow it, were there no better route to the prefix. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standby: bool,
}

/// Who made a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteOrigin {
    /// An interface's network.
    Connected,
    /// An interface's own address or broadcast address.
    Local,
    /// A neighbour on a connected network. Only a look-up shows it: neighbours have a list of their own.
    Neighbor,
    /// The configuration file.
    Config,
    /// A route file.
    File,
    /// The API.
    Api,
}

/// Which routes of the prefixes `DELETE /v1/routes` removes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct RouteScope {
    /// A VRF; absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Where they come from; absent: `static`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>)]
    pub source: Option<Source>,
    /// Their distance; absent: routes of all distances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<u8>,
}

/// `GET /v1/route-sources`: who has given routes to a VRF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteSource {
    /// Its name.
    #[schema(value_type = String)]
    pub source: Source,
    /// The VRF; absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// IPv4 routes.
    pub routes4: u64,
    /// IPv6 routes.
    pub routes6: u64,
}

/// Which routes `DELETE /v1/route-sources/{source}` withdraws.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct SourceScope {
    /// Only those of this VRF (`default`: the default one); absent: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
}

/// Address that `GET /v1/routes/lookup` looks up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct LookupQuery {
    /// VRF to look it up in; absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// A destination.
    #[param(value_type = String)]
    pub address: IpAddr,
}

/// What becomes of packets to an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteLookup {
    /// The address.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// The route that matches; absent: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteEntry>,
    /// Routes of other VRFs that are followed from there; the next hops are those of the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<RouteEntry>,
    /// The next hops that the data path uses for it now.
    pub next_hops: Vec<NextHop>,
}

/// `GET /v1/next-hops`: a next hop as the data path uses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextHop {
    /// Its number in the data path's array.
    pub index: u32,
    /// What becomes of a packet, as in `forward`, `glean`, `unresolved`, `blackhole`.
    pub kind: String,
    /// Its address, for routers on connected networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Egress interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Destination MAC address, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// Node that gets the packet with its new Ethernet header, when its address is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Largest IP packet that the egress interface takes: bytes; 0: there is none.
    pub mtu: u16,
    /// Routes and groups that use it.
    pub users: u64,
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Changed {
    /// Entries that were not there before.
    pub added: u64,
    /// Entries that were there and are different now.
    pub replaced: u64,
    /// Entries that are there no more.
    pub removed: u64,
}
