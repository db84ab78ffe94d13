//! Files of routes and flows, read part by part on a thread where that may take its time.

use std::path::PathBuf;

use control::ConfigError;
use control::config::{Flow, FlowFile, Reach, Route, RouteFile};
use tokio::sync::mpsc;

/// Entries of a part: changed in one step of a few milliseconds.
pub(super) const PART: usize = 2048;

/// Parts that wait.
const WAITING: usize = 2;

/// The parts of a file; what is wrong is the last item.
pub(super) type Parts<T> = mpsc::Receiver<Result<Vec<T>, ConfigError>>;

/// The routes of a file.
pub(super) fn routes(path: PathBuf, reach: Reach) -> Parts<Route> {
    parts(move || RouteFile::within(&path, &reach))
}

/// The flows of a file.
pub(super) fn flows(path: PathBuf, reach: Reach) -> Parts<Flow> {
    parts(move || FlowFile::within(&path, &reach))
}

fn parts<T: Send + 'static, F: Iterator<Item = Result<T, ConfigError>>>(
    open: impl FnOnce() -> Result<F, ConfigError> + Send + 'static,
) -> Parts<T> {
    let (sender, parts) = mpsc::channel(WAITING);
    tokio::task::spawn_blocking(move || {
        let mut file = match open() {
            Ok(file) => file,
            // Nobody may want it any more.
            Err(error) => return drop(sender.blocking_send(Err(error))),
        };
        loop {
            let part: Result<Vec<T>, _> = file.by_ref().take(PART).collect();
            let last = part.as_ref().map_or(true, Vec::is_empty);
            if sender.blocking_send(part).is_err() || last {
                return;
            }
        }
    });
    parts
}
