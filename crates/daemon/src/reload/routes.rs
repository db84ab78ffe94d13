//! Static routes of a configuration and of the files that it names.

use std::collections::HashSet;
use std::sync::Arc;

use control::config::{Config, Route};
use forward::rib::Place;
use tokio::task::spawn_blocking;

use super::ReloadError;
use super::difference::route_changes;
use super::parts;
use crate::daemon::{Entering, RouteChanges};
use crate::routing::{FilePlace, file_place, place_of_file};

/// What was done.
#[derive(Default)]
pub(super) struct Done {
    changes: RouteChanges,
    /// Places of the files' routes before.
    file_routes: Option<Arc<Vec<FilePlace>>>,
    /// Routes of the configuration itself that are new or different, and that are gone.
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// Puts the routes of a configuration in force that shows its interfaces already.
///
/// Errors: a route that does not fit, a file that has changed since it was checked. [`take_back`] undoes what was
/// done until then.
pub(super) async fn put_in_force(
    entering: &Entering,
    before: &Config,
    after: &Config,
    done: &mut Done,
) -> Result<(), ReloadError> {
    let (added, removed) = route_changes(&before.static_routes, &after.static_routes);
    done.changes.add(entering, after, &added).await?;
    done.added = added.len();
    let mut present = Vec::new();
    for path in &after.routes.files {
        let mut file = parts::routes(path.clone(), after.reach.clone());
        let from = present.len();
        while let Some(part) = file.next().await {
            let part = part.map_err(|error| ReloadError::Config(vec![error]))?;
            done.changes.add(entering, after, &part).await?;
            present.extend(places(entering, &part));
        }
        if present.len() > from {
            tracing::info!("{}: {} routes", path.display(), present.len() - from);
        }
    }
    let present = Arc::new(sorted(present).await);
    let files_before = entering.lock().routing.exchange_file_routes(Arc::clone(&present));
    let configured: HashSet<FilePlace> =
        places(entering, &after.static_routes).into_iter().collect();
    let from_config = places(entering, &removed);
    let (from_config, from_files) =
        gone(configured, present, from_config, Arc::clone(&files_before)).await;
    done.file_routes = Some(files_before);
    done.changes.remove_present(entering, &in_tables(from_config)).await?;
    done.removed = done.changes.removed;
    done.changes.remove_present(entering, &in_tables(from_files)).await?;
    Ok(())
}

/// Of what the configuration and the files had, what they have no more.
async fn gone(
    configured: HashSet<FilePlace>,
    present: Arc<Vec<FilePlace>>,
    from_config: Vec<FilePlace>,
    from_files: Arc<Vec<FilePlace>>,
) -> (Vec<FilePlace>, Vec<FilePlace>) {
    let compare = move || {
        let stays =
            |place: &FilePlace| configured.contains(place) || present.binary_search(place).is_ok();
        let gone = |places: &[FilePlace]| -> Vec<FilePlace> {
            places.iter().filter(|place| !stays(place)).copied().collect()
        };
        (gone(&from_config), gone(&from_files))
    };
    spawn_blocking(compare).await.unwrap_or_default()
}

/// Each place once, in order. A million take so long, as with [`gone`], that neighbours would wait.
async fn sorted(places: Vec<FilePlace>) -> Vec<FilePlace> {
    let sort = |mut places: Vec<FilePlace>| {
        places.sort_unstable();
        places.dedup();
        places
    };
    // Only a runtime that is shutting down does not run it.
    spawn_blocking(move || sort(places)).await.unwrap_or_default()
}

/// Where routes stand. Those of a VRF that nothing names any more are gone with it.
fn places(entering: &Entering, routes: &[Route]) -> Vec<FilePlace> {
    let daemon = entering.lock();
    let place = |route: &Route| daemon.routing.place(route).as_ref().map(file_place);
    routes.iter().filter_map(place).collect()
}

fn in_tables(places: Vec<FilePlace>) -> Vec<Place> {
    places.iter().map(place_of_file).collect()
}

/// Nothing of it is taken back any more. A million routes take so long to free that neighbours would wait.
pub(super) fn finish(done: Done) {
    drop(spawn_blocking(move || drop(done)));
}

/// Takes back what [`put_in_force`] did. The interfaces are those of before again.
pub(super) async fn take_back(entering: &Entering, done: Done) {
    done.changes.take_back(entering).await;
    if let Some(before) = done.file_routes {
        entering.lock().routing.exchange_file_routes(before);
    }
}
