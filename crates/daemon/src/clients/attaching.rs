//! What there is at the attach socket, for the threads that serve it.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

use control::config::{self, ClientRule};
use shm::attach::Refusal;

use super::Host;
use super::permission::{self, Allowed};
use super::serve::Attached;
use crate::processes::{Bounds, Control, Holders, Process, Service, Shared};

/// The rules of the configuration in force, for the door.
pub(super) type Rules = Arc<Mutex<Vec<ClientRule>>>;

/// The attach socket's service.
pub(super) struct Attaching<H> {
    bounds: Bounds,
    rules: Rules,
    control: Control<H>,
    holders: Arc<Holders>,
}

impl<H: Host> Attaching<H> {
    pub(super) fn new(
        config: &config::Clients,
        rules: Rules,
        control: Control<H>,
        holders: Arc<Holders>,
    ) -> Self {
        let config::Clients { most, connections, requests, .. } = *config;
        let bounds = Bounds { most, connections, requests };
        Self { bounds, rules, control, holders }
    }
}

impl<H: Host> Service for Attaching<H> {
    const SOCKET: &'static str = "attach";
    const THREAD: &'static str = "user";
    const SECTION: &'static str = "clients";
    type Guest = Attached<H>;

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn admit(&self, process: &Process) -> Result<(), Refusal> {
        // The control thread does not wait for them while a file is read.
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let member = rules.is_empty() && permission::is_member(process);
        match Allowed::of(&rules, process, member) {
            Some(_) => Ok(()),
            None => Err(permission::stranger(&rules, process)),
        }
    }

    fn receive(&self, process: Process, shared: Arc<Shared>) -> Attached<H> {
        let control = self.control.of(process.credentials.uid, &shared.asking);
        let id = Arc::<AtomicU32>::default();
        let holders = Arc::clone(&self.holders);
        Attached { control, shared, holders, id, process, tokens: Vec::new() }
    }
}
