//! When state is kept: when somebody saves it; with `daemon.keep` a second after it has changed, once a minute for what was
//! learned, and when the daemon ends. Changes of tables wait while it is gathered, and not for the disk.

use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use control::api::Saved;
use tokio::sync::OwnedMutexGuard;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::gather::gather;
use super::place::{self, Place};
use super::recall::Kept;
use crate::daemon::{Changing, Entering, Shared};

/// Between two looks whether something has changed.
const LOOK: Duration = Duration::from_secs(1);
/// Neighbours that were learned are kept this often.
const LEARNED: Duration = Duration::from_secs(60);
/// After a save there is rest for so many times as long as it took.
const REST: u32 = 20;
/// How long a disk may take. What it has not done then goes on, and nothing else is written before it is over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why state was not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    #[error("no folder to keep state in is configured")]
    NoFolder,
    #[error("what was kept before is still being put in force")]
    Recalling,
    #[error("{path}: {source}")]
    Write { path: String, source: io::Error },
    #[error("{path}: not written within {} s: the disk or its file system does not answer", PATIENCE.as_secs())]
    Late { path: String },
}

/// Keeps a daemon's state.
#[derive(Clone)]
pub(crate) struct Keeper {
    daemon: Shared,
    place: Arc<Place>,
    state: Arc<Mutex<State>>,
    /// Whoever writes the lasting file has it, until that is over.
    writing: Arc<tokio::sync::Mutex<()>>,
}

/// What is to be written.
struct Gathered {
    bytes: Vec<u8>,
    saved: Saved,
    /// What the daemon's parts had counted.
    changes: u64,
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
        let (state, writing) = (Arc::default(), Arc::default());
        Self { daemon, place: Arc::new(place), state, writing }
    }

    /// Puts in force what was kept. `changing`, `entering`: nothing else changes until then.
    pub(crate) async fn recall(&self, changing: &Changing, entering: &Entering, kept: Kept) {
        let path = kept.path().map(Path::to_owned);
        let left_out = kept.put_in_force(changing, entering).await;
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
        loop {
            let entering = self.daemon.enter().await;
            if let Ok(turn) = Arc::clone(&self.writing).try_lock_owned() {
                let gathered = self.gather(&entering, &path).await?;
                drop(entering);
                return self.write(gathered, path, Some(turn)).await;
            }
            drop(entering);
            drop(self.turn(&path).await?);
        }
    }

    /// Saves for a start that follows at once.
    ///
    /// Errors: as [`Self::save`].
    pub(crate) async fn hand_over(&self, entering: &Entering) -> Result<(), KeepError> {
        let path = self.place.for_restart().to_owned();
        let turn = if self.lasts(&path) { Some(self.turn(&path).await?) } else { None };
        let gathered = self.gather(entering, &path).await?;
        self.write(gathered, path, turn).await.map(drop)
    }

    /// Nobody starts after all.
    pub(crate) async fn take_back(&self) {
        let here = Arc::clone(&self.place);
        let _ = spawn_blocking(move || here.clear_handed()).await;
    }

    /// Whether it is the file for the next start, whenever that is.
    fn lasts(&self, path: &Path) -> bool {
        self.place.lasting() == Some(path)
    }

    /// Waits until nobody writes the lasting file.
    async fn turn(&self, path: &Path) -> Result<OwnedMutexGuard<()>, KeepError> {
        let turn = timeout(PATIENCE, Arc::clone(&self.writing).lock_owned()).await;
        turn.map_err(|_| KeepError::Late { path: path.display().to_string() })
    }

    async fn gather(&self, entering: &Entering, path: &Path) -> Result<Gathered, KeepError> {
        if !self.with().recalled {
            return Err(KeepError::Recalling);
        }
        let changes = changes(&self.daemon);
        let gathered = gather(entering).await;
        let failed = |source| KeepError::Write { path: path.display().to_string(), source };
        let (bytes, saved) = gathered.map_err(failed)?;
        Ok(Gathered { bytes, saved, changes })
    }

    async fn write(
        &self,
        Gathered { bytes, saved, changes }: Gathered,
        path: PathBuf,
        turn: Option<OwnedMutexGuard<()>>,
    ) -> Result<Saved, KeepError> {
        let (shown, lasts) = (path.display().to_string(), self.lasts(&path));
        // Until this has succeeded, nobody knows what is there.
        let written = if lasts { self.with().hash.take() } else { None };
        // With a million routes, to hash them and to free them takes so long that neighbours would wait.
        let write = spawn_blocking(move || {
            let hash = hash_of(&bytes);
            if written != Some(hash) || !path.exists() {
                place::write(&path, &bytes)?;
            }
            drop(turn);
            Ok::<_, io::Error>(hash)
        });
        let done = if lasts {
            let late = |_| KeepError::Late { path: shown.clone() };
            timeout(PATIENCE, write).await.map_err(late)?
        } else {
            // A file for a restart must not come when nobody restarts any more.
            write.await
        };
        let failed = |source| KeepError::Write { path: shown.clone(), source };
        let hash = done.map_err(io::Error::other).and_then(|done| done).map_err(failed)?;
        if lasts {
            let mut state = self.with();
            (state.changes, state.hash) = (changes, Some(hash));
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
    pub(crate) async fn finish(&self, entering: &Entering, restart: bool) {
        if !self.with().recalled || !(restart || self.place.automatic) {
            return;
        }
        if let Err(error) = self.hand_over(entering).await {
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
