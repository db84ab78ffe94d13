//! Routes from files: in parts, so that a full Internet table stalls neither packets nor the API.

use std::path::Path;

use control::ConfigError;
use control::config::{Route, RouteFile};
use control::net::Prefix;
use forward::rib::Change;

use crate::daemon::Shared;
use crate::routes;

/// Routes that are changed in one step: a few milliseconds.
const STEP: usize = 2048;

/// Makes the tables hold the routes of the configured files: adds what the files have, then
/// removes what they had and have no more. What is wrong goes to the log.
pub(crate) async fn load_configured(daemon: Shared) {
    let _one_at_a_time = daemon.loading().await;
    synchronize(&daemon).await;
}

/// As [`load_configured`], for a caller that has made sure that nobody else loads.
pub(crate) async fn synchronize(daemon: &Shared) {
    let files = daemon.lock().config.routes.files.clone();
    let mut present = Vec::new();
    for file in &files {
        match load_routes(daemon, file, &mut present).await {
            Ok(0) => {}
            Ok(count) => tracing::info!("{}: {count} routes", file.display()),
            Err(error) => tracing::error!("{error}"),
        }
    }
    present.sort_unstable();
    present.dedup();
    let stale = {
        let mut daemon = daemon.lock();
        let before = std::mem::replace(&mut daemon.file_routes, present);
        let configured: Vec<Prefix> =
            daemon.config.static_routes.iter().map(|route| route.prefix).collect();
        let kept = |prefix: &Prefix| {
            daemon.file_routes.binary_search(prefix).is_ok() || configured.contains(prefix)
        };
        before.into_iter().filter(|prefix| !kept(prefix)).collect::<Vec<_>>()
    };
    for part in stale.chunks(STEP) {
        daemon.lock().remove_routes(part);
        tokio::task::yield_now().await;
    }
}

/// Adds the routes of a file. Returns how many there were; `present` gets their prefixes.
///
/// Errors: the first line that is wrong or does not fit; routes of earlier parts stay.
async fn load_routes(
    daemon: &Shared,
    path: &Path,
    present: &mut Vec<Prefix>,
) -> Result<usize, ConfigError> {
    let mut file = RouteFile::open(path)?;
    let mut count = 0;
    loop {
        let mut part: Vec<Route> = Vec::with_capacity(STEP);
        for route in file.by_ref().take(STEP) {
            part.push(route?);
        }
        if part.is_empty() {
            return Ok(count);
        }
        daemon.lock().add_routes(&part).map_err(|error| file.wrong("line", &error))?;
        count += part.len();
        present.extend(part.iter().map(|route| route.prefix));
        // Packets and requests have their turn.
        tokio::task::yield_now().await;
    }
}

impl crate::daemon::Daemon {
    /// Adds or replaces routes: all of them or, on an error, none.
    pub(crate) fn add_routes(&mut self, list: &[Route]) -> Result<(), RoutesError> {
        let mut changes = Vec::with_capacity(list.len());
        for (at, route) in list.iter().enumerate() {
            self.config.check_route(route).map_err(|error| RoutesError::Unfit { at, error })?;
            changes.push(Change::Add(routes::to_rib(route, &self.topology)?));
        }
        Ok(self.change_routes(&changes)?)
    }

    /// Removes those of the routes that are there.
    pub(crate) fn remove_routes(&mut self, prefixes: &[Prefix]) {
        let there = prefixes.iter().map(|prefix| routes::prefix_to_rib(*prefix));
        let there = there.filter(|prefix| self.has_static_route(*prefix));
        let changes: Vec<Change> = there.map(Change::Remove).collect();
        if let Err(error) = self.change_routes(&changes) {
            tracing::error!("{error}");
        }
    }

    /// Whether configuration, files or API have a route to the prefix.
    pub(crate) fn has_static_route(&self, prefix: forward::rib::Prefix) -> bool {
        let routes = self.rib().routes_of(prefix);
        routes.iter().any(|route| route.source == forward::rib::Source::Static)
    }
}

/// Why routes were refused; none of them was added.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RoutesError {
    #[error("route {}: {error}", at + 1)]
    Unfit { at: usize, error: control::config::RouteError },
    #[error(transparent)]
    NoInterface(#[from] routes::NoInterface),
    #[error(transparent)]
    Apply(#[from] forward::rib::ApplyError),
}
