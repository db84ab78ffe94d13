//! Exact-match flows.

use axum::Json;
use axum::extract::State;
use control::api::{Changed, ErrorBody, FlowPage, FlowQuery, FlowSelector};
use control::config::Flow;

use super::Api;
use super::answer::{Answer, Body, Parameters, Refusal};
use super::trace::within;
use crate::daemon::Shared;
use crate::flows::{FlowError, Names, tuple};

/// Flows in one request at most.
const LIST: usize = 100_000;

/// Flows of a page when nothing is said, and at most.
const PAGE: u32 = 1000;
const LONGEST_PAGE: u32 = 100_000;

/// Flows removed in one step.
const STEP: usize = 16_384;

/// `GET /v1/flows`
#[utoipa::path(
    get,
    path = "/v1/flows",
    params(FlowQuery),
    responses(
        (status = 200, description = "A page of flows", body = FlowPage),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<FlowQuery>,
) -> Answer<FlowPage> {
    let limit = within(query.limit.unwrap_or(PAGE), LONGEST_PAGE, "limit")? as usize;
    let first: usize = match query.after.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(first)) => first,
        Some(Err(_)) => {
            return Err(Refusal::invalid("after is not a place", "give next of the page before"));
        }
    };
    let daemon = api.daemon.lock();
    let (flows4, flows6) = daemon.flows.len();
    let (flows, next) = daemon.flows.page(&daemon.routing, first, limit);
    let next = next.map(|place| place.to_string());
    Ok(Json(FlowPage { flows, total: (flows4 + flows6) as u64, next }))
}

/// `POST /v1/flows`
#[utoipa::path(
    post,
    path = "/v1/flows",
    request_body = Vec<Flow>,
    responses(
        (status = 200, description = "What changed", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn add(State(api): State<Api>, Body(list): Body<Vec<Flow>>) -> Answer<Changed> {
    bounded(list.len())?;
    let mut daemon = api.daemon.lock();
    let daemon = &mut *daemon;
    let names = Names { config: &daemon.config, ports: &daemon.ports, routing: &daemon.routing };
    let entered = daemon.flows.add(names, &list).map_err(|error| match error {
        FlowError::Refused { .. } => {
            Refusal::full(error, "raise limits.flows4 or limits.flows6 in the configuration")
        }
        _ => Refusal::invalid(error, "correct the flow and send the list again"),
    })?;
    daemon.flows.asked_for(&entered);
    let replaced = entered.iter().filter(|flow| flow.replaced()).count() as u64;
    Ok(Json(Changed { added: entered.len() as u64 - replaced, replaced, removed: 0 }))
}

/// `DELETE /v1/flows`
#[utoipa::path(
    delete,
    path = "/v1/flows",
    request_body = FlowSelector,
    responses(
        (status = 200, description = "What changed", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    Body(selector): Body<FlowSelector>,
) -> Answer<Changed> {
    bounded(selector.flows.len())?;
    if selector.all {
        let removed = clear(&api.daemon).await;
        return Ok(Json(Changed { removed, ..Changed::default() }));
    }
    let mut daemon = api.daemon.lock();
    let mut tuples = Vec::with_capacity(selector.flows.len());
    for (at, key) in selector.flows.iter().enumerate() {
        let found = tuple(key).filter(|tuple| daemon.flows.has(tuple));
        tuples.push(found.ok_or_else(|| {
            Refusal::not_found(format!("flow {} is not there", at + 1), "see millrace show flows")
        })?);
    }
    let mut removed = 0;
    for tuple in &tuples {
        removed += u64::from(daemon.flows.remove(tuple));
    }
    Ok(Json(Changed { removed, ..Changed::default() }))
}

/// Removes every flow, in parts.
async fn clear(daemon: &Shared) -> u64 {
    let (mut place, mut removed) = (0, 0);
    loop {
        // A step of its own, so that nobody waits for the lock while others have their turn.
        let step = daemon.lock().flows.retain(place, STEP, |_| false);
        let Some((behind, gone)) = step else { return removed };
        place = behind;
        removed += gone;
        tokio::task::yield_now().await;
    }
}

fn bounded(length: usize) -> Result<(), Refusal> {
    if length <= LIST {
        return Ok(());
    }
    Err(Refusal::invalid(
        format!("{length} flows in one request"),
        format!("send at most {LIST} at a time, or name a file in the configuration"),
    ))
}
