//! The daemon as a whole: version, summary, configuration, reload.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use control::Config;
use control::api::{API_VERSION, ErrorBody, Reload, Reloaded, Summary, Usage, Version};
use dpdk::Eal;

use super::Api;
use super::answer::{Answer, Body, Refusal};
use crate::reload::{self, ReloadError};

/// `GET /v1/version`
#[utoipa::path(
    get,
    path = "/v1/version",
    responses(
        (status = 200, description = "Versions", body = Version),
    )
)]
pub(crate) async fn version(State(api): State<Api>) -> Json<Version> {
    let lineage = &api.restarts.lineage;
    Json(Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: API_VERSION,
        dpdk: Eal::version(),
        pid: std::process::id(),
        restarts: lineage.restarts(),
        standstill: lineage.standstill(),
    })
}

/// `GET /v1/summary`
#[utoipa::path(
    get,
    path = "/v1/summary",
    responses(
        (status = 200, description = "How it is", body = Summary),
    )
)]
pub(crate) async fn summary(State(api): State<Api>) -> Json<Summary> {
    let daemon = api.daemon.lock();
    let limits = &daemon.config.limits;
    let (routes4, routes6) = daemon.routing.rib().len();
    let (flows4, flows6) = daemon.flows.len();
    let counters = daemon.port_totals();
    let buffers = daemon.devices.pools().iter().fold(Usage::default(), |sum, (_, pool)| Usage {
        used: sum.used + u64::from(pool.capacity().saturating_sub(pool.available())),
        capacity: sum.capacity + u64::from(pool.capacity()),
    });
    Json(Summary {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime: daemon.started.elapsed().as_secs(),
        config: daemon.origin.path().display().to_string(),
        ports: usage(daemon.ports.up(), daemon.ports.len()),
        interfaces: daemon.config.interfaces().count() as u64,
        cores: daemon.workers.iter().map(|worker| worker.core).collect(),
        hugepages: Eal::get().is_some_and(Eal::hugepages),
        buffers,
        routes4: usage(routes4, limits.routes4 as usize),
        routes6: usage(routes6, limits.routes6 as usize),
        next_hops: usage(daemon.routing.rib().next_hops().count(), limits.next_hops as usize),
        neighbors: usage(daemon.routing.neighbor_count(), limits.neighbors as usize),
        unresolved: usage(daemon.routing.unresolved_count(), limits.unresolved as usize),
        flows4: usage(flows4, limits.flows4 as usize),
        flows6: usage(flows6, limits.flows6 as usize),
        bridge_macs: usage(daemon.bridges.len(), limits.bridge_macs as usize),
        rx_packets: counters.rx_packets,
        rx_bytes: counters.rx_bytes,
        tx_packets: counters.tx_packets,
        tx_bytes: counters.tx_bytes,
        dropped: daemon.drops().map(|(_, packets)| packets).sum(),
    })
}

/// `GET /v1/config`
#[utoipa::path(
    get,
    path = "/v1/config",
    responses(
        (status = 200, description = "The configuration in force", content_type = "application/json"),
    )
)]
pub(crate) async fn config(State(api): State<Api>) -> Json<Config> {
    Json(api.daemon.lock().config.clone())
}

/// `POST /v1/reload`
///
/// Applies the difference between a configuration file and what is in force: all of it or nothing. Routes, flows and static
/// neighbours of the API stay. Those that name an interface that is not in the new configuration are not in force until an
/// interface of that name is back; they never come to mean another interface.
#[utoipa::path(
    post,
    path = "/v1/reload",
    request_body = Reload,
    responses(
        (status = 200, description = "What changed", body = Reloaded),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn reload(State(api): State<Api>, body: Body<Reload>) -> Answer<Reloaded> {
    let path = body.0.config.map(PathBuf::from);
    if path.as_deref().is_some_and(|path| !path.is_absolute()) {
        return Err(Refusal::invalid(
            "the configuration's path is relative",
            "give an absolute path: the daemon's working directory is not yours",
        ));
    }
    match reload::from_file(&api.daemon, path).await {
        Ok(reloaded) => Ok(Json(reloaded)),
        Err(ReloadError::Config(errors)) => Err(Refusal::configuration(errors)),
        Err(error) => Err(Refusal::conflict(
            error,
            "correct the configuration or the system and reload again",
        )),
    }
}

fn usage(used: usize, capacity: usize) -> Usage {
    Usage { used: used as u64, capacity: capacity as u64 }
}
