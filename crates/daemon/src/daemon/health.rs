//! Ports that go away and come back, looked at once a second; workers that stop answering, ten times.

use std::time::Instant;

use tokio::time::{MissedTickBehavior, interval};

use super::{Changing, Daemon, Shared};
use crate::clients::Host as _;
use crate::ports::Condition;
use crate::service::{Beat, notify};
use crate::workers::{Change, Member, PERIOD, Watch};

/// Looks at workers for each look at ports.
const LOOKS: u32 = 10;

/// Longest time between two attempts to open a port anew: looks.
const LONGEST_BACKOFF: u32 = 8;

/// Looks after workers and ports for ever.
pub(crate) async fn look_after(daemon: Shared, beat: Beat) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch::new(&daemon.lock().workers.crew());
    let (mut looks, mut status) = (0, String::new());
    let mut repair = None;
    loop {
        ticks.tick().await;
        beat.count();
        looks += 1;
        let changes = watch.look();
        for change in &changes {
            match change {
                Change::Silent(core) => {
                    tracing::error!(core, "the worker does not answer: its ports are down");
                }
                Change::Answers(core) => tracing::warn!(core, "the worker answers again"),
            }
        }
        daemon.lock().heard(watch.answering());
        daemon.lock().sessions.tend(Instant::now());
        if looks % LOOKS != 0 && changes.is_empty() {
            continue;
        }
        let broken = daemon.look_at_ports();
        daemon.lock().lend_to_clients().look_after();
        daemon.lock().sessions.reclaim();
        let busy =
            repair.as_ref().is_some_and(|task: &tokio::task::JoinHandle<()>| !task.is_finished());
        // Opening and closing takes time that the workers are watched in.
        if !broken.is_empty() && !busy {
            repair = Some(tokio::spawn(mend(daemon.clone(), broken)));
        }
        let now = daemon.lock().status();
        if now != status {
            notify::status(&now);
            status = now;
        }
    }
}

/// What a port needs.
enum Broken {
    /// Its device is gone: it is to be closed.
    Gone(String),
    /// It was gone, and may be back.
    Closed(String),
}

impl Daemon {
    /// Notes that these workers listen.
    fn heard(&mut self, workers: impl Iterator<Item = usize>) {
        workers.for_each(|worker| self.routing.listened(worker));
    }
}

impl Shared {
    /// Notes what became of the ports. Returns those that need something.
    fn look_at_ports(&self) -> Vec<Broken> {
        let mut broken = Vec::new();
        let mut daemon = self.lock();
        let crew = daemon.workers.crew();
        let silent = |core: &u16| crew.on_core(*core).is_some_and(Member::is_silent);
        for port in daemon.ports.iter_mut() {
            let name = port.config.name.clone();
            let unserved = port.cores().find(silent);
            port.set_unserved(unserved);
            match port.look().cloned() {
                Some(Condition::Up) => tracing::info!(port = name, "up"),
                Some(Condition::Down(cause)) => tracing::warn!(port = name, "down: {cause}"),
                Some(Condition::Unserved(core)) => {
                    tracing::warn!(port = name, "down: the worker on core {core} does not answer");
                }
                Some(Condition::Gone(reason)) => {
                    tracing::warn!(
                        port = name,
                        "gone: {reason}; it is opened anew when it is back"
                    );
                    broken.push(Broken::Gone(name));
                }
                None if port.id().is_none() && port.retry_is_due(LONGEST_BACKOFF) => {
                    broken.push(Broken::Closed(name));
                }
                None => {}
            }
        }
        broken
    }
}

/// Closes ports whose device is gone, and opens those whose device is back.
async fn mend(daemon: Shared, broken: Vec<Broken>) {
    let changing = daemon.change().await;
    for port in broken {
        match port {
            Broken::Gone(name) => {
                if changing.is_gone(&name) {
                    changing.close_port(&name).await;
                    changing.publish().await;
                }
            }
            Broken::Closed(name) => {
                if !changing.is_wanted(&name) {
                    continue;
                }
                match changing.reopen_port(&name).await {
                    Ok(()) => tracing::info!(port = name, "its device is back"),
                    Err(error) => tracing::debug!("{error}"),
                }
            }
        }
    }
}

impl Changing {
    /// Whether a port is open and its device gone: things may have changed since it was looked at.
    fn is_gone(&self, name: &str) -> bool {
        let daemon = self.lock();
        let port = daemon.ports.get(name);
        port.is_some_and(|port| port.id().is_some() && matches!(port.condition, Condition::Gone(_)))
    }

    /// Whether a port is to be open and is not.
    fn is_wanted(&self, name: &str) -> bool {
        self.lock().ports.get(name).is_some_and(|port| port.enabled && port.id().is_none())
    }
}
