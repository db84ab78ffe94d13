//! Packet functions from shared objects: added to workers and taken away while packets flow.

use std::path::Path;
use std::time::Instant;

use control::api;
use graph::PortId;
use loader::{LoadError, Object};

use crate::daemon::Daemon;
use crate::workers::WorkersError;

/// Numbers of functions on workers; a client's begin with its own number, which is not 0.
fn worker_number(id: u32) -> u64 {
    u64::from(id)
}

/// A function that was added.
pub(crate) struct Added {
    id: u32,
    asked: api::FunctionAdd,
    object: Object,
    since: Instant,
    /// The port that its instances are bound to; `None`: that port is gone, and with it the instances.
    bound: Option<PortId>,
}

/// Why a function was not added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FunctionError {
    #[error("'{0}' is no name of a file in functions.folder")]
    Name(String),
    #[error("no worker runs on core {0}; see millrace show workers")]
    Core(u16),
    #[error("there is no port {0}, or it is not open; see millrace show ports")]
    Port(String),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Worker(#[from] WorkersError),
}

impl Daemon {
    /// Loads a shared object and gives its instances to the workers.
    pub(crate) fn add_function(
        &mut self,
        asked: api::FunctionAdd,
    ) -> Result<api::Function, FunctionError> {
        let name = Path::new(&asked.file);
        if name.file_name() != Some(name.as_os_str()) {
            return Err(FunctionError::Name(asked.file.escape_debug().to_string()));
        }
        if let Some(core) = asked.core {
            if !self.workers.iter().any(|worker| worker.core == core) {
                return Err(FunctionError::Core(core));
            }
        }
        let bound = asked.port.as_deref().map(|port| {
            self.port_id(port).ok_or_else(|| FunctionError::Port(port.escape_debug().to_string()))
        });
        let bound = bound.transpose()?;
        let object = Object::load(&self.config.functions.folder.join(name))?;
        let id = self.last_function.wrapping_add(1).max(1);
        self.last_function = id;
        let added = Added { id, asked, object, since: Instant::now(), bound };
        if let Err(error) = self.install(&added) {
            self.uninstall(id);
            return Err(error);
        }
        tracing::info!(function = id, "{} added", added.object.path().display());
        let shown = show(&added);
        self.functions.push(added);
        Ok(shown)
    }

    /// Takes a function away. Gives whether there was one.
    pub(crate) fn remove_function(&mut self, id: u32) -> bool {
        let Some(at) = self.functions.iter().position(|added| added.id == id) else { return false };
        let added = self.functions.remove(at);
        self.uninstall(id);
        tracing::info!(function = id, "{} removed", added.object.path().display());
        true
    }

    /// As the API shows them.
    pub(crate) fn show_functions(&self) -> Vec<api::Function> {
        self.functions.iter().map(show).collect()
    }

    /// Ports came or went: functions follow theirs. Their instances are new then.
    pub(crate) fn rebind_functions(&mut self) {
        for mut added in std::mem::take(&mut self.functions) {
            let now = added.asked.port.as_deref().and_then(|port| self.port_id(port));
            if added.asked.port.is_some() && now != added.bound {
                self.uninstall(added.id);
                added.bound = now;
                if now.is_some() {
                    if let Err(error) = self.install(&added) {
                        tracing::error!(function = added.id, "{error}");
                        self.uninstall(added.id);
                        added.bound = None;
                    }
                }
            }
            self.functions.push(added);
        }
    }

    fn port_id(&self, name: &str) -> Option<PortId> {
        self.ports.iter().find(|port| port.config.name == name)?.id()
    }

    fn install(&self, added: &Added) -> Result<(), FunctionError> {
        let wanted = |core| added.asked.core.is_none_or(|wanted| wanted == core);
        for worker in self.workers.iter().filter(|worker| wanted(worker.core)) {
            let instance = Box::new(added.object.instance(&added.asked.argument, added.bound)?);
            let number = worker_number(added.id);
            let call = self.workers.call(worker, move |state| state.add_function(number, instance));
            call.map_err(WorkersError::from)?;
        }
        Ok(())
    }

    fn uninstall(&self, id: u32) {
        let number = worker_number(id);
        // Its own code takes it down: here, not between two vectors.
        self.workers.take_back(move |state| state.remove_function(number));
    }
}

fn show(added: &Added) -> api::Function {
    let (id, asked) = (added.id, added.asked.clone());
    api::Function { id, age: added.since.elapsed().as_secs(), asked }
}
