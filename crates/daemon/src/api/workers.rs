//! Workers, their nodes, and drops.

use axum::Json;
use axum::extract::State;
use control::api::{Drop, Node, Worker};

use super::Api;

/// `GET /v1/workers`
#[utoipa::path(
    get,
    path = "/v1/workers",
    responses(
        (status = 200, description = "Every worker", body = Vec<Worker>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Json<Vec<Worker>> {
    let daemon = api.daemon.lock();
    let workers = daemon.workers.iter().map(|worker| {
        let counters = worker.handle.counters();
        Worker {
            core: worker.core,
            answers: !worker.is_down(),
            rounds: counters.rounds.get(),
            idle_rounds: counters.idle_rounds.get(),
            busy_cycles: counters.busy_cycles.get(),
            idle_cycles: counters.idle_cycles.get(),
            sleep_cycles: counters.sleep_cycles.get(),
            tsc_hz: dpdk::tsc_hz(),
            packets: counters.packets.get(),
            punts: counters.punts.get(),
            sleeps: counters.sleeps.get(),
            icmp_limited: counters.icmp_limited.get(),
            bursts: counters.bursts.iter().map(graph::Counter::get).collect(),
        }
    });
    Json(workers.collect())
}

/// `GET /v1/nodes`
#[utoipa::path(
    get,
    path = "/v1/nodes",
    responses(
        (status = 200, description = "Every node of every worker", body = Vec<Node>),
    )
)]
pub(crate) async fn nodes(State(api): State<Api>) -> Json<Vec<Node>> {
    let daemon = api.daemon.lock();
    let nodes = daemon.workers.iter().flat_map(|worker| {
        let handle = &worker.handle;
        handle.nodes().iter().zip(&handle.counters().nodes).map(|(name, counters)| Node {
            node: (*name).to_owned(),
            core: worker.core,
            vectors: counters.vectors.get(),
            packets: counters.packets.get(),
            sampled_packets: counters.sampled_packets.get(),
            sampled_cycles: counters.sampled_cycles.get(),
        })
    });
    Json(nodes.collect())
}

/// `GET /v1/drops`
#[utoipa::path(
    get,
    path = "/v1/drops",
    responses(
        (status = 200, description = "Dropped packets by reason", body = Vec<Drop>),
    )
)]
pub(crate) async fn drops(State(api): State<Api>) -> Json<Vec<Drop>> {
    let daemon = api.daemon.lock();
    let drops = daemon.drops().map(|(reason, packets)| Drop {
        reason: reason.name().to_owned(),
        meaning: reason.words().to_owned(),
        packets,
    });
    Json(drops.collect())
}
