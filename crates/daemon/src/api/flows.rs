//! Exact-match flows.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use control::api::{Changed, ErrorBody, FlowPage, FlowQuery, FlowSelector};
use control::config::Flow;
use tokio::task::yield_now;

use super::answer::{Answer, Body, Parameters, Refusal, long};
use super::trace::within;
use super::{Api, carried_through};
use crate::flows::FlowError;

/// Flows in one request at most.
const LIST: usize = 100_000;

/// Flows of a page when nothing is said, and at most.
const PAGE: u32 = 1000;
const LONGEST_PAGE: u32 = 100_000;

/// Flows that are looked at in one step.
const STEP: usize = 2048;

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
) -> Result<Response, Refusal> {
    let limit = within(query.limit.unwrap_or(PAGE), LONGEST_PAGE, "limit")? as usize;
    let first: usize = match query.after.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(first)) => first,
        Some(Err(_)) => {
            return Err(Refusal::invalid("after is not a place", "give next of the page before"));
        }
    };
    let (flows4, flows6) = api.daemon.lock().flows.len();
    let (mut flows, mut next) = (Vec::new(), Some(first));
    while let Some(place) = next.filter(|_| flows.len() < limit) {
        let (more, behind) = {
            let daemon = api.daemon.lock();
            daemon.flows.page(&daemon.routing, place, STEP.min(limit - flows.len()))
        };
        flows.extend(more);
        next = behind;
        yield_now().await;
    }
    let next = next.map(|place| place.to_string());
    long(FlowPage { flows, total: (flows4 + flows6) as u64, next }).await
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
    carried_through(async move {
        let entering = api.daemon.enter().await;
        let entered = entering.add_flows(&list).await.map_err(|error| match error {
            FlowError::Refused { .. } => {
                Refusal::full(error, "raise limits.flows4 or limits.flows6 in the configuration")
            }
            _ => Refusal::invalid(error, "correct the flow and send the list again"),
        })?;
        let replaced = entered.iter().filter(|flow| flow.replaced()).count() as u64;
        Ok(Json(Changed { added: entered.len() as u64 - replaced, replaced, removed: 0 }))
    })
    .await
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
    carried_through(async move {
        let entering = api.daemon.enter().await;
        let removed = match selector.all {
            true => entering.clear_flows().await,
            false => entering.remove_flows(&selector.flows).await.map_err(|at| {
                let message = format!("flow {} is not there", at + 1);
                Refusal::not_found(message, "see millrace show flows")
            })?,
        };
        Ok(Json(Changed { removed, ..Changed::default() }))
    })
    .await
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
