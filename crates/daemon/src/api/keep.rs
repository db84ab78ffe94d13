//! State kept for the next start, and the next start.

use axum::Json;
use axum::extract::State;
use control::api::{ErrorBody, Restarting, Saved};

use super::answer::{Answer, Refusal};
use super::{Api, carried_through};
use crate::keep::KeepError;
use crate::reload;

/// `POST /v1/save`
#[utoipa::path(
    post,
    path = "/v1/save",
    responses(
        (status = 200, description = "What was saved", body = Saved),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn save(State(api): State<Api>) -> Answer<Saved> {
    carried_through(async move { api.keeper.save().await.map(Json).map_err(refusal) }).await
}

/// `POST /v1/restart`
#[utoipa::path(
    post,
    path = "/v1/restart",
    responses(
        (status = 200, description = "It begins anew now", body = Restarting),
        (status = "4XX", description = "Refused; nothing has changed", body = ErrorBody),
    )
)]
pub(crate) async fn restart(State(api): State<Api>) -> Answer<Restarting> {
    carried_through(async move {
        let changing = api.daemon.change().await;
        // What would keep the next start from succeeding is found out before this one ends.
        reload::check_start(&changing).await.map_err(Refusal::configuration)?;
        let entering = changing.enter().await;
        api.keeper.hand_over(&entering).await.map_err(refusal)?;
        if let Err(error) = api.restarts.begin((changing, entering)).await {
            api.keeper.take_back().await;
            return Err(Refusal::failed(
                error,
                "nothing has changed; correct it and restart again",
            ));
        }
        Ok(Json(Restarting { restarts: api.restarts.lineage.restarts().wrapping_add(1) }))
    })
    .await
}

fn refusal(error: KeepError) -> Refusal {
    match error {
        KeepError::NoFolder => Refusal::conflict(
            error,
            "set daemon.keep in the configuration, as in \"/var/lib/millrace\", and restart",
        ),
        KeepError::Recalling => Refusal::conflict(error, "save again in a moment"),
        KeepError::Write { .. } | KeepError::Late { .. } => {
            Refusal::failed(error, "correct the folder or the disk")
        }
    }
}
