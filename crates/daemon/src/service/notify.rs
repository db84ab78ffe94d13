//! What the service manager is told: ready, reloading, stopping, alive, and a line of status.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use sd_notify::NotifyState;

use super::outbox::{Outbox, Waits};

/// Names its socket.
const SOCKET: &str = "NOTIFY_SOCKET";
/// How long the service manager may take to hear of the process that takes over.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two attempts to tell it.
const BREATH: Duration = Duration::from_millis(10);

/// What the service manager has no room for yet.
static OUTBOX: Mutex<Outbox> = Mutex::new(Outbox::new());

/// The daemon serves: ports are open, workers run, the API answers.
pub(crate) fn ready(status: &str) {
    send(Waits::Always, &[NotifyState::Ready, NotifyState::Status(status)]);
}

/// A new configuration is being applied: the service manager is told when that begins and, whatever comes, when
/// it is over.
pub(crate) struct Reloading {
    over: bool,
}

impl Reloading {
    /// It begins.
    pub(crate) fn begin() -> Self {
        let mut states = vec![NotifyState::Reloading];
        states.extend(NotifyState::monotonic_usec_now());
        states.push(NotifyState::Status("applying a new configuration"));
        send(Waits::Alone, &states);
        Self { over: false }
    }

    /// It is over.
    pub(crate) fn end(mut self, status: &str) {
        self.over = true;
        ready(status);
    }
}

impl Drop for Reloading {
    fn drop(&mut self) {
        if !self.over {
            send(Waits::Always, &[NotifyState::Ready]);
        }
    }
}

/// The daemon is ending.
pub(crate) fn stopping() {
    send(Waits::Alone, &[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// The daemon ends and begins anew in the same process, which then says that it is ready.
pub(crate) fn restarting() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now());
    states.push(NotifyState::Status("restarting"));
    send(Waits::Alone, &states);
}

/// Another process takes over, which then says that it is ready. Blocks for a moment where the service manager is busy: it takes
/// the end of this process for the daemon's otherwise.
pub(crate) fn handing_over(pid: u32) {
    send(Waits::Always, &[NotifyState::MainPid(pid)]);
    let end = Instant::now() + PATIENCE;
    while is_behind() {
        if Instant::now() >= end {
            tracing::error!("the service manager does not hear that process {pid} takes over");
            return;
        }
        thread::sleep(BREATH);
        retry();
    }
}

/// Whether there is a service manager, which follows when another process takes over.
pub(crate) fn is_heard() -> bool {
    env::var_os(SOCKET).is_some()
}

/// A new line of status.
pub(crate) fn status(status: &str) {
    send(Waits::ForTheNext, &[NotifyState::Status(status)]);
}

/// The control thread is alive.
pub(crate) fn alive() {
    send(Waits::Never, &[NotifyState::Watchdog]);
}

/// Says what the service manager had no room for until now.
pub(crate) fn retry() {
    // What is wrong was in the log when it was said first.
    let _ = with_outbox(Outbox::flush);
}

/// How often [`alive`] must be called, when the service manager watches: half of its patience. `successor`: the process that
/// the service manager has started was another.
pub(crate) fn watchdog(successor: bool) -> Option<Duration> {
    let mut microseconds = 0;
    if successor {
        microseconds = env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    } else if !sd_notify::watchdog_enabled(false, &mut microseconds) {
        return None;
    }
    Some(Duration::from_micros(microseconds / 2).max(Duration::from_millis(10)))
}

/// Never blocks.
fn send(waits: Waits, states: &[NotifyState<'_>]) {
    let message: String = states.iter().map(|state| format!("{state}\n")).collect();
    if let Err(error) = with_outbox(|outbox, to| outbox.send(waits, message, to)) {
        tracing::debug!("the service manager was not told: {error}");
    }
}

/// Whether the service manager has not been told everything.
fn is_behind() -> bool {
    !OUTBOX.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Without a service manager this does nothing.
fn with_outbox(act: impl FnOnce(&mut Outbox, &Path) -> io::Result<()>) -> io::Result<()> {
    let Some(to) = env::var_os(SOCKET) else { return Ok(()) };
    act(&mut OUTBOX.lock().unwrap_or_else(PoisonError::into_inner), Path::new(&to))
}
