//! All that the control thread owns.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use control::Config;
use control::net::Prefix;
use dpdk::{BufferPool, PoolError};
use forward::bridge::{LearnReceiver, MacEntry, MacTable};
use forward::flow::Flows;
use forward::neighbor::{Action, SlowPath};
use forward::rib::{self, Rib};
use forward::state::State;
use graph::{Doorbell, Handoff, HandoffReceiver, Reason, RxAssignment};
use tables::Epoch;
use tokio::sync::Notify;

use crate::clients::Clients;
use crate::functions::Added;
use crate::ids::TooMany;
use crate::kernel::Side;
use crate::pools::Pools;
use crate::ports::{Needs, OpenError, PortState, Queues};
use crate::settings;
use crate::topology::{Attachment, Attachments, Topology};
use crate::workers::{Tables, Workers, WorkersError};

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Port(#[from] OpenError),
    #[error(transparent)]
    Workers(#[from] WorkersError),
    #[error("{0} of interfaces; remove some")]
    TooMany(#[from] TooMany),
    #[error("no memory for the route tables: {0}; lower limits.routes4 and limits.routes6")]
    Tables(#[from] tables::OutOfMemory),
    #[error("no memory for flows or learned addresses: {0}; lower limits.flows4, limits.flows6")]
    Flows(#[from] tables::FlowError),
    #[error("the control thread's doorbell: {0}; raise LimitNOFILE (ulimit -n)")]
    Doorbell(std::io::Error),
    #[error("{0}; correct the configuration")]
    Routes(String),
}

/// The daemon, shared by the tasks of the control thread. Held for as long as one step takes, and
/// never while a task waits.
#[derive(Clone)]
pub(crate) struct Shared {
    daemon: Arc<Mutex<Daemon>>,
    loading: Arc<tokio::sync::Mutex<()>>,
    changed: Arc<Notify>,
}

impl Shared {
    fn new(daemon: Daemon) -> Self {
        let changed = Arc::clone(&daemon.changed);
        Self { daemon: Arc::new(Mutex::new(daemon)), loading: Arc::default(), changed }
    }

    /// The daemon, for one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Told when the slow path has something new to do.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Waits until nobody else loads a configuration or the files that it names.
    pub(crate) async fn loading(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.loading.lock().await
    }
}

/// All that the control thread owns.
pub(crate) struct Daemon {
    /// Where the configuration came from.
    pub(crate) path: PathBuf,
    /// The configuration in force.
    pub(crate) config: Config,
    /// When the daemon started.
    pub(crate) started: Instant,
    /// Buffer pools.
    pub(crate) pools: Pools,
    /// Ports.
    pub(crate) ports: Vec<PortState>,
    /// Numbers of interfaces and bridges.
    pub(crate) topology: Topology,
    /// What the workers read.
    pub(crate) state: State,
    /// Routes, next hops and neighbours.
    pub(crate) slow: SlowPath<Handoff>,
    /// What the slow path asks for; empty between two steps.
    pub(crate) actions: Vec<Action<Handoff>>,
    /// Exact-match flows.
    pub(crate) flows: Flows,
    /// What bridges have learned.
    pub(crate) macs: MacTable,
    /// What bridges have seen, by worker.
    pub(crate) learned: Vec<LearnReceiver>,
    /// The second in which learned addresses were last aged.
    pub(crate) aged: u32,
    /// Buffers of packets that the control thread sends.
    pub(crate) pool: BufferPool,
    /// Until when no address conflict is reported: nanoseconds since the start.
    pub(crate) conflict_silence: u64,
    /// Worker threads.
    pub(crate) workers: Workers,
    /// Rung when packets for the control thread wait.
    pub(crate) doorbell: Arc<Doorbell>,
    /// Packets for the control thread, by worker.
    pub(crate) punts: Vec<HandoffReceiver>,
    /// Client processes.
    pub(crate) clients: Clients,
    /// The kernel's sides of ports, as the workers have them.
    pub(crate) kernel_sides: Vec<Side>,
    /// Packet functions, in the order in which they came, and the number of the last.
    pub(crate) functions: Vec<Added>,
    pub(crate) last_function: u32,
    /// Prefixes of the routes that came from files, sorted.
    pub(crate) file_routes: Vec<Prefix>,
    /// The flow files whose flows are in the tables.
    pub(crate) flow_files: Vec<crate::files::Stamp>,
    /// Packets that the control thread dropped, by reason.
    dropped: [u64; Reason::COUNT],
    changed: Arc<Notify>,
}

impl Daemon {
    /// Opens the ports, starts the workers and applies the configuration.
    ///
    /// Errors: [`StartError`]; ports and workers are closed again.
    pub(crate) fn start(path: PathBuf, config: Config) -> Result<Shared, StartError> {
        let mut pools = Pools::new(&config);
        let pool = pools.of_node(0)?;
        let mut ports = Vec::new();
        let mut queues = Vec::new();
        for port in &config.ports {
            let (state, opened) =
                PortState::open(port, Needs::of(&config, &port.name), &mut pools)?;
            ports.push(state);
            queues.push(opened);
        }
        let epoch = Epoch::new();
        let (rib, state) = Rib::new(
            settings::limits(&config),
            settings::miss(&config),
            settings::settings(&config),
            &epoch,
        )?;
        let hops = rib.flow_next_hops();
        let slow = SlowPath::new(
            rib,
            state.clone(),
            settings::timing(&config),
            settings::bounds(&config),
            settings::seed(),
        );
        let flows =
            Flows::new(settings::flow_limits(&config), state.next_hops.clone(), hops, &epoch)?;
        let macs = MacTable::new(settings::size(config.limits.bridge_macs), &epoch)?;
        let mut topology = Topology::default();
        topology.renumber(&config)?;
        let doorbell = Arc::new(Doorbell::new().map_err(StartError::Doorbell)?);
        let tables = Tables {
            state: &state,
            flows: flows.readers(),
            macs: macs.reader(),
            pool,
            epoch: &epoch,
        };
        let (workers, rings) = Workers::start(&config, &tables, &doorbell)?;
        let mut daemon = Self {
            path,
            config,
            started: Instant::now(),
            pools,
            ports,
            topology,
            state,
            slow,
            actions: Vec::new(),
            flows,
            macs,
            learned: rings.learned,
            aged: 0,
            pool,
            conflict_silence: 0,
            workers,
            doorbell,
            punts: rings.punts,
            clients: Clients::default(),
            kernel_sides: Vec::new(),
            functions: Vec::new(),
            last_function: 0,
            file_routes: Vec::new(),
            flow_files: Vec::new(),
            dropped: [0; Reason::COUNT],
            changed: Arc::default(),
        };
        // First the ways out: addresses are announced as soon as there are interfaces. Packets are
        // taken in when everything is there.
        let mut receive = Vec::new();
        for (port, queues) in daemon.ports.iter().zip(queues) {
            if let Some(id) = port.id() {
                daemon.workers.attach_transmit(id, queues.tx)?;
            }
            receive.push(queues.rx);
        }
        daemon.publish_interfaces();
        daemon.apply_static_routes()?;
        daemon.apply_static_neighbors();
        for (at, queues) in receive.into_iter().enumerate() {
            daemon.attach_receive(at, queues)?;
        }
        Ok(Shared::new(daemon))
    }

    /// Shows interfaces as they are now to the workers and to the routes.
    pub(crate) fn publish_interfaces(&mut self) {
        self.publish_with(&[], &[]);
    }

    /// As [`Self::publish_interfaces`], with ports that were opened already and without those that
    /// are about to be closed.
    pub(crate) fn publish_with(
        &mut self,
        opened: &[(PortState, Vec<RxAssignment>)],
        closed: &[usize],
    ) {
        let staying = self.ports.iter().enumerate().filter(|(at, _)| !closed.contains(at));
        let ports = staying.map(|(_, port)| port).chain(opened.iter().map(|(port, _)| port));
        let attachments: Attachments = ports
            .map(|port| (port.config.name.clone(), Attachment { id: port.id(), mac: port.mac }))
            .collect();
        let interfaces = self.topology.interfaces(&self.config, &attachments);
        let macs = crate::routes::next_hop_macs(&self.config, &self.topology);
        let interfaces = Arc::new(interfaces);
        self.slow.set_switches(
            settings::miss(&self.config),
            settings::settings(&self.config),
            settings::timing(&self.config),
            settings::bounds(&self.config),
        );
        let mut actions = std::mem::take(&mut self.actions);
        self.slow.set_interfaces(Arc::clone(&interfaces), &macs, self.now(), &mut actions);
        self.flows.set_interfaces(&interfaces);
        self.perform(actions);
        self.renumber_client_ports();
        self.rebind_functions();
        self.renew_kernel_sides();
        self.changed.notify_one();
    }

    fn apply_static_routes(&mut self) -> Result<(), StartError> {
        let changes = self
            .config
            .static_routes
            .iter()
            .map(|route| crate::routes::to_rib(route, &self.topology).map(rib::Change::Add));
        let changes: Result<Vec<_>, _> = changes.collect();
        let changes = changes.map_err(|error| StartError::Routes(error.to_string()))?;
        self.slow.apply(&changes).map_err(|error| StartError::Routes(error.to_string()))
    }

    fn apply_static_neighbors(&mut self) {
        for neighbor in self.config.static_neighbors.clone() {
            if let Err(error) = self.add_neighbor(&neighbor) {
                tracing::error!("neighbour {}: {error}", neighbor.address);
            }
        }
    }

    /// The routing table.
    pub(crate) fn rib(&self) -> &Rib {
        self.slow.rib()
    }

    /// Changes static routes: all of them or, on an error, none.
    pub(crate) fn change_routes(&mut self, changes: &[rib::Change]) -> Result<(), rib::ApplyError> {
        self.slow.apply(changes)?;
        self.changed.notify_one();
        Ok(())
    }

    /// Nanoseconds since the daemon started.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Something that the slow path must look at has changed.
    pub(crate) fn wake_slow_path(&self) {
        self.changed.notify_one();
    }

    /// Counts a packet that the control thread dropped.
    pub(crate) fn count_drop(&mut self, reason: Reason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Packets that the control thread dropped for this reason.
    pub(crate) fn dropped(&self, reason: Reason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// What a bridge has learned.
    pub(crate) fn learned_by(&self, bridge: u16) -> Vec<MacEntry> {
        let all = self.macs.entries(crate::slow_path::second());
        all.filter(|entry| entry.key.bridge == bridge).collect()
    }

    /// Name of an open port.
    pub(crate) fn port_name(&self, id: graph::PortId) -> Option<String> {
        let port = self.ports.iter().find(|port| port.id() == Some(id))?;
        Some(port.config.name.clone())
    }

    /// Gives the queues of a port that was opened to the workers.
    pub(crate) fn attach(&mut self, at: usize, queues: Queues) -> Result<(), WorkersError> {
        let Some(id) = self.ports.get(at).and_then(PortState::id) else { return Ok(()) };
        self.workers.attach_transmit(id, queues.tx)?;
        self.attach_receive(at, queues.rx)
    }

    /// Lets the workers receive from a port that they can send by already.
    pub(crate) fn attach_receive(
        &mut self,
        at: usize,
        queues: Vec<RxAssignment>,
    ) -> Result<(), WorkersError> {
        let Some(id) = self.ports.get(at).and_then(PortState::id) else { return Ok(()) };
        let counted = self.counted(id);
        let Some(port) = self.ports.get_mut(at) else { return Ok(()) };
        port.count_from(counted);
        self.workers.attach_receive(&port.config, queues)
    }

    /// A line for the service manager.
    pub(crate) fn status(&self) -> String {
        let up = self.ports.iter().filter(|port| port.is_up()).count();
        let (routes4, routes6) = self.rib().len();
        format!(
            "{up} of {} ports up, {} workers, {} routes",
            self.ports.len(),
            self.workers.iter().count(),
            routes4 + routes6
        )
    }

    /// Ends the workers and closes the ports.
    pub(crate) fn stop(&mut self) {
        self.workers.stop();
        self.punts.clear();
        self.actions.clear();
        self.ports.clear();
    }
}
