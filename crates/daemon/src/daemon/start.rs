//! From a configuration to a daemon whose ports carry packets.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use control::net::MacAddr;
use control::{Config, config};
use dpdk::PoolError;
use forward::bridge::MacTable;
use forward::rib::{self, Rib};
use forward::steering::{ServedFrames, Steering, SteeringLimits};
use graph::{Doorbell, RxAssignment, WorkerError, WorkerState};
use tables::Epoch;

use super::{Changing, Daemon, Shared};
use crate::bridges::Bridges;
use crate::clients::Clients;
use crate::flows::Flows;
use crate::functions::Functions;
use crate::kernel_sides::KernelSides;
use crate::origin::Origin;
use crate::ports::{
    Attachments, Devices, Needs, Numa, OpenError, Pools, PortState, Ports, Unanswered,
};
use crate::routing::{NumbersError, Routing};
use crate::sessions::Sessions;
use crate::settings;
use crate::workers::{Tables, Workers, WorkersError, attach_receive, attach_transmit};

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Port(#[from] OpenError),
    #[error(transparent)]
    Workers(#[from] WorkersError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(transparent)]
    Numbers(#[from] NumbersError),
    #[error("no memory for the route tables: {0}; lower limits.routes4 and limits.routes6")]
    Tables(#[from] tables::OutOfMemory),
    #[error("no memory for flows or learned addresses: {0}; lower limits.flows4, limits.flows6")]
    Flows(#[from] tables::FlowError),
    #[error("the control thread's doorbell: {0}; raise LimitNOFILE (ulimit -n)")]
    Doorbell(std::io::Error),
    #[error("no thread for devices: {0}")]
    Thread(std::io::Error),
    #[error(transparent)]
    Devices(#[from] Unanswered),
    #[error("{0}; correct the configuration")]
    Routes(String),
}

/// Opens the ports, starts the workers and applies the configuration. Packets are received after [`Intake::open`]. `mac`: the
/// MAC address that a port with that name and device had before. `beside`: another process forwards still, and has the devices
/// that only one can have.
///
/// Errors: [`StartError`]; ports and workers are closed again.
pub(crate) async fn start(
    path: PathBuf,
    config: Config,
    mac: impl Fn(&str, &str) -> Option<MacAddr>,
    beside: bool,
) -> Result<(Shared, Intake), StartError> {
    let pools = Pools::new(&config, Numa::of_machine());
    let devices = Devices::start(pools).map_err(StartError::Thread)?;
    let cores = config.workers.cores.clone();
    let buffers = move |pools: &mut Pools| -> Result<Vec<_>, _> {
        cores.into_iter().map(|core| pools.of_core(core)).collect()
    };
    let buffers = devices.run(buffers).await??;
    let mut ports = Ports::default();
    let mut queues = Vec::new();
    for section in &config.ports {
        let mut port = PortState::new(section, Needs::of(&config, &section.name))?;
        if let Some(mac) = mac(&section.name, section.device.as_str()) {
            port.recall_mac(mac);
        }
        let held = beside && port.is_held();
        if !held && !port.lacks_peer() {
            let ready = devices.open(port.order()).await?;
            queues.push((section.clone(), port.install(ready)));
        }
        ports.push(port);
    }
    let epoch = Epoch::new();
    // A seed of its own for each router: with the same one, those behind a member would not spread what it gets.
    let ecmp_seed = random();
    let (rib, state) = Rib::new(
        settings::limits(&config),
        settings::miss(&config),
        settings::settings(&config, ecmp_seed),
        &epoch,
    )?;
    let hops = rib.flow_next_hops();
    let flows = forward::flow::Flows::new(
        settings::flow_limits(&config),
        state.next_hops.clone(),
        hops,
        &epoch,
    )?;
    let macs = MacTable::new(settings::size(config.limits.bridge_macs), &epoch)?;
    let doorbell = Arc::new(Doorbell::new().map_err(StartError::Doorbell)?);
    let steering = Steering::new(SteeringLimits::default(), random(), &epoch)?;
    let tables = Tables {
        state: &state,
        flows: flows.readers(),
        macs: macs.reader(),
        steering: steering.reader(),
        buffers: &buffers,
        epoch: &epoch,
    };
    let (workers, rings) = Workers::start(&config, &tables, &doorbell)?;
    let served = ServedFrames::new(state.clone(), steering.reader());
    let routing = Routing::new(&config, (rib, state, ecmp_seed), (rings.injector, rings.punts))?;
    let sessions = Sessions::new(&config.sessions, steering, [random(), random()]);
    let shared = Shared::new(Daemon {
        origin: Origin::of_start(path, &config),
        config,
        started: Instant::now(),
        workers,
        devices,
        ports,
        shown: Attachments::new(),
        routing,
        flows: Flows::new(flows),
        bridges: Bridges::new(macs, rings.learned),
        clients: Clients::default(),
        sessions,
        functions: Functions::default(),
        kernel_sides: KernelSides::new(Arc::new(served)),
        doorbell,
    });
    let changing = shared.change().await;
    // First the ways out: addresses are announced as soon as there are interfaces. Packets are
    // taken in when everything is there.
    let crew = changing.lock().workers.crew();
    let mut receive = Vec::new();
    for (section, queues) in queues {
        let id = changing.lock().ports.id(&section.name);
        if let Some(id) = id {
            attach_transmit(&crew, id, queues.tx).await?;
        }
        receive.push((section, queues.rx));
    }
    changing.publish().await;
    changing.lock().apply_static()?;
    drop::<Changing>(changing);
    Ok((shared, Intake(receive)))
}

/// Receive queues of ports that are open, which no worker polls yet.
pub(crate) struct Intake(Vec<(config::Port, Vec<RxAssignment>)>);

impl Intake {
    /// Gives them to the workers. `discard`: what came until now was another process's too, and is thrown away.
    ///
    /// Errors: a worker does not answer.
    pub(crate) async fn open(self, daemon: &Shared, discard: bool) -> Result<(), StartError> {
        let crew = daemon.lock().workers.crew();
        for (section, mut queues) in self.0 {
            if let Some(worker) = crew.get(0).filter(|_| discard) {
                let throw_away = move |_: &mut WorkerState| {
                    queues.iter_mut().for_each(RxAssignment::discard);
                    queues
                };
                queues = worker.ask(throw_away).get().await?;
            }
            attach_receive(&crew, &section, queues).await?;
        }
        Ok(())
    }
}

/// What nobody outside can guess.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Daemon {
    /// The configuration's routes and neighbours.
    fn apply_static(&mut self) -> Result<(), StartError> {
        let wrong = |error: &dyn std::fmt::Display| StartError::Routes(error.to_string());
        let routes: Result<Vec<_>, _> = self
            .config
            .static_routes
            .iter()
            .map(|route| self.routing.route(route).map(rib::Change::Add))
            .collect();
        let routes = routes.map_err(|error| wrong(&error))?;
        self.routing.change_routes(&routes).map_err(|error| wrong(&error))?;
        for neighbor in &self.config.static_neighbors {
            if let Err(error) = self.routing.add_neighbor(&self.config, neighbor) {
                tracing::error!("neighbour {}: {error}", neighbor.address);
            }
        }
        Ok(())
    }
}
