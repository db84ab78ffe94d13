//! Requests and answers of the daemon's API: HTTP/JSON on a Unix socket.
//!
//! | endpoint | asks with | answers with |
//! | --- | --- | --- |
//! | `GET /v1/version` | | [`Version`] |
//! | `GET /v1/summary` | | [`Summary`] |
//! | `GET /v1/ports` | | list of [`Port`] |
//! | `PATCH /v1/ports/{name}` | [`PortChange`] | [`Port`] |
//! | `GET /v1/queues` | | list of [`Queue`] |
//! | `GET /v1/interfaces` | | list of [`Interface`] |
//! | `GET /v1/routes` | [`RouteQuery`] | [`RoutePage`] |
//! | `GET /v1/routes/lookup` | [`LookupQuery`] | [`RouteLookup`] |
//! | `POST /v1/routes` | list of [`Route`](crate::config::Route) | [`Changed`] |
//! | `DELETE /v1/routes` | [`RouteScope`], list of [`Prefix`](crate::net::Prefix) | [`Changed`] |
//! | `GET /v1/route-sources` | | list of [`RouteSource`] |
//! | `DELETE /v1/route-sources/{source}` | [`SourceScope`] | [`Changed`] |
//! | `GET /v1/vrfs` | | list of [`Vrf`] |
//! | `GET /v1/next-hops` | | list of [`NextHop`] |
//! | `GET /v1/neighbors` | | list of [`Neighbor`] |
//! | `POST /v1/neighbors` | list of [`StaticNeighbor`](crate::config::StaticNeighbor) | [`Changed`] |
//! | `DELETE /v1/neighbors` | [`NeighborSelector`] | [`Changed`] |
//! | `GET /v1/flows` | [`FlowQuery`] | [`FlowPage`] |
//! | `POST /v1/flows` | list of [`Flow`](crate::config::Flow) | [`Changed`] |
//! | `DELETE /v1/flows` | [`FlowSelector`] | [`Changed`] |
//! | `GET /v1/clients` | | list of [`Client`] |
//! | `GET /v1/sessions/stacks` | | list of [`Stack`] |
//! | `GET /v1/sessions/listeners` | | list of [`Listener`] |
//! | `GET /v1/sessions/connections` | [`ConnectionQuery`] | [`ConnectionPage`] |
//! | `GET /v1/functions` | | list of [`Function`] |
//! | `POST /v1/functions` | [`FunctionAdd`] | [`Function`] |
//! | `DELETE /v1/functions/{id}` | | [`Changed`] |
//! | `GET /v1/workers` | | list of [`Worker`] |
//! | `GET /v1/nodes` | | list of [`Node`] |
//! | `GET /v1/drops` | | list of [`Drop`] |
//! | `GET /v1/bridges` | | list of [`Bridge`] |
//! | `GET /v1/config` | | [`Config`](crate::Config) |
//! | `POST /v1/reload` | [`Reload`] | [`Reloaded`] |
//! | `POST /v1/save` | | [`Saved`] |
//! | `POST /v1/restart` | | [`Restarting`] |
//! | `POST /v1/trace` | [`Trace`] | stream of [`TraceStep`], one per line |
//! | `POST /v1/capture` | [`Capture`] | stream of pcapng |
//!
//! Lists that change things are taken whole or not at all. Every refusal is an [`ErrorBody`].
//! Counters only grow, from the start of the daemon.

mod client;
mod connection;
mod error;
mod flow;
mod function;
mod interface;
mod observe;
mod port;
mod route;
mod session;
mod summary;
mod vrf;
mod worker;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientCounters, ClientQueues};
pub use connection::{Connection, ConnectionPage, ConnectionQuery, ConnectionState, UdpSocket};
pub use error::{ApiError, ErrorBody};
pub use flow::{FlowPage, FlowQuery, FlowSelector};
pub use function::{Function, FunctionAdd};
pub use interface::{
    Bridge, BridgeMac, BridgeMember, Interface, InterfaceKind, InterfaceMode, Neighbor,
    NeighborSelector, NeighborState,
};
pub use observe::{Capture, Direction, Trace, TraceStep};
pub use port::{Port, PortChange, PortCounters, PortState, Queue};
pub use route::{
    Changed, LookupQuery, NextHop, RouteEntry, RouteLookup, RouteOrigin, RoutePage, RouteQuery,
    RouteScope, RouteSource, SourceScope,
};
pub use session::{Listener, ListenerMember, Stack, StackCounters, StackTcp, Transport};
pub use summary::{Reload, Reloaded, Restarting, Saved, Summary, Usage, Version};
pub use vrf::Vrf;
pub use worker::{Drop, Node, Worker};

/// Version of the API: changes when an answer loses or redefines something.
pub const API_VERSION: u32 = 1;
