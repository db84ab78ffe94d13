//! Flows of the files that a configuration names, put in force part by part. What was done can be undone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use control::Config;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use wire::flow::FiveTuple;

use super::ReloadError;
use super::load::{PATIENCE, late};
use super::parts::{self, PART};
use crate::daemon::Entering;
use crate::flows::{Entered, Names, Stamp};

/// What was done.
#[derive(Default)]
pub(super) struct Done {
    entered: Vec<Entered>,
    stamps: Option<Vec<Stamp>>,
}

/// Enters the flows of the files, when these have changed.
///
/// Errors: a flow that does not fit, a file that has changed since it was checked.
pub(super) async fn put_in_force(
    entering: &Entering,
    after: &Config,
    done: &mut Done,
) -> Result<(), ReloadError> {
    let files = after.flows.files.clone();
    let mut stamps = Vec::with_capacity(files.len());
    for path in &files {
        stamps.push(stamp(path).await?);
    }
    if entering.lock().flows.files() == stamps {
        return Ok(());
    }
    for path in files {
        let mut file = parts::flows(path.clone(), after.reach.clone());
        let mut count = 0;
        while let Some(part) = file.next().await {
            let part = part.map_err(|error| ReloadError::Config(vec![error]))?;
            let entered = {
                let mut daemon = entering.lock();
                let daemon = &mut *daemon;
                let names = Names { config: after, ports: &daemon.ports, routing: &daemon.routing };
                daemon.flows.add(names, &part)
            };
            let entered = entered
                .map_err(|error| ReloadError::Flows(format!("{}: {error}", path.display())))?;
            count += entered.len();
            done.entered.extend(entered);
            // Others have their turn, also while the file is read faster than its flows are entered.
            tokio::task::yield_now().await;
        }
        tracing::info!("{}: {count} flows", path.display());
    }
    done.stamps = Some(stamps);
    Ok(())
}

/// Takes back what [`put_in_force`] did.
pub(super) async fn take_back(entering: &Entering, done: Done) {
    entering.take_back_flows(done.entered).await;
}

/// When the files had changed: the tables hold their flows after this and no others; flows of the API last until
/// then.
pub(super) async fn finish(entering: &Entering, done: Done) {
    let Done { entered, stamps: Some(stamps) } = done else { return };
    // Only a runtime that is shutting down does not run it.
    let Ok(present) = spawn_blocking(move || hashes(entered)).await else { return };
    let keep = |tuple: &FiveTuple| present.binary_search(&hash(tuple)).is_ok();
    let mut place = Some(0);
    while let Some(first) = place {
        place = entering.lock().flows.retain(first, PART, keep).map(|(behind, _)| behind);
        tokio::task::yield_now().await;
    }
    entering.lock().flows.set_files(stamps);
}

/// What shows that a file has changed.
///
/// Errors: its file system does not answer.
async fn stamp(path: &Path) -> Result<Stamp, ReloadError> {
    let file = path.to_owned();
    let found = timeout(PATIENCE, spawn_blocking(move || std::fs::metadata(file).ok())).await;
    let found = found.map_err(|_| ReloadError::Config(vec![late(path)]))?.unwrap_or_default();
    let modified = found.as_ref().and_then(|found| found.modified().ok());
    Ok((path.to_owned(), modified, found.map_or(0, |found| found.len())))
}

/// Hashes of flows, sorted; not flows: 16 million of them fit. Millions take so long, and the flows to be freed, that
/// neighbours would wait.
fn hashes(flows: Vec<Entered>) -> Vec<u64> {
    let mut hashes: Vec<u64> = flows.iter().map(|flow| hash(flow.tuple())).collect();
    hashes.sort_unstable();
    hashes
}

fn hash(tuple: &FiveTuple) -> u64 {
    let mut hasher = DefaultHasher::new();
    Hash::hash(tuple, &mut hasher);
    hasher.finish()
}
