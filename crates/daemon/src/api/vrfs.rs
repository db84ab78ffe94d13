//! VRFs.

use axum::Json;
use axum::extract::State;
use control::api::Vrf;
use control::config::DEFAULT_VRF;
use forward::state::VrfId;

use super::Api;
use super::answer::Refusal;
use crate::daemon::Daemon;

/// `GET /v1/vrfs`
#[utoipa::path(
    get,
    path = "/v1/vrfs",
    responses(
        (status = 200, description = "Every VRF, the default one first", body = Vec<Vrf>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Json<Vec<Vrf>> {
    let daemon = api.daemon.lock();
    let all = daemon.routing.interfaces();
    let shown = named(&daemon).into_iter().map(|(id, name)| {
        let inside = all.list.iter().flatten().filter(|interface| interface.vrf == id);
        let (routes4, routes6) = daemon.routing.rib().len_of(id);
        Vrf {
            interfaces: inside.map(|interface| interface.name.clone()).collect(),
            routes4: routes4 as u64,
            routes6: routes6 as u64,
            parked: name != DEFAULT_VRF && !daemon.config.has_vrf(&name),
            name,
        }
    });
    Json(shown.collect())
}

/// The VRFs that there are, and those whose routes wait for them, with their names.
pub(super) fn named(daemon: &Daemon) -> Vec<(VrfId, String)> {
    let topology = daemon.routing.topology();
    let name = |id| match topology.vrf_name(id) {
        Some(name) => Some((id, name.to_owned())),
        None => (id == forward::state::DEFAULT_VRF).then(|| (id, DEFAULT_VRF.to_owned())),
    };
    daemon.routing.rib().vrfs().filter_map(name).collect()
}

/// The number of the VRF that a request names.
///
/// Errors: there is none of that name.
pub(super) fn find(daemon: &Daemon, name: Option<&str>) -> Result<VrfId, Refusal> {
    let found = daemon.routing.topology().vrf(name);
    found.ok_or_else(|| {
        let name = name.unwrap_or_default().escape_debug().to_string();
        Refusal::not_found(format!("there is no VRF {name}"), "see millrace show vrfs")
    })
}
