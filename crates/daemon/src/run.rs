//! From start to stop.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, panic, thread};

use control::Config;
use dpdk::{Device, Eal, EalError};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::Restarts;
use crate::args::{Args, exit};
use crate::daemon::{self, Shared, StartError};
use crate::keep::{Keeper, Kept, Place};
use crate::ports::eal_options;
use crate::processes::asks;
use crate::service::{self, Access, Again, Carries, Claim, Lineage, Progress, SocketError, notify};
use crate::workers::Member;
use crate::{api, clients, reload, sessions};

/// Descriptors that the process's table has room for from the start. Each doubling makes whoever accepts or opens
/// something wait for all threads: 8 to 14 ms were seen (AMD EPYC, Linux 6.18); alone it is 0.02 ms.
const DESCRIPTORS: u64 = 16_384;

/// How long requests in progress may go on after the daemon was told to stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// In which every task comes round that does so once a second, on a busy machine too.
const ROUND: Duration = Duration::from_secs(2);

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
    #[error("a part of the daemon has ended unexpectedly; see the lines before")]
    Task,
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

/// Runs the daemon until it is told to stop, or to begin anew: then the program is given that is to be run in this process.
///
/// Errors: [`RunError`]; everything is closed again then.
pub(crate) fn run(args: &Args, config: Config) -> Result<Option<Again>, RunError> {
    let (program, lineage) = (service::program()?, Arc::new(Lineage::of_environment()));
    raise_file_limit();
    let socket = args.socket.clone().unwrap_or_else(|| config.daemon.socket.clone());
    let group = Access::Group(config.daemon.group.as_deref());
    let claim = Claim::take(&socket, group, Carries::Bytes)?;
    let sockets = Sockets {
        attach: claim_beside(&config.clients.socket, &socket, "attach.sock")?,
        sessions: claim_beside(&config.sessions.socket, &socket, "sessions.sock")?,
        api: claim,
    };
    let devices = config.ports.iter().filter_map(|port| port.device.as_str().parse().ok());
    let devices: Vec<Device> = devices.collect();
    // DPDK's own log shows errors, and with --log debug or trace all of it.
    let verbose = tracing::enabled!(tracing::Level::DEBUG);
    let eal = Eal::init(&eal_options(&config, devices, if verbose { 7 } else { 4 }))?;
    tracing::info!(hugepages = eal.hugepages(), "{} runs", Eal::version());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let place = Place::of(&config, sockets.api.path());
    let kept = Kept::find(&place);
    let mac = |port: &str, device: &str| kept.mac(port, device);
    let daemon = runtime.block_on(daemon::start(args.config.clone(), config, mac))?;
    let keeper = Keeper::new(daemon.clone(), place);
    let parts = Parts { daemon: daemon.clone(), keeper, lineage: Arc::clone(&lineage) };
    let ended = runtime.block_on(serve(&sockets, parts, kept));
    daemon.lock().workers.stop();
    // From here on nothing is forwarded.
    let again = Again::now(program, &lineage);
    daemon.lock().stop();
    tracing::info!("stopped");
    Ok(match ended? {
        End::Stop => None,
        End::Restart => Some(again),
    })
}

/// What the tasks of a running daemon have.
struct Parts {
    daemon: Shared,
    keeper: Keeper,
    lineage: Arc<Lineage>,
}

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stop,
    Restart,
}

/// Clients, workers and sockets take file descriptors: as many as the system allows, not the few that shells begin with.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!("the limit of file descriptors stays at {:?}: {error}", limit.current);
    }
    let most = i32::try_from(limit.maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS)).unwrap_or(1024);
    if let Ok(file) = File::open("/dev/null") {
        // The kernel makes the table as large as the highest number needs.
        drop(fcntl_dupfd_cloexec(&file, most - 1));
    }
}

/// What the daemon can be reached by.
struct Sockets {
    api: Claim,
    attach: Claim,
    sessions: Claim,
}

/// A socket to which processes come: beside the API's unless it has a place of its own.
fn claim_beside(own: &Option<PathBuf>, api: &Path, name: &str) -> Result<Claim, SocketError> {
    let path = own.clone().unwrap_or_else(|| api.with_file_name(name));
    // Who it is decides: root, the group, the rules.
    Claim::take(&path, Access::All, Carries::Messages)
}

async fn serve(
    sockets: &Sockets,
    Parts { daemon, keeper, lineage }: Parts,
    kept: Kept,
) -> Result<End, RunError> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = UnixListener::from_std(sockets.api.listener()?)?;
    let (stop, stopping) = watch::channel(false);
    let mut panicked = panics();
    let mut progress = Progress::default();
    // None of these ends by itself.
    let mut tasks = JoinSet::new();
    tasks.spawn(daemon::slow_path(daemon.clone(), progress.task("slow path"))?);
    tasks.spawn(daemon::look_after(daemon.clone(), progress.task("health")));
    let (control, asked) = asks();
    clients::open(sockets.attach.listener()?, &daemon, control.clone())?;
    sessions::open(sockets.sessions.listener()?, &daemon.lock().sessions, control)?;
    let asking = daemon.clone();
    tasks.spawn(asked.serve(move |act| act(&mut asking.lock())));
    if let Some(period) = notify::watchdog() {
        tasks.spawn(watch_over(period, progress, daemon.clone()));
    }
    tasks.spawn(keeper.clone().keep());
    let restarts = Restarts { lineage: Arc::clone(&lineage), asked: Arc::default() };
    let asked = Arc::clone(&restarts.asked);
    let api = (daemon.clone(), keeper.clone(), restarts);
    let server = tokio::spawn(api::serve(listener, api, stopping));
    tokio::spawn(fill((daemon.clone(), keeper.clone(), lineage), kept));
    tracing::info!("the API is at {}", sockets.api.path().display());
    tracing::info!("clients attach at {}", sockets.attach.path().display());
    tracing::info!("programs on Millrace connect at {}", sockets.sessions.path().display());
    notify::ready(&daemon.lock().status());
    let ended = loop {
        tokio::select! {
            Some(()) = hang_up.recv() => {
                let daemon = daemon.clone();
                // What is wrong is in the log, and the old configuration stays in force.
                tokio::spawn(async move { reload::from_file(&daemon, None).await });
            }
            _ = terminate.recv() => {
                tracing::info!("SIGTERM: stopping");
                break Ok(End::Stop);
            }
            _ = interrupt.recv() => {
                tracing::info!("SIGINT: stopping");
                break Ok(End::Stop);
            }
            () = asked.notified() => {
                tracing::info!("restarting");
                break Ok(End::Restart);
            }
            Some(_) = tasks.join_next() => break Err(RunError::Task),
            _ = panicked.wait_for(|panicked| *panicked) => break Err(RunError::Task),
        }
    };
    // A change that is being made is finished first: the service manager hears of its end before it hears of ours.
    let changing = tokio::time::timeout(PATIENCE, daemon.change()).await;
    match ended {
        Ok(End::Restart) => notify::restarting(),
        _ => notify::stopping(),
    }
    // Nobody listens any more when the server has ended by itself.
    let _ = stop.send(true);
    if tokio::time::timeout(PATIENCE, server).await.is_err() {
        tracing::warn!("requests were still in progress after {PATIENCE:?}");
    }
    tasks.abort_all();
    match (changing, &ended) {
        // What was changed until now is kept.
        (Ok(changing), Ok(end)) => {
            let kept = keeper.finish(&changing, *end == End::Restart);
            if tokio::time::timeout(PATIENCE, kept).await.is_err() {
                tracing::error!("state could not be kept within {PATIENCE:?}");
            }
        }
        // Who knows what state it is in.
        (Ok(_), Err(_)) => {}
        (Err(_), _) => tracing::warn!("a change was still being made after {PATIENCE:?}"),
    }
    ended
}

/// Puts in force what takes its time: the files of the configuration, and then what was kept and they do not have.
async fn fill((daemon, keeper, lineage): (Shared, Keeper, Arc<Lineage>), kept: Kept) {
    let changing = daemon.change().await;
    reload::load_files(&changing).await;
    keeper.recall(&changing, kept).await;
    lineage.forwards();
}

/// Told when a task or thread panics, which no task gets over: the daemon ends then, cleanly. A worker's end is
/// seen by its watch.
fn panics() -> watch::Receiver<bool> {
    let (panicked, told) = watch::channel(false);
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        print(info);
        let worker = thread::current().name().is_some_and(|name| name.starts_with("millrace-w"));
        if !worker {
            panicked.send_replace(true);
        }
    }));
    told
}

/// Tells the service manager that this daemon lives, while every task and every worker makes progress.
async fn watch_over(period: Duration, mut progress: Progress, daemon: Shared) {
    let mut ticks = tokio::time::interval(period);
    let (mut stuck, mut looked) = (Vec::new(), Instant::now());
    loop {
        ticks.tick().await;
        if looked.elapsed() >= ROUND {
            (stuck, looked) = (progress.stuck(), Instant::now());
        }
        let silent = daemon.lock().workers.crew().iter().any(Member::is_silent);
        if stuck.is_empty() && !silent {
            notify::alive();
        } else {
            tracing::error!(?stuck, "no sign of life goes to the service manager");
        }
    }
}
