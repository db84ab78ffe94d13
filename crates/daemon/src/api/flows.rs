//! Exact-match flows.

use axum::Json;
use axum::extract::State;
use control::api::{Changed, FlowPage, FlowQuery, FlowSelector};
use control::config::Flow;

use super::Api;
use super::answer::{Answer, Body, Parameters, Refusal};
use crate::flows::{FlowError, tuple};

/// Flows in one request at most.
const LIST: usize = 100_000;

/// `GET /v1/flows`
pub(crate) async fn list(
    State(api): State<Api>,
    Parameters(_query): Parameters<FlowQuery>,
) -> Answer<FlowPage> {
    let (flows4, flows6) = api.daemon.lock().flows.len();
    Ok(Json(FlowPage { flows: Vec::new(), total: (flows4 + flows6) as u64, next: None }))
}

/// `POST /v1/flows`
pub(crate) async fn add(State(api): State<Api>, Body(list): Body<Vec<Flow>>) -> Answer<Changed> {
    bounded(list.len())?;
    let mut daemon = api.daemon.lock();
    let (added, replaced) = daemon.add_flows(&list).map_err(|error| match error {
        FlowError::Refused { .. } => {
            Refusal::full(error, "raise limits.flows4 or limits.flows6 in the configuration")
        }
        _ => Refusal::invalid(error, "correct the flow and send the list again"),
    })?;
    Ok(Json(Changed { added: added as u64, replaced: replaced as u64, removed: 0 }))
}

/// `DELETE /v1/flows`
pub(crate) async fn remove(
    State(api): State<Api>,
    Body(selector): Body<FlowSelector>,
) -> Answer<Changed> {
    bounded(selector.flows.len())?;
    let mut daemon = api.daemon.lock();
    let mut tuples = Vec::with_capacity(selector.flows.len());
    for (at, key) in selector.flows.iter().enumerate() {
        let found = tuple(key).filter(|tuple| daemon.flows.get(tuple).is_some());
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

fn bounded(length: usize) -> Result<(), Refusal> {
    if length <= LIST {
        return Ok(());
    }
    Err(Refusal::invalid(
        format!("{length} flows in one request"),
        format!("send at most {LIST} at a time, or name a file in the configuration"),
    ))
}
