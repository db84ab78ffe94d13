//! Static neighbours of a configuration.

use std::collections::HashMap;
use std::net::IpAddr;

use control::config::{Config, StaticNeighbor};
use control::net::MacAddr;
use tokio::task::yield_now;

use super::ReloadError;
use super::parts::PART;
use crate::daemon::Entering;

/// What was done.
#[derive(Default)]
pub(super) struct Done {
    gone: Vec<StaticNeighbor>,
    came: Vec<StaticNeighbor>,
}

impl Done {
    /// As people are told.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let words = |what: &'static str| {
            move |one: &StaticNeighbor| format!("neighbour {} {what}", one.address)
        };
        let gone = self.gone.iter().map(words("removed"));
        gone.chain(self.came.iter().map(words("added")))
    }
}

/// Removes the neighbours that are gone or different, and adds those that are new or different, to interfaces that are
/// shown already.
///
/// Errors: there is no room for one. [`withdraw`] and [`restore`] undo what was done until then.
pub(super) async fn put_in_force(
    entering: &Entering,
    before: &Config,
    after: &Config,
    done: &mut Done,
) -> Result<(), ReloadError> {
    let came = beside(after, before);
    done.gone = beside(before, after);
    remove(entering, &done.gone).await;
    for part in came.chunks(PART) {
        {
            let routing = &mut entering.lock().routing;
            for neighbor in part {
                let address = neighbor.address;
                let added = routing.add_neighbor(after, neighbor);
                added.map_err(|error| ReloadError::Neighbor { address, error })?;
                done.came.push(neighbor.clone());
            }
        }
        yield_now().await;
    }
    Ok(())
}

/// Removes what has come. The interfaces are still those among which it was added.
pub(super) async fn withdraw(entering: &Entering, done: &Done) {
    remove(entering, &done.came).await;
}

/// Adds what was removed. The interfaces are those of before again.
pub(super) async fn restore(entering: &Entering, before: &Config, done: &Done) {
    for part in done.gone.chunks(PART) {
        {
            let routing = &mut entering.lock().routing;
            for neighbor in part {
                // It was there before, so it fits again.
                if let Err(error) = routing.add_neighbor(before, neighbor) {
                    tracing::error!("neighbour {}: {error}", neighbor.address);
                }
            }
        }
        yield_now().await;
    }
}

async fn remove(entering: &Entering, list: &[StaticNeighbor]) {
    for part in list.chunks(PART) {
        {
            let routing = &mut entering.lock().routing;
            for neighbor in part {
                // Its interface may be gone, and it with it.
                let _ = routing.remove_neighbor(&neighbor.interface, neighbor.address);
            }
        }
        yield_now().await;
    }
}

/// Those of a configuration that another does not have.
fn beside(config: &Config, other: &Config) -> Vec<StaticNeighbor> {
    let others = other.static_neighbors.iter();
    let others: HashMap<(&str, IpAddr), MacAddr> = others.map(|one| (key(one), one.mac)).collect();
    let own = config.static_neighbors.iter();
    own.filter(|one| others.get(&key(one)) != Some(&one.mac)).cloned().collect()
}

fn key(neighbor: &StaticNeighbor) -> (&str, IpAddr) {
    (&neighbor.interface, neighbor.address)
}
