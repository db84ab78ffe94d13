//! Packet functions added, taken away, and bound to ports that come and go.

use control::api;

use super::Changing;
use crate::functions::{Added, FunctionError, path_of};

impl Changing {
    /// Loads a shared object and gives its instances to the workers.
    ///
    /// Errors: [`FunctionError`]; no worker has an instance.
    pub(crate) async fn add_function(
        &self,
        asked: api::FunctionAdd,
    ) -> Result<api::Function, FunctionError> {
        let (id, file, bound, crew) = {
            let mut daemon = self.lock();
            let file = path_of(&daemon.config.functions.folder, &asked.file)?;
            let crew = daemon.workers.crew();
            if let Some(core) = asked.core.filter(|core| crew.on_core(*core).is_none()) {
                return Err(FunctionError::Core(core));
            }
            let port = asked.port.as_deref();
            let bound = port.map(|port| {
                let id = daemon.ports.id(port);
                id.ok_or_else(|| FunctionError::Port(port.escape_debug().to_string()))
            });
            (daemon.functions.number(), file, bound.transpose()?, crew)
        };
        let added = Added::load(id, asked, file, bound).await?;
        if let Err(error) = added.install(&crew, bound).await {
            added.unload(&crew).await;
            return Err(error);
        }
        Ok(self.lock().functions.push(added))
    }

    /// Takes a function away. Gives whether there was one.
    pub(crate) async fn remove_function(&self, id: u32) -> bool {
        let (added, crew) = {
            let mut daemon = self.lock();
            (daemon.functions.remove(id), daemon.workers.crew())
        };
        let Some(added) = added else { return false };
        added.unload(&crew).await;
        true
    }

    /// Ports came or went: functions follow theirs. Their instances are new then.
    pub(super) async fn rebind_functions(&self) {
        let (astray, crew) = {
            let daemon = self.lock();
            (daemon.functions.astray(&daemon.ports), daemon.workers.crew())
        };
        for (added, now) in astray {
            added.uninstall(&crew).await;
            let mut bound = now;
            if now.is_some() {
                if let Err(error) = added.install(&crew, now).await {
                    tracing::error!(function = added.id(), "{error}");
                    added.uninstall(&crew).await;
                    bound = None;
                }
            }
            self.lock().functions.bind(added.id(), bound);
        }
    }
}
