//! When state is kept: when somebody saves it; with `daemon.keep` a second after it has changed, once a minute for what was
//! learned, and when the daemon ends.

use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use control::api::Saved;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::gather::gather;
use super::place::{self, Place};
use super::recall::Kept;
use crate::daemon::{Changing, Shared};

/// Between two looks whether something has changed.
const LOOK: Duration = Duration::from_secs(1);
/// Neighbours that were learned are kept this often.
const LEARNED: Duration = Duration::from_secs(60);
/// After a save there is rest for so many times as long as it took.
const REST: u32 = 20;

/// Why state was not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    #[error("no folder to keep state in is configured")]
    NoFolder,
    #[error("what was kept before is still being put in force")]
    Recalling,
    #[error("{path}: {source}")]
    Write { path: String, source: io::Error },
}

/// Keeps a daemon's state.
#[derive(Clone)]
pub(crate) struct Keeper {
    daemon: Shared,
    place: Arc<Place>,
    state: Arc<Mutex<State>>,
}

/// What is known of the file.
#[derive(Debug, Default)]
struct State {
    /// What was kept before is in force again: before that, a save would lose it.
    recalled: bool,
    /// What the daemon's parts had counted when it was written.
    changes: u64,
    /// Of what was written.
    hash: Option<u64>,
}

impl Keeper {
    pub(crate) fn new(daemon: Shared, place: Place) -> Self {
        Self { daemon, place: Arc::new(place), state: Arc::default() }
    }

    /// Puts in force what was kept. `changing`: nothing else changes until then.
    pub(crate) async fn recall(&self, changing: &Changing, kept: Kept) {
        let path = kept.path().map(Path::to_owned);
        let left_out = kept.put_in_force(changing).await;
        let here = Arc::clone(&self.place);
        let tidy = move || {
            if let Some(path) = path.filter(|_| left_out > 0) {
                match place::keep_second_name(&path) {
                    Ok(second) => tracing::warn!("{} has what was left out", second.display()),
                    Err(error) => tracing::warn!("{}: {error}", path.display()),
                }
            }
            here.clear_handed();
        };
        let _ = spawn_blocking(tidy).await;
        let changes = changes(&self.daemon);
        let mut state = self.with();
        (state.recalled, state.changes) = (true, changes);
    }

    /// Saves for the next start.
    ///
    /// Errors: [`KeepError`]; what was saved before is still there.
    pub(crate) async fn save(&self) -> Result<Saved, KeepError> {
        let path = self.place.lasting().ok_or(KeepError::NoFolder)?.to_owned();
        self.save_to(&self.daemon.change().await, path).await
    }

    /// Saves for a start that follows at once.
    ///
    /// Errors: as [`Self::save`].
    pub(crate) async fn hand_over(&self, changing: &Changing) -> Result<(), KeepError> {
        let path = self.place.for_restart().to_owned();
        self.save_to(changing, path).await.map(drop)
    }

    /// Nobody starts after all.
    pub(crate) async fn take_back(&self) {
        let here = Arc::clone(&self.place);
        let _ = spawn_blocking(move || here.clear_handed()).await;
    }

    async fn save_to(&self, changing: &Changing, path: PathBuf) -> Result<Saved, KeepError> {
        if !self.with().recalled {
            return Err(KeepError::Recalling);
        }
        let shown = path.display().to_string();
        let failed = |source| KeepError::Write { path: shown.clone(), source };
        let now = changes(&self.daemon);
        let (bytes, saved) = gather(changing).await.map_err(failed)?;
        let lasting = self.place.lasting() == Some(&*path);
        let written = self.with().hash.filter(|_| lasting);
        // With a million routes, to hash them and to free them takes so long that neighbours would wait.
        let write = spawn_blocking(move || {
            let hash = hash_of(&bytes);
            if written != Some(hash) || !path.exists() {
                place::write(&path, &bytes)?;
            }
            Ok::<_, io::Error>(hash)
        });
        let hash = write.await.map_err(io::Error::other).and_then(|done| done).map_err(failed)?;
        if lasting {
            let mut state = self.with();
            (state.changes, state.hash) = (now, Some(hash));
        }
        Ok(Saved { file: shown, ..saved })
    }

    /// Keeps state for ever, as changes come.
    pub(crate) async fn keep(self) {
        if !self.place.automatic {
            return std::future::pending().await;
        }
        let here = Arc::clone(&self.place);
        let make = move || here.lasting().map_or(Ok(()), place::make_folder);
        if let Ok(Err(error)) = spawn_blocking(make).await {
            tracing::error!("daemon.keep: {error}");
        }
        let mut last = Instant::now();
        loop {
            sleep(LOOK).await;
            let (recalled, before) = {
                let state = self.with();
                (state.recalled, state.changes)
            };
            let due = changes(&self.daemon) != before || last.elapsed() >= LEARNED;
            if !recalled || !due {
                continue;
            }
            let begun = Instant::now();
            if let Err(error) = self.save().await {
                tracing::error!("state is not kept: {error}");
            }
            last = Instant::now();
            sleep(begun.elapsed() * REST).await;
        }
    }

    /// The last save of a daemon that ends, or begins anew.
    pub(crate) async fn finish(&self, changing: &Changing, restart: bool) {
        if !self.with().recalled || !(restart || self.place.automatic) {
            return;
        }
        if let Err(error) = self.hand_over(changing).await {
            tracing::error!("state is not kept: {error}");
        }
    }

    fn with(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the daemon's parts have counted of changes to what is kept.
fn changes(daemon: &Shared) -> u64 {
    let daemon = daemon.lock();
    let counts = [daemon.routing.changes(), daemon.flows.changes(), daemon.functions.changes()];
    counts.into_iter().fold(0, u64::wrapping_add)
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
