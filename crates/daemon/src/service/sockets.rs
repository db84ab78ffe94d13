//! The sockets that a daemon can be reached by.

use std::path::{Path, PathBuf};

use control::Config;

use super::{Access, Carries, Claim, SocketError};

/// Where they are to be, and who may come.
#[derive(Debug)]
pub(crate) struct Places {
    api: PathBuf,
    group: Option<String>,
    attach: PathBuf,
    sessions: PathBuf,
}

/// What the daemon can be reached by.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) api: Claim,
    pub(crate) attach: Claim,
    pub(crate) sessions: Claim,
}

impl Places {
    /// Of a daemon with this configuration. `socket`: the API's, in place of the configuration's.
    pub(crate) fn of(config: &Config, socket: Option<&Path>) -> Self {
        let api = socket.unwrap_or(&config.daemon.socket).to_owned();
        // Beside the API's, unless it has a place of its own.
        let beside = |own: &Option<PathBuf>, name: &str| {
            own.clone().unwrap_or_else(|| api.with_file_name(name))
        };
        Self {
            group: config.daemon.group.clone(),
            attach: beside(&config.clients.socket, "attach.sock"),
            sessions: beside(&config.sessions.socket, "sessions.sock"),
            api,
        }
    }

    /// The API's.
    pub(crate) fn api(&self) -> &Path {
        &self.api
    }

    /// Takes them.
    ///
    /// Errors: [`SocketError`]; all of them are free again.
    pub(crate) fn claim(&self) -> Result<Sockets, SocketError> {
        let group = Access::Group(self.group.as_deref());
        let api = Claim::take(&self.api, group, Carries::Bytes)?;
        // Who it is decides: root, the group, the rules.
        let messages = |path| Claim::take(path, Access::All, Carries::Messages);
        Ok(Sockets { attach: messages(&self.attach)?, sessions: messages(&self.sessions)?, api })
    }
}
