//! Stacks of processes, and what they serve.

use axum::Json;
use axum::extract::State;
use control::api::{Listener, Stack};

use super::Api;

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
    )
)]
pub(crate) async fn listeners(State(api): State<Api>) -> Json<Vec<Listener>> {
    Json(api.daemon.lock().sessions.show_listeners())
}
