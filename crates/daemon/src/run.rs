//! From start to stop.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, panic, thread};

use control::Config;
use dpdk::{Device, Eal, EalError};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::args::{Args, exit};
use crate::clients::Host as _;
use crate::daemon::{self, Rights, Shared, StartError};
use crate::keep::{Keeper, Kept, Place};
use crate::ports::{Numa, eal_options};
use crate::processes::{Holders, asks, inherit_judges};
use crate::restart::{Handover, Restarts};
use crate::service::{
    self, Again, Lineage, Places, Predecessor, Progress, SocketError, Sockets, Successor, notify,
};
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
    #[error("the process to take over from has ended before: {0}")]
    Predecessor(io::Error),
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
    // Before the first thread: devices have theirs long before anybody is served.
    let panicked = panics();
    let (program, lineage) = (service::program()?, Arc::new(Lineage::of_environment()));
    let before = Predecessor::of(&lineage)?;
    raise_file_limit();
    let places = Places::of(&config, args.socket.as_deref());
    // A predecessor still has them.
    let claimed = if before.is_none() { Some(places.claim()?) } else { None };
    let devices = config.ports.iter().filter_map(|port| port.device.as_str().parse().ok());
    let devices: Vec<Device> = devices.collect();
    // DPDK's own log shows errors, and with --log debug or trace all of it.
    let verbose = tracing::enabled!(tracing::Level::DEBUG);
    let log_level = if verbose { 7 } else { 4 };
    let eal = Eal::init(&eal_options(&config, &Numa::of_machine(), devices, log_level))?;
    tracing::info!(hugepages = eal.hugepages(), "{} runs", Eal::version());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let place = Place::of(&config, places.api());
    let kept = Kept::find(&place);
    let leases = kept.leases().to_vec();
    let mac = |port: &str, device: &str| kept.mac(port, device);
    let starting = daemon::start(args.config.clone(), config, mac, before.is_some());
    let (daemon, intake) = runtime.block_on(starting)?;
    let keeper = Keeper::new(daemon.clone(), place);
    let restarts = Restarts::new(program.clone(), Arc::clone(&lineage));
    let (rest, discard) = match before {
        None => (Rest::Fill(kept), false),
        Some(mut before) => {
            // While packets are forwarded there.
            runtime.block_on(async {
                Rest::Fill(kept).done(daemon.stand_still().await, keeper.clone()).await;
            });
            lineage.stopped(before.stops().map_err(RunError::Predecessor)?);
            (Rest::Open(before), true)
        }
    };
    if lineage.restarts() > 0 {
        daemon.lock().sessions.expect_returns(&leases);
        inherit_judges();
    }
    runtime.block_on(intake.open(&daemon, discard))?;
    let sockets = match claimed {
        Some(sockets) => sockets,
        None => places.claim()?,
    };
    let parts = Parts { daemon: daemon.clone(), keeper, restarts, rest, panicked };
    let ended = runtime.block_on(serve(&sockets, parts));
    let again = match ended {
        Ok(End::HandOver(successor)) => {
            Ok(hand_over(*successor, sockets, &daemon, (program, &lineage)))
        }
        ended => {
            daemon.lock().workers.stop();
            // From here on nothing is forwarded.
            let again = Again::now(program, &lineage);
            daemon.lock().stop();
            ended.map(|end| matches!(end, End::Restart).then_some(again))
        }
    };
    // A thread that still reads a file, or runs a function's code, keeps nobody from the end.
    runtime.shutdown_timeout(PATIENCE);
    let again = again?;
    tracing::info!("stopped");
    Ok(again)
}

/// Ends, so that the successor can go on. Where it is gone, the program is given that is to be run in this process.
fn hand_over(
    mut successor: Successor,
    sockets: Sockets,
    daemon: &Shared,
    (program, lineage): (PathBuf, &Lineage),
) -> Option<Again> {
    drop(sockets);
    // The service manager takes the end of the one that it follows for the daemon's.
    let lives = successor.lives();
    if lives {
        notify::handing_over(successor.pid());
    }
    daemon.lock().workers.stop();
    let again = Again::now(program, lineage);
    let goes_on = lives && successor.stopped(again.stopped());
    daemon.lock().stop();
    if goes_on {
        successor.closed();
        return None;
    }
    tracing::error!("the new process has ended; restarting in place");
    Some(again)
}

/// What the tasks of a running daemon have.
struct Parts {
    daemon: Shared,
    keeper: Keeper,
    restarts: Restarts,
    rest: Rest,
    /// Whether a thread has panicked, whenever that was.
    panicked: watch::Receiver<bool>,
}

/// What is left to be done when the daemon serves.
enum Rest {
    /// The files of the configuration are put in force, and then what was kept and they do not have.
    Fill(Kept),
    /// Devices are opened that the predecessor closes.
    Open(Predecessor),
}

/// How it ends.
enum End {
    Stop,
    Restart,
    HandOver(Box<Successor>),
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

async fn serve(
    sockets: &Sockets,
    Parts { daemon, keeper, restarts, rest, mut panicked }: Parts,
) -> Result<End, RunError> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut progress = Progress::default();
    let listener = api::Incoming::of(sockets.api.listener()?, progress.task("API"))?;
    let (stop, stopping) = watch::channel(false);
    // None of these ends by itself.
    let mut tasks = JoinSet::new();
    tasks.spawn(daemon::slow_path(daemon.clone(), progress.task("slow path"))?);
    tasks.spawn(daemon::look_after(daemon.clone(), progress.task("health")));
    let (control, asked) = asks::<daemon::Daemon>();
    let holders = Arc::new(Holders::new());
    clients::open(
        sockets.attach.listener()?,
        daemon.lock().lend_to_clients(),
        control.clone(),
        Arc::clone(&holders),
    )?;
    let meeting = (sockets.sessions.listener()?, sockets.sessions.path());
    sessions::open(meeting, &daemon.lock().sessions, control.clone(), holders)?;
    let asking = daemon.clone();
    tasks.spawn(asked.serve(move |act| act(&mut asking.lock())));
    let beat = progress.task("what processes ask");
    tasks.spawn(control.look(move || beat.count()));
    if let Some(period) = notify::watchdog(restarts.lineage.restarts() > 0) {
        tasks.spawn(watch_over(period, progress, daemon.clone()));
    }
    tasks.spawn(keeper.clone().keep());
    let api = (daemon.clone(), keeper.clone(), restarts.clone());
    let server = tokio::spawn(api::serve(listener, api, stopping));
    let rights = daemon.stand_still().await;
    let (rest, lineage) = (rest.done(rights, keeper.clone()), Arc::clone(&restarts.lineage));
    tokio::spawn(async move {
        rest.await;
        lineage.forwards();
    });
    tracing::info!("the API is at {}", sockets.api.path().display());
    tracing::info!("clients attach at {}", sockets.attach.path().display());
    tracing::info!("programs on Millrace connect at {}", sockets.sessions.path().display());
    let status = daemon.lock().status();
    notify::ready(&status);
    let mut turn = None;
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
            handover = restarts.asked() => {
                tracing::info!("restarting");
                let Some(Handover { successor, rights }) = handover else { break Ok(End::Restart) };
                turn = Some(rights);
                break Ok(End::HandOver(Box::new(successor)));
            }
            Some(_) = tasks.join_next() => break Err(RunError::Task),
            _ = panicked.wait_for(|panicked| *panicked) => break Err(RunError::Task),
        }
    };
    // A change that is being made is finished first: the service manager hears of its end before it hears of ours.
    let rights = match turn {
        Some(rights) => Ok(rights),
        None => tokio::time::timeout(PATIENCE, daemon.stand_still()).await,
    };
    match &ended {
        Ok(End::Restart | End::HandOver(_)) => notify::restarting(),
        _ => notify::stopping(),
    }
    // Nobody listens any more when the server has ended by itself.
    let _ = stop.send(true);
    if tokio::time::timeout(PATIENCE, server).await.is_err() {
        tracing::warn!("requests were still in progress after {PATIENCE:?}");
    }
    tasks.abort_all();
    match (rights, &ended) {
        // Its successor has read everything.
        (_, Ok(End::HandOver(_))) => {}
        // What was changed until now is kept.
        (Ok((_changing, entering)), Ok(end)) => {
            let kept = keeper.finish(&entering, matches!(end, End::Restart));
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

impl Rest {
    /// Does it.
    async fn done(self, (changing, entering): Rights, keeper: Keeper) {
        match self {
            Self::Fill(kept) => {
                reload::load_files(&entering).await;
                keeper.recall(&changing, &entering, kept).await;
            }
            Self::Open(mut before) => {
                drop(entering);
                // It has ended otherwise.
                let _ = tokio::task::spawn_blocking(move || before.closes()).await;
                changing.open_released_ports().await;
            }
        }
    }
}

/// Told when a task or thread panics from now on, which no task gets over: the daemon ends then, cleanly. A worker's end is
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fall() {
        panic::panic_any("as the test wants it");
    }

    /// As on a user's thread: the runtime catches it.
    fn fall_in_a_task() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let fallen = runtime.block_on(async { tokio::spawn(async { fall() }).await });
        assert!(fallen.is_err());
    }

    /// Whether the daemon ends when a thread of that name panics.
    fn ends(name: &str, fall: fn()) -> bool {
        let told = panics();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(fall).unwrap();
        let _ = thread.join();
        let told = told.borrow();
        *told
    }

    #[test]
    fn a_panic_of_any_thread_but_a_workers_ends_the_daemon() {
        for name in ["user-1000", "serve-1000", "strangers"] {
            assert!(ends(name, fall_in_a_task), "{name}");
        }
        for name in ["attach", "stack-0", "parking", "millrace-late", "millrace-port"] {
            assert!(ends(name, fall), "{name}");
        }
        assert!(!ends("millrace-w0", fall), "its watch tells");
    }
}
