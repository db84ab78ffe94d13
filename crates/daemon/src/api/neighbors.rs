//! Neighbours.

use axum::Json;
use axum::extract::State;
use control::api::{Changed, ErrorBody, Neighbor, NeighborSelector, NeighborState};
use control::config::StaticNeighbor;

use super::Api;
use super::answer::{Answer, Body, Refusal};
use crate::routing::NeighborError;

/// Neighbours in one request at most.
const LIST: usize = 65_536;

/// `GET /v1/neighbors`
#[utoipa::path(
    get,
    path = "/v1/neighbors",
    responses(
        (status = 200, description = "Every neighbour", body = Vec<Neighbor>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Json<Vec<Neighbor>> {
    Json(api.daemon.lock().routing.neighbors())
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
    let mut daemon = api.daemon.lock();
    let daemon = &mut *daemon;
    for neighbor in &list {
        daemon.config.check_neighbor(neighbor).map_err(|error| refusal(error.into()))?;
    }
    let before = daemon.routing.neighbors();
    let mut changed = Changed::default();
    for (at, neighbor) in list.iter().enumerate() {
        let known = before
            .iter()
            .find(|old| old.interface == neighbor.interface && old.address == neighbor.address);
        if let Err(error) = daemon.routing.add_neighbor(&daemon.config, neighbor) {
            // The list is taken whole or not at all.
            for added in list.iter().take(at) {
                let _ = daemon.routing.remove_neighbor(&added.interface, added.address);
            }
            return Err(refusal(error));
        }
        match known {
            Some(_) => changed.replaced += 1,
            None => changed.added += 1,
        }
    }
    Ok(Json(changed))
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
    let mut daemon = api.daemon.lock();
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
