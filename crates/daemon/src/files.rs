//! Routes and flows from files: in parts, so that a full Internet table stalls neither packets nor
//! the API.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use control::ConfigError;
use control::config::{Flow, FlowFile, Route, RouteFile};
use control::net::Prefix;
use forward::rib::Change;

use crate::daemon::Shared;
use crate::flows::tuple;
use crate::routes;
use wire::flow::FiveTuple;

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
    synchronize_routes(daemon).await;
    synchronize_flows(daemon).await;
}

/// What tells whether a file has changed.
pub(crate) type Stamp = (PathBuf, Option<SystemTime>, u64);

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok();
    let modified = found.as_ref().and_then(|found| found.modified().ok());
    (path.to_owned(), modified, found.map_or(0, |found| found.len()))
}

/// When the flow files have changed, the tables hold their flows after this and no others: flows
/// of the API last until then.
async fn synchronize_flows(daemon: &Shared) {
    let files = daemon.lock().config.flows.files.clone();
    let stamps: Vec<Stamp> = files.iter().map(|path| stamp(path)).collect();
    if daemon.lock().flow_files == stamps {
        return;
    }
    // Hashes, not flows: 16 million of them fit.
    let mut present = HashSet::new();
    for file in &files {
        match load_flows(daemon, file, &mut present).await {
            Ok(count) => tracing::info!("{}: {count} flows", file.display()),
            Err(error) => tracing::error!("{error}"),
        }
    }
    let mut place = Some(0);
    while let Some(first) = place {
        let keep = |tuple: &FiveTuple| present.contains(&hash(tuple));
        place = daemon.lock().retain_flows(first, STEP, keep).map(|(behind, _)| behind);
        tokio::task::yield_now().await;
    }
    daemon.lock().flow_files = stamps;
}

fn hash(tuple: &FiveTuple) -> u64 {
    let mut hasher = DefaultHasher::new();
    Hash::hash(tuple, &mut hasher);
    hasher.finish()
}

/// Enters the flows of a file. Returns how many there were; `present` gets their hashes.
///
/// Errors: the first line that is wrong or does not fit; flows of earlier parts stay.
async fn load_flows(
    daemon: &Shared,
    path: &Path,
    present: &mut HashSet<u64>,
) -> Result<usize, ConfigError> {
    let mut file = FlowFile::open(path)?;
    let mut count = 0;
    loop {
        let mut part: Vec<Flow> = Vec::with_capacity(STEP);
        for flow in file.by_ref().take(STEP) {
            part.push(flow?);
        }
        if part.is_empty() {
            return Ok(count);
        }
        daemon.lock().add_flows(&part).map_err(|error| file.wrong("line", &error))?;
        count += part.len();
        present.extend(part.iter().filter_map(|flow| tuple(&flow.key())).map(|t| hash(&t)));
        tokio::task::yield_now().await;
    }
}

/// Makes the route table hold the routes of the files, and not those that they had before.
async fn synchronize_routes(daemon: &Shared) {
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
