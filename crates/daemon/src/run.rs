//! From start to stop.

use std::io;
use std::path::Path;
use std::time::Duration;

use control::Config;
use dpdk::{Device, Eal, EalError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::args::{Args, exit};
use crate::daemon::{Daemon, Shared, StartError};
use crate::socket::{Access, Carries, Claim, SocketError};
use crate::{api, clients, files, health, notify, pools, reload, slow_path};

/// How long requests in progress may go on after the daemon was told to stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Eal(#[from] EalError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the control thread: {0}")]
    System(#[from] io::Error),
}

impl RunError {
    /// The code that the program ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Socket(_) => exit::SOCKET,
            _ => exit::FAILURE,
        }
    }
}

/// Runs the daemon until it is told to stop.
///
/// Errors: [`RunError`]; everything is closed again then.
pub(crate) fn run(args: &Args, config: Config) -> Result<(), RunError> {
    raise_file_limit();
    let socket = args.socket.clone().unwrap_or_else(|| config.daemon.socket.clone());
    let group = Access::Group(config.daemon.group.as_deref());
    let claim = Claim::take(&socket, group, Carries::Bytes)?;
    let attach = claim_attach(&config, &socket)?;
    let devices = config.ports.iter().filter_map(|port| port.device.as_str().parse().ok());
    let devices: Vec<Device> = devices.collect();
    // DPDK's own log shows errors, and with --log debug or trace all of it.
    let verbose = tracing::enabled!(tracing::Level::DEBUG);
    let eal = Eal::init(&pools::eal_options(&config, devices, if verbose { 7 } else { 4 }))?;
    tracing::info!(hugepages = eal.hugepages(), "{} runs", Eal::version());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let daemon = {
        let _context = runtime.enter();
        Daemon::start(args.config.clone(), config)?
    };
    let ended = runtime.block_on(serve(&claim, &attach, daemon.clone()));
    daemon.lock().stop();
    tracing::info!("stopped");
    ended
}

/// Clients, workers and sockets take file descriptors: as many as the system allows, not the few that shells begin with.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!("the limit of file descriptors stays at {:?}: {error}", limit.current);
    }
}

/// The socket where clients attach: beside the API's unless it has a place of its own.
fn claim_attach(config: &Config, api: &Path) -> Result<Claim, SocketError> {
    let path = config.clients.socket.clone().unwrap_or_else(|| api.with_file_name("attach.sock"));
    // Who it is decides: root, the group, the rules.
    Claim::take(&path, Access::All, Carries::Messages)
}

async fn serve(claim: &Claim, attach: &Claim, daemon: Shared) -> Result<(), RunError> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = UnixListener::from_std(claim.listener()?)?;
    let (stop, stopping) = watch::channel(false);
    let server = tokio::spawn(api::serve(listener, daemon.clone(), stopping));
    let tasks = [
        tokio::spawn(slow_path::run(daemon.clone())?),
        tokio::spawn(health::run(daemon.clone())),
        tokio::spawn(files::load_configured(daemon.clone())),
        tokio::spawn(clients::run(UnixListener::from_std(attach.listener()?)?, daemon.clone())),
    ];
    let watchdog = notify::watchdog().map(|period| tokio::spawn(watch_over(period)));
    tracing::info!("the API is at {}", claim.path().display());
    tracing::info!("clients attach at {}", attach.path().display());
    notify::ready(&daemon.lock().status());
    stop_signal(&mut hang_up, &mut terminate, &mut interrupt, &daemon).await;
    notify::stopping();
    // Nobody listens any more when the server has ended by itself.
    let _ = stop.send(true);
    if tokio::time::timeout(PATIENCE, server).await.is_err() {
        tracing::warn!("requests were still in progress after {PATIENCE:?}");
    }
    for task in tasks.iter().chain(&watchdog) {
        task.abort();
    }
    Ok(())
}

/// Reloads at each SIGHUP, and returns at SIGTERM or SIGINT.
async fn stop_signal(
    hang_up: &mut Signal,
    terminate: &mut Signal,
    interrupt: &mut Signal,
    daemon: &Shared,
) {
    loop {
        tokio::select! {
            Some(()) = hang_up.recv() => {
                // What is wrong is in the log, and the old configuration stays in force.
                let _ = reload::from_file(daemon, None).await;
            }
            _ = terminate.recv() => break tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => break tracing::info!("SIGINT: stopping"),
        }
    }
}

/// Tells the service manager that this thread still comes round.
async fn watch_over(period: Duration) {
    let mut ticks = tokio::time::interval(period);
    loop {
        ticks.tick().await;
        notify::alive();
    }
}
