//! Ports that go away and come back: looked at once a second.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::daemon::{Daemon, Shared};
use crate::notify;
use crate::ports::{Condition, PortState};

/// How often ports are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Longest time between two attempts to open a port anew: periods.
const LONGEST_BACKOFF: u32 = 8;

/// Looks after the ports for ever.
pub(crate) async fn run(daemon: Shared) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut status = String::new();
    loop {
        ticks.tick().await;
        let now = {
            let mut daemon = daemon.lock();
            daemon.look_after_ports();
            daemon.look_after_clients();
            daemon.status()
        };
        if now != status {
            notify::status(&now);
            status = now;
        }
    }
}

impl Daemon {
    /// Notes what became of the ports, closes those whose device is gone, and opens those whose
    /// device is back.
    pub(crate) fn look_after_ports(&mut self) {
        let mut changed = false;
        for at in 0..self.ports.len() {
            let Some(port) = self.ports.get_mut(at) else { break };
            let name = port.config.name.clone();
            match port.look().cloned() {
                Some(Condition::Up) => tracing::info!(port = name, "up"),
                Some(Condition::Down(cause)) => tracing::warn!(port = name, "down: {cause}"),
                Some(Condition::Gone(reason)) => {
                    tracing::warn!(
                        port = name,
                        "gone: {reason}; it is opened anew when it is back"
                    );
                    self.close_port(at);
                    changed = true;
                }
                None if port.open.is_none() && port.retry_is_due(LONGEST_BACKOFF) => {
                    changed |= self.reopen_port(at);
                }
                None => {}
            }
        }
        if changed {
            self.publish_interfaces();
        }
    }

    /// Takes a port's queues from the workers and closes its device.
    pub(crate) fn close_port(&mut self, at: usize) {
        let Some(id) = self.ports.get(at).and_then(PortState::id) else { return };
        let counted = self.counted(id);
        let Some(port) = self.ports.get_mut(at) else { return };
        let name = port.config.name.clone();
        port.forget_queues(&counted);
        let Some(open) = port.open.take() else { return };
        match self.workers.detach(id) {
            Ok(lanes) => self.pools.keep_lanes(&name, lanes, 0),
            Err(error) => tracing::error!(port = name, "{error}"),
        }
        if let Err(error) = open.close() {
            tracing::error!(port = name, "{error}");
        }
    }

    /// Opens a port whose device was gone. `false`: it is still gone.
    pub(crate) fn reopen_port(&mut self, at: usize) -> bool {
        let Some(port) = self.ports.get_mut(at) else { return false };
        match port.reopen(&mut self.pools) {
            Ok(queues) => {
                tracing::info!(port = port.config.name, "its device is back");
                if let Err(error) = self.attach(at, queues) {
                    tracing::error!("{error}");
                }
                true
            }
            Err(error) => {
                tracing::debug!("{error}");
                false
            }
        }
    }
}
