//! Routes and next hops.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use control::api::{
    Changed, ErrorBody, LookupQuery, NextHop, RouteEntry, RouteLookup, RouteOrigin, RoutePage,
    RouteQuery, RouteScope,
};
use control::config::{self, Route};
use control::net::Prefix;
use forward::nodes::MOST_LEAKS;
use forward::rib::{self, NextHopInfo, RouteInfo, Source, Target};
use forward::state::Kind;
use tokio::task::yield_now;

use super::answer::{Answer, Body, Parameters, Refusal, long};
use super::{Api, carried_through, vrfs};
use crate::daemon::{Daemon, Entering, RouteChanges};
use crate::routing::{RoutesError, prefix_from_rib, prefix_to_rib, source_to_rib};

/// Routes of a page when nothing is said, and at most.
const PAGE: u32 = 1000;
const LONGEST_PAGE: u32 = 100_000;

/// Routes that are looked at in one step: about a millisecond.
const STEP: usize = 512;

/// Routes that are changed in one request at most.
const LIST: usize = 100_000;

/// `GET /v1/routes`
#[utoipa::path(
    get,
    path = "/v1/routes",
    params(RouteQuery),
    responses(
        (status = 200, description = "A page of routes", body = RoutePage),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<RouteQuery>,
) -> Result<Response, Refusal> {
    let limit = super::trace::within(query.limit.unwrap_or(PAGE), LONGEST_PAGE, "limit")? as usize;
    let families = families(&query)?;
    let source = query.source.as_ref().map(known).transpose()?;
    let (vrf, [total4, total6]) = {
        let daemon = api.daemon.lock();
        let vrf = vrfs::find(&daemon, query.vrf.as_deref())?;
        let totals = match source {
            Some(source) => daemon.routing.rib().sources(vrf).remove(&source).unwrap_or_default(),
            None => daemon.routing.rib().len_of(vrf).into(),
        };
        (vrf, totals)
    };
    let mut page = RoutePage::default();
    for six in families {
        page.total += if six { total6 } else { total4 } as u64;
        let mut after = query.after.map(prefix_to_rib);
        if query.after.is_some_and(|after| after.address().is_ipv6()) && !six {
            continue;
        }
        while page.next.is_none() {
            let wanted = limit.saturating_sub(page.routes.len()).clamp(1, STEP);
            {
                let daemon = api.daemon.lock();
                let found = daemon.routing.rib().routes((vrf, source), six, after, wanted);
                let Some(last) = found.last().map(|route| route.place.prefix) else { break };
                after = Some(last);
                let within = |route: &&RouteInfo| {
                    let inside = |wide: Prefix| {
                        let prefix = prefix_from_rib(route.place.prefix);
                        wide.length() <= prefix.length() && wide.contains(prefix.address())
                    };
                    // Neighbours have a list of their own.
                    route.place.source != Source::NEIGHBOR && query.prefix.is_none_or(inside)
                };
                let shown = found.iter().filter(within).filter_map(|route| show(&daemon, route));
                page.routes.extend(shown);
                if page.routes.len() >= limit {
                    page.next = Some(prefix_from_rib(last));
                }
            }
            // There may be a million, and none of them within the prefix.
            yield_now().await;
        }
    }
    long(page).await
}

fn families(query: &RouteQuery) -> Result<Vec<bool>, Refusal> {
    match (query.family, query.prefix) {
        (None, None) => Ok(vec![false, true]),
        (None, Some(prefix)) => Ok(vec![prefix.address().is_ipv6()]),
        (Some(4), _) => Ok(vec![false]),
        (Some(6), _) => Ok(vec![true]),
        (Some(other), _) => Err(Refusal::invalid(format!("family is {other}"), "use 4 or 6")),
    }
}

/// `GET /v1/routes/lookup`
#[utoipa::path(
    get,
    path = "/v1/routes/lookup",
    params(LookupQuery),
    responses(
        (status = 200, description = "What becomes of packets to the address", body = RouteLookup),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn lookup(
    State(api): State<Api>,
    Parameters(query): Parameters<LookupQuery>,
) -> Answer<RouteLookup> {
    let daemon = api.daemon.lock();
    let vrf = vrfs::find(&daemon, query.vrf.as_deref())?;
    let rib = daemon.routing.rib();
    let mut found = rib.lookup(vrf, query.address);
    let route = found.route.as_ref().and_then(|route| show(&daemon, route));
    let mut then = Vec::new();
    // As far as workers follow them.
    for _ in 0..MOST_LEAKS {
        let Some(Target::Vrf(next)) = found.route.as_ref().map(|route| &route.target) else {
            break;
        };
        found = rib.lookup(*next, query.address);
        then.extend(found.route.as_ref().and_then(|route| show(&daemon, route)));
    }
    let wanted: Vec<u32> = found.next_hops.iter().map(|(index, _)| *index).collect();
    let next_hops = rib.next_hops().filter(|hop| wanted.contains(&hop.index));
    let next_hops = next_hops.map(|hop| show_next_hop(&daemon, &hop)).collect();
    Ok(Json(RouteLookup { address: query.address, route, then, next_hops }))
}

/// `POST /v1/routes`
#[utoipa::path(
    post,
    path = "/v1/routes",
    request_body = Vec<Route>,
    responses(
        (status = 200, description = "What changed", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn add(State(api): State<Api>, Body(list): Body<Vec<Route>>) -> Answer<Changed> {
    bounded(list.len())?;
    carried_through(async move {
        let entering = api.daemon.enter().await;
        let config = entering.lock().config.clone();
        let mut changes = RouteChanges::default();
        let added = changes.add(&entering, &config, &list).await;
        answer(&entering, changes, added).await
    })
    .await
}

/// `DELETE /v1/routes`
#[utoipa::path(
    delete,
    path = "/v1/routes",
    params(RouteScope),
    request_body = Vec<Prefix>,
    responses(
        (status = 200, description = "What changed", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    Parameters(scope): Parameters<RouteScope>,
    Body(list): Body<Vec<Prefix>>,
) -> Answer<Changed> {
    bounded(list.len())?;
    carried_through(async move {
        let entering = api.daemon.enter().await;
        let mut changes = RouteChanges::default();
        let vrf = vrfs::find(&entering.lock(), scope.vrf.as_deref())?;
        let source = scope.source.as_ref().map_or(Ok(Source::STATIC), known)?;
        let prefixes: Vec<rib::Prefix> = list.into_iter().map(prefix_to_rib).collect();
        let removed = changes.remove(&entering, (vrf, source, scope.distance), &prefixes).await;
        answer(&entering, changes, removed).await
    })
    .await
}

/// All of a list was changed, or none of it.
async fn answer(
    entering: &Entering,
    changes: RouteChanges,
    done: Result<(), RoutesError>,
) -> Answer<Changed> {
    if let Err(error) = done {
        changes.take_back(entering).await;
        return Err(refusal(error));
    }
    let RouteChanges { added, replaced, removed, .. } = changes;
    let [added, replaced, removed] = [added, replaced, removed].map(|count| count as u64);
    Ok(Json(Changed { added, replaced, removed }))
}

/// `GET /v1/next-hops`
#[utoipa::path(
    get,
    path = "/v1/next-hops",
    responses(
        (status = 200, description = "Every next hop", body = Vec<NextHop>),
    )
)]
pub(crate) async fn next_hops(State(api): State<Api>) -> Result<Response, Refusal> {
    let next_hops: Vec<NextHop> = {
        let daemon = api.daemon.lock();
        daemon.routing.rib().next_hops().map(|hop| show_next_hop(&daemon, &hop)).collect()
    };
    long(next_hops).await
}

/// A source for the tables.
pub(super) fn known(source: &config::Source) -> Result<Source, Refusal> {
    source_to_rib(source).map_err(|error| Refusal::invalid(error, "give another name"))
}

fn bounded(length: usize) -> Result<(), Refusal> {
    if length <= LIST {
        return Ok(());
    }
    Err(Refusal::invalid(
        format!("{length} entries in one request"),
        format!("send at most {LIST} at a time, or name a file in the configuration"),
    ))
}

pub(super) fn refusal(error: RoutesError) -> Refusal {
    use rib::RouteError as E;
    match &error {
        RoutesError::Apply(apply) => match apply.error {
            E::NoSuchRoute(_) => Refusal::not_found(&error, "see millrace show routes"),
            E::TooManyRoutes { .. }
            | E::TableFull { .. }
            | E::TooManyHops { .. }
            | E::TooManyGroups { .. }
            | E::TooManySources { .. } => {
                Refusal::full(&error, "raise the limit in the configuration, or remove routes")
            }
            _ => Refusal::invalid(&error, "correct the route and send the list again"),
        },
        _ => Refusal::invalid(&error, "correct the route and send the list again"),
    }
}

fn show(daemon: &Daemon, route: &RouteInfo) -> Option<RouteEntry> {
    let shown = daemon.routing.shown(route)?;
    let place = &route.place;
    let key = |route: &Route| (route.prefix, route.distance);
    let configured = |known: &Route| known.vrf == shown.vrf && key(known) == key(&shown);
    let origin = match place.source {
        Source::LOCAL => RouteOrigin::Local,
        Source::CONNECTED => RouteOrigin::Connected,
        Source::NEIGHBOR => RouteOrigin::Neighbor,
        Source::STATIC if daemon.config.static_routes.iter().any(configured) => RouteOrigin::Config,
        _ if daemon.routing.is_from_file(place) => RouteOrigin::File,
        _ => RouteOrigin::Api,
    };
    let (parked, standby) = (!route.usable, route.usable && !route.active);
    Some(RouteEntry { route: shown, origin, parked, standby })
}

fn show_next_hop(daemon: &Daemon, info: &NextHopInfo) -> NextHop {
    let hop = &info.hop;
    let known = hop.kind.has_address();
    NextHop {
        index: info.index,
        kind: kind_name(hop.kind).to_owned(),
        address: info.address,
        interface: daemon.routing.topology().interface_name(info.interface).map(str::to_owned),
        mac: known.then(|| hop.destination.into()),
        next: known.then(|| hop.node().to_owned()),
        mtu: hop.mtu,
        users: info.users.into(),
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid => "invalid",
        Kind::Forward => "forward",
        Kind::ForwardStale => "forward-stale",
        Kind::Unresolved => "unresolved",
        Kind::Glean => "glean",
        Kind::Local => "local",
        Kind::Broadcast => "broadcast",
        Kind::Blackhole => "blackhole",
        Kind::Unreachable => "unreachable",
        Kind::HostUnreachable => "host-unreachable",
        Kind::MissDrop => "miss-drop",
        Kind::MissUnreachable => "miss-unreachable",
        Kind::MissReflect => "miss-reflect",
    }
}
