//! What the service manager is told: ready, reloading, stopping, alive, and a line of status.

use std::time::Duration;

use sd_notify::NotifyState;

/// The daemon serves: ports are open, workers run, the API answers.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
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
        send(&states);
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
            send(&[NotifyState::Ready]);
        }
    }
}

/// The daemon is ending.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// The daemon ends and begins anew in the same process, which then says that it is ready.
pub(crate) fn restarting() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now());
    states.push(NotifyState::Status("restarting"));
    send(&states);
}

/// Another process takes over, which then says that it is ready.
pub(crate) fn handing_over(pid: u32) {
    send(&[NotifyState::MainPid(pid)]);
}

/// Whether there is a service manager, which follows when another process takes over.
pub(crate) fn is_heard() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// A new line of status.
pub(crate) fn status(status: &str) {
    send(&[NotifyState::Status(status)]);
}

/// The control thread is alive.
pub(crate) fn alive() {
    send(&[NotifyState::Watchdog]);
}

/// How often [`alive`] must be called, when the service manager watches: half of its patience. `successor`: the process that
/// the service manager has started was another.
pub(crate) fn watchdog(successor: bool) -> Option<Duration> {
    let mut microseconds = 0;
    if successor {
        microseconds = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    } else if !sd_notify::watchdog_enabled(false, &mut microseconds) {
        return None;
    }
    Some(Duration::from_micros(microseconds / 2).max(Duration::from_millis(10)))
}

/// Without a service manager this does nothing.
fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(false, states) {
        tracing::debug!("the service manager was not told: {error}");
    }
}
