//! Neighbours.

use std::collections::HashMap;
use std::net::IpAddr;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use control::api::{Changed, ErrorBody, Neighbor, NeighborSelector, NeighborState};
use control::config::StaticNeighbor;
use control::net::MacAddr;
use tokio::task::yield_now;

use super::answer::{Answer, Body, Refusal, long};
use super::{Api, carried_through};
use crate::daemon::{Daemon, Entering};
use crate::routing::NeighborError;

/// Neighbours in one request at most.
const LIST: usize = 65_536;

/// Neighbours that are changed in one step: about a millisecond.
const STEP: usize = 512;

/// `GET /v1/neighbors`
#[utoipa::path(
    get,
    path = "/v1/neighbors",
    responses(
        (status = 200, description = "Every neighbour", body = Vec<Neighbor>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Result<Response, Refusal> {
    let neighbors = api.daemon.lock().routing.neighbors();
    long(neighbors).await
}

/// `POST /v1/neighbors`
#[utoipa::path(
    post,
    path = "/v1/neighbors",
    request_body = Vec<StaticNeighbor>,
    responses(
        (status = 200, description = "What changed", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn add(
    State(api): State<Api>,
    Body(list): Body<Vec<StaticNeighbor>>,
) -> Answer<Changed> {
    if list.len() > LIST {
        let remedy = format!("send at most {LIST} at a time");
        return Err(Refusal::invalid(format!("{} neighbours in one request", list.len()), remedy));
    }
    carried_through(async move {
        let entering = api.daemon.enter().await;
        for part in list.chunks(STEP) {
            {
                let daemon = entering.lock();
                let check = |neighbor| daemon.config.check_neighbor(neighbor);
                part.iter().try_for_each(check).map_err(|error| refusal(error.into()))?;
            }
            yield_now().await;
        }
        let before = entering.lock().routing.neighbors();
        let before = known(before);
        for (part, first) in list.chunks(STEP).zip((0..).step_by(STEP)) {
            let refused = {
                let mut daemon = entering.lock();
                let Daemon { routing, config, .. } = &mut *daemon;
                let added = part.iter().map(|neighbor| routing.add_neighbor(config, neighbor));
                let at = (first..).zip(added).find(|(_, added)| added.is_err());
                at.and_then(|(at, added)| Some((at, added.err()?)))
            };
            if let Some((at, error)) = refused {
                let done = list.get(..at).unwrap_or_default();
                take_back(&entering, &before, done).await;
                return Err(refusal(error));
            }
            yield_now().await;
        }
        let there = |neighbor: &&StaticNeighbor| before.contains_key(&key(neighbor));
        let replaced = list.iter().filter(there).count();
        let (added, replaced) = ((list.len() - replaced) as u64, replaced as u64);
        Ok(Json(Changed { added, replaced, removed: 0 }))
    })
    .await
}

/// Neighbours by interface and address: what is known of them.
type Known = HashMap<(String, IpAddr), (Option<MacAddr>, NeighborState)>;

fn known(neighbors: Vec<Neighbor>) -> Known {
    let pair = |one: Neighbor| ((one.interface, one.address), (one.mac, one.state));
    neighbors.into_iter().map(pair).collect()
}

fn key(neighbor: &StaticNeighbor) -> (String, IpAddr) {
    (neighbor.interface.clone(), neighbor.address)
}

/// Neighbours that were added are again what they were before: a list is taken whole or not at all.
async fn take_back(entering: &Entering, before: &Known, added: &[StaticNeighbor]) {
    for part in added.chunks(STEP) {
        {
            let mut daemon = entering.lock();
            let Daemon { routing, config, .. } = &mut *daemon;
            for neighbor in part {
                let StaticNeighbor { interface, address, .. } = neighbor;
                // Each was there before, and what has come since goes: they fit.
                match before.get(&key(neighbor)) {
                    Some((Some(mac), NeighborState::Static)) => {
                        let old = StaticNeighbor { mac: *mac, ..neighbor.clone() };
                        let _ = routing.add_neighbor(config, &old);
                    }
                    old => {
                        let _ = routing.remove_neighbor(interface, *address);
                        if let Some((Some(mac), _)) = old {
                            let _ = routing.recall_neighbor(interface, *address, *mac);
                        }
                    }
                }
            }
        }
        yield_now().await;
    }
}

/// `DELETE /v1/neighbors`
#[utoipa::path(
    delete,
    path = "/v1/neighbors",
    request_body = NeighborSelector,
    responses(
        (status = 200, description = "What changed", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    Body(selector): Body<NeighborSelector>,
) -> Answer<Changed> {
    carried_through(async move {
        let entering = api.daemon.enter().await;
        let mut daemon = entering.lock();
        let Some(address) = selector.address else {
            let count =
                daemon.routing.flush_neighbors(selector.interface.as_deref()).map_err(refusal)?;
            return Ok(Json(Changed { removed: count as u64, ..Changed::default() }));
        };
        let configured = |neighbor: &Neighbor| {
            let mut fixed = daemon.config.static_neighbors.iter();
            neighbor.state == NeighborState::Static
                && fixed.any(|f| f.interface == neighbor.interface && f.address == neighbor.address)
        };
        let matching: Vec<Neighbor> = daemon
            .routing
            .neighbors()
            .into_iter()
            .filter(|neighbor| neighbor.address == address)
            .filter(|n| selector.interface.as_deref().is_none_or(|name| name == n.interface))
            .collect();
        if matching.is_empty() {
            return Err(Refusal::not_found(
                format!("there is no neighbour {address}"),
                "see millrace show neighbors",
            ));
        }
        if matching.iter().all(configured) {
            return Err(Refusal::conflict(
                format!("neighbour {address} is in the configuration"),
                "remove it from the file and reload",
            ));
        }
        let removable: Vec<Neighbor> =
            matching.into_iter().filter(|neighbor| !configured(neighbor)).collect();
        let mut changed = Changed::default();
        for neighbor in removable {
            let there =
                daemon.routing.remove_neighbor(&neighbor.interface, address).map_err(refusal)?;
            changed.removed += u64::from(there);
        }
        Ok(Json(changed))
    })
    .await
}

fn refusal(error: NeighborError) -> Refusal {
    let remedy = "see millrace show interfaces and millrace show neighbors";
    match error {
        NeighborError::NoInterface(_) => Refusal::not_found(error, remedy),
        NeighborError::Unfit(_) => Refusal::invalid(error, "correct it and send it again"),
        NeighborError::Refused(_) => {
            Refusal::full(error, "raise limits.neighbors in the configuration")
        }
    }
}
