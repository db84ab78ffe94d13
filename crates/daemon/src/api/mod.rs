//! The API: HTTP/JSON on the Unix socket, one file per resource.

mod answer;
mod capture;
mod clients;
mod flows;
mod functions;
mod interfaces;
mod keep;
mod metrics;
mod neighbors;
mod openapi;
mod places;
mod ports;
mod prometheus;
mod relay;
mod route_sources;
mod routes;
mod sessions;
mod streams;
mod summary;
mod trace;
mod vrfs;
mod workers;

use std::future::Future;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use axum::routing::{delete, get, patch, post};
use tokio::sync::watch;

use crate::daemon::Shared;
use crate::keep::Keeper;
use crate::restart::Restarts;
use answer::Refusal;
use streams::Streams;

pub(crate) use relay::Incoming;

/// Longest body: a list of some 500,000 routes. Bytes.
const BODY: usize = 64 << 20;

/// What handlers have.
#[derive(Clone)]
pub(crate) struct Api {
    daemon: Shared,
    keeper: Keeper,
    restarts: Restarts,
    streams: Streams,
    stopping: watch::Receiver<bool>,
}

/// Serves the API until it is told to stop; requests in progress are finished.
pub(crate) async fn serve(
    listener: Incoming,
    (daemon, keeper, restarts): (Shared, Keeper, Restarts),
    mut stopping: watch::Receiver<bool>,
) {
    let api =
        Api { daemon, keeper, restarts, streams: Streams::default(), stopping: stopping.clone() };
    let stop = async move {
        // An error means that the daemon is gone, which is a stop too.
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let served = axum::serve(listener, router(api)).with_graceful_shutdown(stop).await;
    if let Err(error) = served {
        tracing::error!("the API: {error}");
    }
}

/// Carries a change through, even when who asked for it goes away meanwhile.
async fn carried_through<R: Send + 'static>(
    change: impl Future<Output = Result<R, Refusal>> + Send + 'static,
) -> Result<R, Refusal> {
    let done = tokio::spawn(change).await;
    done.unwrap_or_else(|error| Err(Refusal::failed(error, "see the log")))
}

fn router(api: Api) -> Router {
    Router::new()
        .route("/openapi.json", get(openapi::document))
        .route("/metrics", get(metrics::get))
        .route("/v1/version", get(summary::version))
        .route("/v1/summary", get(summary::summary))
        .route("/v1/config", get(summary::config))
        .route("/v1/reload", post(summary::reload))
        .route("/v1/save", post(keep::save))
        .route("/v1/restart", post(keep::restart))
        .route("/v1/ports", get(ports::list))
        .route("/v1/ports/{name}", patch(ports::change))
        .route("/v1/queues", get(ports::queues))
        .route("/v1/interfaces", get(interfaces::list))
        .route("/v1/bridges", get(interfaces::bridges))
        .route("/v1/routes", get(routes::list).post(routes::add).delete(routes::remove))
        .route("/v1/routes/lookup", get(routes::lookup))
        .route("/v1/next-hops", get(routes::next_hops))
        .route("/v1/route-sources", get(route_sources::list))
        .route("/v1/route-sources/{source}", delete(route_sources::withdraw))
        .route("/v1/vrfs", get(vrfs::list))
        .route("/v1/neighbors", get(neighbors::list).post(neighbors::add).delete(neighbors::remove))
        .route("/v1/flows", get(flows::list).post(flows::add).delete(flows::remove))
        .route("/v1/clients", get(clients::list))
        .route("/v1/sessions/stacks", get(sessions::stacks))
        .route("/v1/sessions/listeners", get(sessions::listeners))
        .route("/v1/sessions/connections", get(sessions::connections))
        .route("/v1/functions", get(functions::list).post(functions::add))
        .route("/v1/functions/{id}", delete(functions::remove))
        .route("/v1/workers", get(workers::list))
        .route("/v1/nodes", get(workers::nodes))
        .route("/v1/drops", get(workers::drops))
        .route("/v1/trace", post(trace::stream))
        .route("/v1/capture", post(capture::stream))
        .fallback(answer::unknown_path)
        .method_not_allowed_fallback(answer::unknown_method)
        .layer(from_fn(answer::read_whole))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(api)
}
