//! What a user may have, all its processes together: a bound that held for one connection only would hold for nobody.

use std::collections::HashMap;

use graph::ClientPace;
use shm::attach::Refusal;

use super::no_resources;

/// One of a user's bounds.
pub(crate) struct UserBound {
    /// Its key in the configuration.
    pub(crate) key: &'static str,
    /// What it bounds.
    pub(crate) what: &'static str,
    pub(crate) has: usize,
    pub(crate) more: usize,
    pub(crate) most: usize,
}

impl UserBound {
    /// Of memory, in bytes, of which the configuration allows so many MiB.
    pub(crate) fn memory(has: usize, more: usize, mebibytes: u32) -> Self {
        let most = (mebibytes as usize) << 20;
        Self { key: "memory", what: "MiB of shared memory", has, more, most }
    }

    /// Whether there may be that much more. `section`: of the configuration, whose name is that of the processes.
    ///
    /// Errors: what the process is told.
    pub(crate) fn check(&self, section: &str, uid: u32) -> Result<(), Refusal> {
        let Self { key, what, has, more, most } = *self;
        if has.saturating_add(more) <= most {
            return Ok(());
        }
        let mebibytes = |bytes: usize| bytes.div_ceil(1 << 20);
        let [has, more, most] = match key {
            "memory" => [has, more, most].map(mebibytes),
            _ => [has, more, most],
        };
        Err(no_resources(format!(
            "{more} {what} beside {has} that {section} of user {uid} have: {section}.{key} allows one \
             user {most}; ask for less, close some, or raise it"
        )))
    }
}

/// How often users are rung, by user and worker.
#[derive(Debug, Default)]
pub(crate) struct Paces(HashMap<u32, Vec<ClientPace>>);

impl Paces {
    /// How often a user is rung by the worker of that place.
    pub(crate) fn of(&mut self, uid: u32, worker: usize) -> ClientPace {
        let paces = self.0.entry(uid).or_default();
        if paces.len() <= worker {
            paces.resize_with(worker + 1, ClientPace::default);
        }
        paces.get(worker).cloned().unwrap_or_default()
    }

    /// A user has no processes any more.
    pub(crate) fn forget(&mut self, uid: u32) {
        self.0.remove(&uid);
    }
}
