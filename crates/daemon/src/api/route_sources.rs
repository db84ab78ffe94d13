//! Who has given routes.

use axum::Json;
use axum::extract::{Path, State};
use control::api::{Changed, ErrorBody, RouteSource, SourceScope};
use control::config::{DEFAULT_VRF, Source};
use forward::state::VrfId;

use super::answer::{Answer, Parameters, Refusal};
use super::{Api, carried_through, routes, vrfs};
use crate::daemon::RouteChanges;

/// `GET /v1/route-sources`
#[utoipa::path(
    get,
    path = "/v1/route-sources",
    responses(
        (status = 200, description = "Every source that has given routes to a VRF", body = Vec<RouteSource>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Json<Vec<RouteSource>> {
    let daemon = api.daemon.lock();
    let mut shown = Vec::new();
    for (id, name) in vrfs::named(&daemon) {
        let vrf = Some(name).filter(|name| name != DEFAULT_VRF);
        for (source, [routes4, routes6]) in daemon.routing.rib().sources(id) {
            let Ok(source) = source.name().parse() else { continue };
            let (routes4, routes6) = (routes4 as u64, routes6 as u64);
            shown.push(RouteSource { source, vrf: vrf.clone(), routes4, routes6 });
        }
    }
    Json(shown)
}

/// `DELETE /v1/route-sources/{source}`
#[utoipa::path(
    delete,
    path = "/v1/route-sources/{source}",
    params(("source" = String, Path), SourceScope),
    responses(
        (status = 200, description = "What changed", body = Changed),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn withdraw(
    State(api): State<Api>,
    Path(source): Path<String>,
    Parameters(scope): Parameters<SourceScope>,
) -> Answer<Changed> {
    let source: Source =
        source.parse().map_err(|error| Refusal::invalid(error, "see millrace show sources"))?;
    if source.is_implied() {
        let message = format!("{source} routes follow from interfaces and neighbours");
        return Err(Refusal::invalid(message, "change these, or name another source"));
    }
    let source = routes::known(&source)?;
    carried_through(async move {
        let entering = api.daemon.enter().await;
        let vrfs: Vec<VrfId> = {
            let daemon = entering.lock();
            match scope.vrf {
                Some(name) => vec![vrfs::find(&daemon, Some(name.as_str()))?],
                None => daemon.routing.rib().vrfs().collect(),
            }
        };
        let removed = RouteChanges::withdraw(&entering, &vrfs, source).await;
        let removed = removed.map_err(routes::refusal)? as u64;
        Ok(Json(Changed { removed, ..Changed::default() }))
    })
    .await
}
