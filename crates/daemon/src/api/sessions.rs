//! Stacks of processes, and what they serve.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use control::api::{ConnectionPage, ConnectionQuery, ConnectionState, ErrorBody, Listener, Stack};

use super::Api;
use super::answer::{Parameters, Refusal, made_elsewhere};
use super::trace::within;
use crate::sessions::Wanted;

/// Connections of an answer when nothing is said, and at most.
const PAGE: u32 = 1000;
const LONGEST_PAGE: u32 = 100_000;

/// `GET /v1/sessions/stacks`
#[utoipa::path(
    get,
    path = "/v1/sessions/stacks",
    responses(
        (status = 200, description = "Every stack, with its process and counters", body = Vec<Stack>),
    )
)]
pub(crate) async fn stacks(State(api): State<Api>) -> Json<Vec<Stack>> {
    Json(api.daemon.lock().sessions.show_stacks())
}

/// `GET /v1/sessions/listeners`
#[utoipa::path(
    get,
    path = "/v1/sessions/listeners",
    responses(
        (status = 200, description = "Every listener, with the stacks that share its new flows", body = Vec<Listener>),
        (status = "5XX", description = "Failed", body = ErrorBody),
    )
)]
pub(crate) async fn listeners(State(api): State<Api>) -> Result<Response, Refusal> {
    let (mut listeners, look) = {
        let daemon = api.daemon.lock();
        (daemon.sessions.show_listeners(), daemon.sessions.look())
    };
    look.refresh(&Wanted::default()).await;
    made_elsewhere(move || {
        look.count_waiting(&mut listeners);
        listeners
    })
    .await
}

/// `GET /v1/sessions/connections`
#[utoipa::path(
    get,
    path = "/v1/sessions/connections",
    params(ConnectionQuery),
    responses(
        (status = 200, description = "Connections and UDP sockets of stacks, as these say, up to date", body = ConnectionPage),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn connections(
    State(api): State<Api>,
    Parameters(query): Parameters<ConnectionQuery>,
) -> Result<Response, Refusal> {
    let ConnectionQuery { protocol, port, address, state, process, stack, limit } = query;
    let limit = within(limit.unwrap_or(PAGE), LONGEST_PAGE, "limit")? as usize;
    let states = state.map(|list| ConnectionState::list(&list)).transpose();
    let states = states.map_err(|error| Refusal::invalid(error, "correct state"))?;
    let states = states.unwrap_or_default();
    let wanted = Wanted { protocol, port, address, states, process, stack, limit };
    // The daemon is not held while stacks are waited for, nor while their memory is read.
    let look = api.daemon.lock().sessions.look();
    look.refresh(&wanted).await;
    // There may be millions of connections.
    made_elsewhere(move || look.page(&wanted)).await
}
