//! A new configuration in place of the one in force: all of it or nothing. Packets of what did not change do not
//! notice.
//!
//! | file | job |
//! | --- | --- |
//! | `load` | a configuration, read and checked with every file that it names |
//! | `difference` | what differs between two |
//! | `transaction` | everything that can fail, then everything that cannot; or all of it undone |
//! | `ports`, `routes`, `flows`, `neighbors` | the parts of that, each with its way back |
//! | `parts` | files of routes and flows, read part by part |

mod difference;
mod flows;
mod load;
mod neighbors;
mod parts;
mod ports;
mod routes;
mod transaction;

use std::net::IpAddr;
use std::path::PathBuf;

use control::ConfigError;
use control::api::Reloaded;
use control::config::Reach;

use crate::daemon::{ChangeError, Changing, Entering, Shared};
use crate::routing::{NeighborError, NumbersError, RoutesError};
use crate::service::notify;

pub(crate) use load::load;

/// Why a configuration was refused. The one before is still in force then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error("{}", lines(.0))]
    Config(Vec<ConfigError>),
    #[error("{0}; nothing was changed")]
    Port(#[from] ChangeError),
    #[error("{0}; nothing was changed")]
    Routes(#[from] RoutesError),
    #[error("{0}; nothing was changed")]
    Numbers(#[from] NumbersError),
    #[error("neighbour {address}: {error}; nothing was changed")]
    Neighbor { address: IpAddr, error: NeighborError },
    #[error("{0}; nothing was changed")]
    Flows(String),
    #[error("the configuration was not applied: {0}")]
    Task(String),
}

fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Loads a configuration file (`None`: the one of the last time; one that is named has to lie where the API reaches) and
/// applies it. Who asked may go away: it is
/// carried through.
///
/// Errors: [`ReloadError`], also in the log; nothing has changed then.
pub(crate) async fn from_file(
    daemon: &Shared,
    path: Option<PathBuf>,
) -> Result<Reloaded, ReloadError> {
    let daemon = daemon.clone();
    let task = tokio::spawn(async move {
        let changing = daemon.change().await;
        let told = notify::Reloading::begin();
        let (path, reach) = {
            let daemon = changing.lock();
            daemon.origin.next(path, &daemon.config)
        };
        let applied = match load::load_elsewhere(path.clone(), reach).await {
            Ok(config) => transaction::apply(&changing, config).await,
            Err(errors) => Err(ReloadError::Config(errors)),
        };
        if applied.is_ok() {
            changing.lock().origin.set(path);
        }
        // The daemon is not held while the service manager takes it.
        let status = changing.lock().status();
        told.end(&status);
        tell(&applied);
        applied
    });
    task.await.unwrap_or_else(|error| Err(ReloadError::Task(error.to_string())))
}

/// Checks the configuration that a start would load.
///
/// Errors: everything that is wrong.
pub(crate) async fn check_start(changing: &Changing) -> Result<(), Vec<ConfigError>> {
    let path = changing.lock().origin.of_next_start().to_owned();
    load::load_elsewhere(path, Reach::Anywhere).await.map(drop)
}

/// Puts the routes and flows of the configured files in force after a start. What is wrong goes to the log.
pub(crate) async fn load_files(entering: &Entering) {
    if let Err(error) = transaction::load_files(entering).await {
        tracing::error!("{error}");
    }
}

fn tell(applied: &Result<Reloaded, ReloadError>) {
    match applied {
        Ok(done) => {
            tracing::info!("new configuration: {}", sentences(&done.changes));
            if !done.at_restart.is_empty() {
                tracing::warn!("at the next start: {}", sentences(&done.at_restart));
            }
        }
        Err(error) => tracing::error!("the configuration stays as it was: {error}"),
    }
}

fn sentences(list: &[String]) -> String {
    if list.is_empty() { "no difference".to_owned() } else { list.join("; ") }
}
