//! Client processes.

use axum::Json;
use axum::extract::State;
use control::api::Client;

use super::Api;

/// `GET /v1/clients`
#[utoipa::path(
    get,
    path = "/v1/clients",
    responses(
        (status = 200, description = "Every client process that is attached", body = Vec<Client>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Json<Vec<Client>> {
    Json(api.daemon.lock().clients.show())
}
