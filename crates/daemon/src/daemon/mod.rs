//! The daemon: its parts put together. Each part owns its state and knows nothing of this module.
//!
//! | file | job |
//! | --- | --- |
//! | `start` | from a configuration to a daemon, and its end |
//! | `changing` | changes of what is open and of what tables hold, one at a time; the latter wait for no worker and no device |
//! | `ports` | opening, changing and closing ports |
//! | `routes`, `flows` | routes and flows changed part by part, with a way back |
//! | `functions`, `kernel_sides` | what follows ports on the workers |
//! | `clients`, `sessions` | what client processes and processes with stacks need |
//! | `health` | ports that go away and come back, workers that stop answering |
//! | `turn` | the slow path, for ever |
//! | `counters` | sums over workers and control thread |

mod changing;
mod clients;
mod counters;
mod flows;
mod functions;
mod health;
mod kernel_sides;
mod ports;
mod routes;
mod sessions;
mod start;
mod turn;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use control::Config;
use graph::{Doorbell, InterfaceId};
use tokio::sync::Notify;

use crate::bridges::Bridges;
use crate::clients::{Clients, Host as _};
use crate::flows::Flows;
use crate::functions::Functions;
use crate::kernel_sides::KernelSides;
use crate::origin::Origin;
use crate::ports::{Attachments, Devices, Ports};
use crate::routing::{InUse, Routing};
use crate::sessions::Sessions;
use crate::workers::Workers;

pub(crate) use changing::{Changing, Entering, Rights};
pub(crate) use health::look_after;
pub(crate) use ports::ChangeError;
pub(crate) use routes::RouteChanges;
pub(crate) use start::{StartError, start};
pub(crate) use turn::slow_path;

/// The daemon, shared by the tasks of the control thread. Locked for as long as one step takes: no task waits,
/// and no step calls what can block, while it has the lock.
#[derive(Clone)]
pub(crate) struct Shared {
    daemon: Arc<Mutex<Daemon>>,
    changes: Arc<tokio::sync::Mutex<()>>,
    entries: Arc<tokio::sync::Mutex<()>>,
    changed: Arc<Notify>,
}

impl Shared {
    fn new(daemon: Daemon) -> Self {
        let changed = daemon.routing.changed();
        let (changes, entries) = (Arc::default(), Arc::default());
        Self { daemon: Arc::new(Mutex::new(daemon)), changes, entries, changed }
    }

    /// The daemon, for one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts of a daemon.
pub(crate) struct Daemon {
    /// Where the configuration came from.
    pub(crate) origin: Origin,
    /// The configuration in force.
    pub(crate) config: Config,
    /// When the daemon started.
    pub(crate) started: Instant,
    /// Worker threads.
    pub(crate) workers: Workers,
    /// The thread that opens and closes devices.
    pub(crate) devices: Devices,
    /// Ports.
    pub(crate) ports: Ports,
    /// Ports as interfaces and routes follow them now.
    shown: Attachments,
    /// Routes, next hops and neighbours.
    pub(crate) routing: Routing,
    /// Exact-match flows.
    pub(crate) flows: Flows,
    /// What bridges have learned.
    pub(crate) bridges: Bridges,
    /// Client processes.
    pub(crate) clients: Clients,
    /// Processes with stacks of their own.
    pub(crate) sessions: Sessions,
    /// Packet functions.
    pub(crate) functions: Functions,
    /// The kernel's sides of ports.
    pub(crate) kernel_sides: KernelSides,
    /// Rung when packets for the control thread wait.
    doorbell: Arc<Doorbell>,
}

impl Daemon {
    /// Shows interfaces as they are now to the workers, the routes, the flows and the clients.
    pub(crate) fn publish(&mut self) {
        // What was seen until now was seen on the interfaces of before.
        self.bridges.learn_all(&self.routing.interfaces());
        self.shown = self.ports.attachments();
        self.routing.show_interfaces(&self.config, &self.shown);
        let interfaces = self.routing.interfaces();
        self.flows.show_interfaces(&interfaces);
        self.bridges.show_interfaces(&interfaces);
        self.lend_to_clients().renumber_client_ports();
    }

    /// Interfaces that routes, neighbours and flows name, those too that are gone.
    pub(crate) fn named_interfaces(&self) -> HashSet<InterfaceId> {
        self.routing.named_interfaces().chain(self.flows.egresses()).collect()
    }

    /// Numbers that routes, neighbours and flows say, of interfaces and VRFs that may be gone.
    pub(crate) fn in_use(&self) -> InUse {
        InUse { interfaces: self.named_interfaces(), vrfs: self.routing.named_vrfs() }
    }

    /// A line for the service manager.
    pub(crate) fn status(&self) -> String {
        let (routes4, routes6) = self.routing.rib().len();
        let down = self.workers.iter().filter(|worker| worker.is_down()).count();
        let mut status = format!(
            "{} of {} ports up, {} workers, {} routes",
            self.ports.up(),
            self.ports.len(),
            self.workers.iter().count(),
            routes4 + routes6
        );
        if down > 0 {
            status.push_str(&format!(", {down} workers do not answer"));
        }
        status
    }

    /// Ends the workers and closes the ports.
    pub(crate) fn stop(&mut self) {
        self.workers.stop();
        self.routing.clear();
        self.ports.clear();
    }
}
