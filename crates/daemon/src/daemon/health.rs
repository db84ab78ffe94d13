//! Looks at links as soon as they change, at workers ten times a second, at devices that may be back and at processes that were
//! slow to end once.

use std::time::Instant;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use super::{Changing, Daemon, Shared};
use crate::clients::Host as _;
use crate::ports::Condition;
use crate::processes::reap_judges;
use crate::service::{Beat, notify};
use crate::sessions::{self, Host as _};
use crate::workers::{Change, Member, PERIOD, Watch};

/// Looks at workers for each at devices that were gone.
const LOOKS: u32 = 10;

/// Longest time between two attempts to open a port anew: looks.
const LONGEST_BACKOFF: u32 = 8;

/// Looks after workers and ports for ever.
pub(crate) async fn look_after(daemon: Shared, beat: Beat) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch::new(&daemon.lock().workers.crew());
    let changed = daemon.lock().devices.changed();
    let (mut looks, mut status) = (0, String::new());
    let (mut repair, mut asking) = (None, None);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = changed.notified() => {
                // What it finds broken, the next look finds too.
                daemon.look_at_ports(false);
                continue;
            }
        }
        beat.count();
        notify::retry();
        looks = (looks + 1) % LOOKS;
        let changes = watch.look();
        for change in &changes {
            match change {
                Change::Silent(core, probation) => {
                    let until = match probation.as_secs() {
                        0 => String::new(),
                        seconds => format!(" until it has answered for {seconds} s"),
                    };
                    tracing::error!(core, "the worker does not answer: its ports are down{until}");
                }
                Change::Answers(core) => tracing::warn!(core, "the worker answers again"),
            }
        }
        daemon.lock().look_round(watch.answering());
        let second = looks == 0;
        let broken = daemon.look_at_ports(second);
        let is_busy =
            |task: &Option<JoinHandle<()>>| task.as_ref().is_some_and(|task| !task.is_finished());
        if daemon.lock().sessions.has_vacancies() && !is_busy(&asking) {
            asking = Some(tokio::spawn(look_at_sockets(daemon.clone())));
        }
        // Opening and closing takes time that the workers are watched in.
        if !broken.is_empty() && !is_busy(&repair) {
            repair = Some(tokio::spawn(mend(daemon.clone(), broken)));
        }
        if !second && changes.is_empty() {
            continue;
        }
        if second {
            tell_of_threads(&daemon);
            reap_judges();
        }
        daemon.lock().lend_to_clients().look_after();
        daemon.lock().sessions.reclaim();
        let now = daemon.lock().status();
        if now != status {
            notify::status(&now);
            status = now;
        }
    }
}

/// Logs which of the threads that nobody waits for hang, and which run again.
fn tell_of_threads(daemon: &Shared) {
    let (stacks, late) = {
        let daemon = daemon.lock();
        (daemon.sessions.threads().look(), daemon.workers.threads().look())
    };
    let tell = |news: Vec<(String, bool)>, what: &str| {
        for (thread, answers) in news {
            if answers {
                tracing::warn!(thread, "the thread runs again");
            } else {
                tracing::error!(thread, "the thread hangs, and {what}");
            }
        }
    };
    tell(stacks, "the stacks that it runs with it");
    tell(late, "what clients had that are gone stays; a driver may hold it up");
}

/// Asks the kernel whether the sockets of listeners that nobody serves still listen.
async fn look_at_sockets(daemon: Shared) {
    if let Ok(listening) = spawn_blocking(sessions::listening).await {
        daemon.lock().lend().fill_vacancies(&listening);
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
    /// What is due with every look at the workers, of which these listen.
    fn look_round(&mut self, listening: impl Iterator<Item = usize>) {
        listening.for_each(|worker| self.routing.listened(worker));
        self.routing.reclaim();
        self.sessions.tend(Instant::now());
    }
}

impl Shared {
    /// Notes what became of the ports; routes follow their links at once. Returns those that need something. `second`: also
    /// those that were gone, and drivers that do not answer are noted.
    fn look_at_ports(&self, second: bool) -> Vec<Broken> {
        let mut broken = Vec::new();
        let mut daemon = self.lock();
        let crew = daemon.workers.crew();
        let is_down = |core: &u16| crew.on_core(*core).is_some_and(Member::is_down);
        for port in daemon.ports.iter_mut() {
            let name = port.config.name.clone();
            let unserved = port.cores().find(is_down);
            port.set_unserved(unserved);
            let answers = if second { port.listen() } else { None };
            match answers {
                Some(false) => {
                    tracing::error!(
                        port = name,
                        "its driver does not answer: what is shown of the device is from before"
                    );
                }
                Some(true) => tracing::warn!(port = name, "its driver answers again"),
                None => {}
            }
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
                }
                None => {}
            }
            if port.is_to_be_closed() {
                broken.push(Broken::Gone(name));
            } else if second && port.id().is_none() && port.retry_is_due(LONGEST_BACKOFF) {
                broken.push(Broken::Closed(name));
            }
        }
        if daemon.ports.attachments() != daemon.shown {
            daemon.publish();
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
