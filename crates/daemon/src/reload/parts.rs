//! Files of routes and flows, read part by part on a thread where that may take its time.

use std::path::PathBuf;
use std::time::Duration;

use control::ConfigError;
use control::config::{Flow, FlowFile, Reach, Route, RouteFile};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::load::{PATIENCE, late};

/// Entries of a part: changed in one step of a few milliseconds.
pub(super) const PART: usize = 2048;

/// Parts that wait.
const WAITING: usize = 2;

/// The parts of a file.
pub(super) struct Parts<T> {
    path: PathBuf,
    patience: Duration,
    read: mpsc::Receiver<Result<Vec<T>, ConfigError>>,
}

impl<T> Parts<T> {
    /// The next part; what is wrong is the last one.
    pub(super) async fn next(&mut self) -> Option<Result<Vec<T>, ConfigError>> {
        let next = timeout(self.patience, self.read.recv()).await;
        next.unwrap_or_else(|_| Some(Err(late(&self.path))))
    }
}

/// The routes of a file.
pub(super) fn routes(path: PathBuf, reach: Reach) -> Parts<Route> {
    parts(path.clone(), move || RouteFile::within(&path, &reach))
}

/// The flows of a file.
pub(super) fn flows(path: PathBuf, reach: Reach) -> Parts<Flow> {
    parts(path.clone(), move || FlowFile::within(&path, &reach))
}

fn parts<T: Send + 'static, F: Iterator<Item = Result<T, ConfigError>>>(
    path: PathBuf,
    open: impl FnOnce() -> Result<F, ConfigError> + Send + 'static,
) -> Parts<T> {
    let (sender, read) = mpsc::channel(WAITING);
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
    Parts { path, patience: PATIENCE, read }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::iter::{from_fn, repeat_with};

    #[tokio::test]
    async fn a_file_that_does_not_go_on_is_named_after_what_was_read() {
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let first = repeat_with(|| Ok(7)).take(PART);
        let rest = from_fn(move || waits.recv().ok().map(|()| Ok(8)));
        let mut file = parts(PathBuf::from("/mnt/slow"), move || Ok(first.chain(rest)));
        assert_eq!(file.next().await.unwrap().unwrap(), vec![7; PART]);
        file.patience = Duration::from_millis(20);
        let late = file.next().await.unwrap().unwrap_err().to_string();
        assert!(late.starts_with("/mnt/slow: cannot be read: "), "{late}");
        drop(go_on);
    }
}
