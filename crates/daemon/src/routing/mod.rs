//! Routes, next hops and neighbours: the control thread's side of forwarding.
//!
//! | file | job |
//! | --- | --- |
//! | `ids`, `topology` | numbers of interfaces, and what the nodes read of them |
//! | `routes` | routes by the names of their interfaces |
//! | `neighbors` | neighbours by the names of theirs |
//! | `slow_path` | packets that workers hand to the control thread, and timers |
//! | `early` | those among them that wait for a server |

mod early;
mod ids;
mod neighbors;
mod routes;
mod slow_path;
mod topology;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use control::Config;
use forward::neighbor::{Action, SlowPath};
use forward::rib::Rib;
use forward::state::{Interfaces, NextHop, State, VrfId};
use graph::{InterfaceId, Punt, Reason};
use tables::OutOfMemory;
use tokio::sync::Notify;

use crate::ports::Attachments;
use crate::settings;
use crate::workers::{Inbox, Injector};

pub(crate) use neighbors::NeighborError;
pub(crate) use routes::{
    FilePlace, RoutesError, file_place, place_of_file, prefix_from_rib, prefix_to_rib,
    source_to_rib,
};
pub(crate) use topology::{InUse, Topology};

use early::Early;
use ids::TooMany;
use slow_path::Punted;

/// Why names are not numbered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NumbersError {
    #[error("{0}; remove some")]
    TooMany(#[from] TooMany),
    #[error(
        "no memory for the tables of a VRF: {0}; lower limits.routes4 and limits.routes6, or remove VRFs"
    )]
    Memory(#[from] OutOfMemory),
}

/// The routing of one daemon.
pub(crate) struct Routing {
    topology: Topology,
    /// What the workers read.
    state: State,
    slow: SlowPath<Punted>,
    early: Early<Punted>,
    /// Of the hash that spreads flows over the members of an ECMP route, unless the configuration has one.
    ecmp_seed: u64,
    /// What the slow path asks for; empty between two steps.
    actions: Vec<Action<Punted>>,
    injector: Injector,
    /// Packets for the control thread, by worker.
    punts: Inbox<Punt>,
    started: Instant,
    /// Until when no address conflict is reported: nanoseconds since the start.
    conflict_silence: u64,
    /// Places of the routes that came from files, sorted.
    file_routes: Arc<Vec<FilePlace>>,
    changed: Arc<Notify>,
    /// Counted with each change of routes and neighbours that people make.
    changes: u64,
}

impl Routing {
    /// Routing without interfaces and routes, numbered as the configuration says.
    ///
    /// Errors: [`NumbersError`].
    pub(crate) fn new(
        config: &Config,
        (rib, state, ecmp_seed): (Rib, State, u64),
        (injector, punts): (Injector, Inbox<Punt>),
    ) -> Result<Self, NumbersError> {
        let mut topology = Topology::default();
        topology.renumber(config, &InUse::default())?;
        let mut slow = SlowPath::new(
            rib,
            state.clone(),
            settings::timing(config),
            settings::bounds(config),
            settings::seed(),
        );
        topology.vrfs().try_for_each(|id| slow.open_vrf(id))?;
        Ok(Self {
            topology,
            state,
            slow,
            early: Early::default(),
            ecmp_seed,
            actions: Vec::new(),
            injector,
            punts,
            started: Instant::now(),
            conflict_silence: 0,
            file_routes: Arc::default(),
            changed: Arc::default(),
            changes: 0,
        })
    }

    /// Told when the slow path has something new to do.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Counted with each change of routes and neighbours that people make.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The numbers of interfaces, bridges and VRFs.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// VRFs that given routes are in or name, those too that are gone.
    pub(crate) fn named_vrfs(&self) -> HashSet<VrfId> {
        self.rib().named_vrfs().collect()
    }

    /// Makes tables for the VRFs of numbers that are to be put in force, where they have none.
    ///
    /// Errors: the system refuses the memory.
    pub(crate) fn open_vrfs(&mut self, topology: &Topology) -> Result<(), OutOfMemory> {
        topology.vrfs().try_for_each(|id| self.slow.open_vrf(id))
    }

    /// Interfaces that given routes and neighbours name, those too that are gone.
    pub(crate) fn named_interfaces(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.slow.named_interfaces()
    }

    /// Puts other numbers in force: those of a configuration that was checked, or the ones before.
    pub(crate) fn set_topology(&mut self, topology: Topology) {
        self.topology = topology;
    }

    /// The routing table.
    pub(crate) fn rib(&self) -> &Rib {
        self.slow.rib()
    }

    /// A next hop as the workers see it.
    pub(crate) fn next_hop(&self, index: u32) -> NextHop {
        self.state.next_hops.get(index)
    }

    /// The interfaces as the workers see them.
    pub(crate) fn interfaces(&self) -> Arc<Interfaces> {
        self.state.interfaces.load_full()
    }

    /// Shows interfaces and switches to the workers, and follows with the routes that they imply.
    pub(crate) fn show_interfaces(&mut self, config: &Config, ports: &Attachments) {
        let interfaces = Arc::new(self.topology.interfaces(config, ports));
        let macs = routes::next_hop_macs(config, &self.topology);
        self.slow.set_switches(
            settings::miss(config),
            settings::settings(config, self.ecmp_seed),
            settings::timing(config),
            settings::bounds(config),
        );
        let now = self.now();
        self.act(|slow, actions| slow.set_interfaces(interfaces, &macs, now, actions));
    }

    /// Packets that the control thread dropped for this reason.
    pub(crate) fn dropped(&self, reason: Reason) -> u64 {
        self.injector.dropped(reason)
    }

    /// Sends IP packets by the routes, as the router's own.
    pub(crate) fn send(&mut self, packets: &[Vec<u8>]) {
        packets.iter().for_each(|packet| self.injector.send_routed(packet));
        self.injector.notify();
    }

    /// Frees snapshots that the workers have let go of.
    pub(crate) fn reclaim(&self) {
        self.state.reclaim();
    }

    /// Drops the packets that wait: the daemon ends.
    pub(crate) fn clear(&mut self) {
        self.punts.clear();
        self.early = Early::default();
        self.actions.clear();
    }

    /// Nanoseconds since the daemon started.
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Lets the slow path do something, and does what it asks for.
    fn act<R>(
        &mut self,
        step: impl FnOnce(&mut SlowPath<Punted>, &mut Vec<Action<Punted>>) -> R,
    ) -> R {
        let mut actions = std::mem::take(&mut self.actions);
        let done = step(&mut self.slow, &mut actions);
        self.perform(actions);
        self.changed.notify_one();
        done
    }
}
