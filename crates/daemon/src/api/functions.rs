//! Packet functions.

use axum::Json;
use axum::extract::{Path, State};
use control::api::{Changed, ErrorBody, Function, FunctionAdd};

use super::answer::{Answer, Body, Refusal};
use super::{Api, carried_through};
use crate::functions::FunctionError;

/// `GET /v1/functions`
#[utoipa::path(
    get,
    path = "/v1/functions",
    responses(
        (status = 200, description = "Every packet function that was added", body = Vec<Function>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Json<Vec<Function>> {
    Json(api.daemon.lock().functions.show())
}

/// `POST /v1/functions`
#[utoipa::path(
    post,
    path = "/v1/functions",
    request_body = FunctionAdd,
    responses(
        (status = 200, description = "The function", body = Function),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn add(
    State(api): State<Api>,
    Body(asked): Body<FunctionAdd>,
) -> Answer<Function> {
    carried_through(async move {
        let added = api.daemon.change().await.add_function(asked).await;
        added.map(Json).map_err(|error| match error {
            FunctionError::Name(_) => Refusal::invalid(error, "name a file in functions.folder"),
            FunctionError::Core(_) | FunctionError::Port(_) => {
                Refusal::not_found(error, "name one that is there")
            }
            error => Refusal::failed(error, "correct the shared object, its owner or its argument"),
        })
    })
    .await
}

/// `DELETE /v1/functions/{id}`
#[utoipa::path(
    delete,
    path = "/v1/functions/{id}",
    params(("id" = u32, Path, description = "Number of the function")),
    responses(
        (status = 200, description = "It was taken away", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn remove(State(api): State<Api>, Path(id): Path<u32>) -> Answer<Changed> {
    carried_through(async move {
        if api.daemon.change().await.remove_function(id).await {
            return Ok(Json(Changed { removed: 1, ..Changed::default() }));
        }
        Err(Refusal::not_found(format!("there is no function {id}"), "see millrace show functions"))
    })
    .await
}
