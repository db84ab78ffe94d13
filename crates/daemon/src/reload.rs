//! A new configuration in place of the one in force: checked as a whole, then the difference
//! applied. Packets of what did not change do not notice.

use std::path::PathBuf;

use control::api::Reloaded;
use control::config::{Config, Route};
use control::{ConfigError, config};
use forward::rib::Change;
use graph::RxAssignment;

use crate::daemon::{Daemon, Shared};
use crate::difference::{hold_fixed, other_changes, route_changes};
use crate::ports::{Needs, OpenError, PortState};
use crate::workers::WorkersError;
use crate::{files, notify, routes};

/// Why a configuration was refused. The one before is still in force then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error("{}", lines(.0))]
    Config(Vec<ConfigError>),
    #[error("{0}; nothing was changed")]
    Port(#[from] OpenError),
    #[error("{0}; nothing was changed")]
    Workers(#[from] WorkersError),
    #[error("{0}; nothing was changed")]
    Routes(String),
}

/// A port that was opened, and its receive queues.
type Opened = (PortState, Vec<RxAssignment>);

fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Loads a configuration file (`None`: the one of the last time) and applies it.
///
/// Errors: [`ReloadError`], also in the log; nothing has changed then.
pub(crate) async fn from_file(
    daemon: &Shared,
    path: Option<PathBuf>,
) -> Result<Reloaded, ReloadError> {
    let _one_at_a_time = daemon.loading().await;
    notify::reloading();
    let path = path.unwrap_or_else(|| daemon.lock().path.clone());
    let applied = load_and_apply(daemon, path).await;
    let status = daemon.lock().status();
    notify::ready(&status);
    match &applied {
        Ok(done) => {
            tracing::info!("new configuration: {}", sentences(&done.changes));
            if !done.at_restart.is_empty() {
                tracing::warn!("at the next start: {}", sentences(&done.at_restart));
            }
        }
        Err(error) => tracing::error!("the configuration stays as it was: {error}"),
    }
    applied
}

async fn load_and_apply(daemon: &Shared, path: PathBuf) -> Result<Reloaded, ReloadError> {
    // Checking the files of a large configuration takes a while: not on this thread.
    let file = path.clone();
    let loaded = tokio::task::spawn_blocking(move || crate::load::load(&file)).await;
    let config = match loaded {
        Ok(Ok(config)) => config,
        Ok(Err(errors)) => return Err(ReloadError::Config(errors)),
        Err(error) => return Err(ReloadError::Routes(error.to_string())),
    };
    let applied = daemon.lock().apply(config)?;
    daemon.lock().path = path;
    files::synchronize(daemon).await;
    Ok(applied)
}

fn sentences(list: &[String]) -> String {
    if list.is_empty() { "no difference".to_owned() } else { list.join("; ") }
}

impl Daemon {
    /// Applies the difference between the configuration in force and another one.
    ///
    /// Errors: [`ReloadError`]; nothing has changed then.
    pub(crate) fn apply(&mut self, mut new: Config) -> Result<Reloaded, ReloadError> {
        let at_restart = hold_fixed(&self.config, &mut new);
        let mut done = Reloaded { changes: Vec::new(), at_restart };
        let closed = self.ports_to_close(&new);
        for port in closed.iter().filter_map(|at| self.ports.get(*at)) {
            done.changes.push(format!("port {} closed", port.config.name));
        }
        // A device that is in use cannot be opened a second time, so those ports close first.
        let reused: Vec<usize> =
            closed.iter().copied().filter(|at| self.reopens(*at, &new)).collect();
        for at in &reused {
            self.close_port(*at);
        }
        let opened = match self.open_new(&new, &closed) {
            Ok(opened) => opened,
            Err(error) => {
                self.open_again(&reused);
                return Err(error);
            }
        };
        for (port, _) in &opened {
            done.changes.push(format!("port {} opened", port.config.name));
        }
        let before = self.config.clone();
        let (added, removed) = match self.switch(new, &opened, &closed) {
            Ok(changes) => changes,
            Err(error) => {
                self.give_up(opened);
                self.open_again(&reused);
                return Err(error);
            }
        };
        if added > 0 {
            done.changes.push(format!("{added} routes added or changed"));
        }
        if removed > 0 {
            done.changes.push(format!("{removed} routes removed"));
        }
        self.exchange_ports(opened, closed);
        self.exchange_neighbors(&before, &mut done.changes);
        self.apply_client_rules();
        done.changes.extend(other_changes(&before, &self.config));
        Ok(done)
    }

    /// Static neighbours that are new, different or gone.
    fn exchange_neighbors(&mut self, before: &Config, changes: &mut Vec<String>) {
        let after = self.config.static_neighbors.clone();
        for neighbor in before.static_neighbors.iter().filter(|old| !after.contains(old)) {
            // Its interface may be gone, and it with it.
            let _ = self.remove_neighbor(&neighbor.interface, neighbor.address);
            changes.push(format!("neighbour {} removed", neighbor.address));
        }
        for neighbor in after.iter().filter(|new| !before.static_neighbors.contains(new)) {
            match self.add_neighbor(neighbor) {
                Ok(()) => changes.push(format!("neighbour {} added", neighbor.address)),
                Err(error) => tracing::error!("neighbour {}: {error}", neighbor.address),
            }
        }
    }

    /// Places of ports that are not in the new configuration, or not as they are.
    fn ports_to_close(&mut self, new: &Config) -> Vec<usize> {
        let mut closed = Vec::new();
        for (at, port) in self.ports.iter_mut().enumerate() {
            let stays = new.port(&port.config.name).is_some_and(|config| {
                let needs = Needs::of(new, &config.name);
                port.can_adapt(config, needs)
            });
            if !stays {
                closed.push(at);
            }
        }
        closed
    }

    /// Whether the device of a port that closes is in the new configuration too.
    fn reopens(&self, at: usize, new: &Config) -> bool {
        let Some(port) = self.ports.get(at) else { return false };
        let key =
            |device: &config::Device| (device.kind().to_owned(), device.argument().to_owned());
        new.ports.iter().any(|other| key(&other.device) == key(&port.config.device))
    }

    /// Opens ports that are new, and gives the workers their ways out.
    fn open_new(&mut self, new: &Config, closed: &[usize]) -> Result<Vec<Opened>, ReloadError> {
        let stays = |name: &str| {
            let mut ports = self.ports.iter().enumerate();
            ports.any(|(at, port)| port.config.name == name && !closed.contains(&at))
        };
        let wanted: Vec<_> = new.ports.iter().filter(|port| !stays(&port.name)).collect();
        let mut opened = Vec::new();
        for config in wanted {
            match self.open_one(config, Needs::of(new, &config.name)) {
                Ok(port) => opened.push(port),
                Err(error) => {
                    self.give_up(opened);
                    return Err(error);
                }
            }
        }
        Ok(opened)
    }

    fn open_one(&mut self, config: &config::Port, needs: Needs) -> Result<Opened, ReloadError> {
        let (port, queues) = PortState::open(config, needs, &mut self.pools)?;
        if let Some(id) = port.id() {
            self.workers.attach_transmit(id, queues.tx)?;
        }
        Ok((port, queues.rx))
    }

    /// Closes ports that were opened in vain.
    fn give_up(&mut self, opened: Vec<Opened>) {
        for (port, queues) in opened {
            let Some(id) = port.id() else { continue };
            // No worker has its receive queues yet.
            let lanes = queues.into_iter().filter_map(RxAssignment::into_lane).collect();
            self.pools.keep_lanes(&port.config.name, lanes, 0);
            if let Err(error) = self.workers.detach(id) {
                tracing::error!("{error}");
            }
        }
    }

    /// After a refusal: ports that were closed in vain.
    fn open_again(&mut self, places: &[usize]) {
        for at in places {
            self.reopen_port(*at);
        }
        self.publish_interfaces();
    }

    /// Puts the new interfaces and routes in force. Returns how many routes came and went.
    fn switch(
        &mut self,
        new: Config,
        opened: &[Opened],
        closed: &[usize],
    ) -> Result<(usize, usize), ReloadError> {
        let before = (self.config.clone(), self.topology.clone());
        let changes = route_changes(&before.0.static_routes, &new.static_routes);
        self.topology.renumber(&new).map_err(|error| ReloadError::Routes(error.to_string()))?;
        self.config = new;
        self.publish_with(opened, closed);
        let applied = self.apply_route_changes(&changes);
        if applied.is_err() {
            (self.config, self.topology) = before;
            self.publish_interfaces();
        }
        applied
    }

    fn apply_route_changes(
        &mut self,
        (added, removed): &(Vec<Route>, Vec<control::net::Prefix>),
    ) -> Result<(usize, usize), ReloadError> {
        let mut changes = Vec::new();
        for prefix in removed.iter().map(|prefix| routes::prefix_to_rib(*prefix)) {
            // It may have been removed by hand.
            if self.has_static_route(prefix) {
                changes.push(Change::Remove(prefix));
            }
        }
        for route in added {
            let route = routes::to_rib(route, &self.topology)
                .map_err(|error| ReloadError::Routes(error.to_string()))?;
            changes.push(Change::Add(route));
        }
        self.change_routes(&changes).map_err(|error| ReloadError::Routes(error.to_string()))?;
        Ok((added.len(), changes.len() - added.len()))
    }

    /// Closes and adds ports; those that stay get their new MTU, mode and places of queues.
    fn exchange_ports(&mut self, opened: Vec<Opened>, closed: Vec<usize>) {
        for at in closed.into_iter().rev() {
            self.close_port(at);
            self.ports.remove(at);
        }
        for at in 0..self.ports.len() {
            self.adapt_port(at);
        }
        for (port, queues) in opened {
            self.ports.push(port);
            if let Err(error) = self.attach_receive(self.ports.len() - 1, queues) {
                tracing::error!("{error}");
            }
        }
        let order = |port: &PortState| {
            self.config.ports.iter().position(|config| config.name == port.config.name)
        };
        self.ports.sort_by_key(order);
        self.publish_interfaces();
    }

    fn adapt_port(&mut self, at: usize) {
        let Some(port) = self.ports.get_mut(at) else { return };
        let Some(config) = self.config.port(&port.config.name).cloned() else { return };
        let moves =
            config.queues != port.config.queues || config.software_rss != port.config.software_rss;
        let needs = Needs::of(&self.config, &config.name);
        if let Err(error) = port.adapt(&config, needs) {
            tracing::warn!(port = config.name, "{error}");
        }
        let Some(id) = port.id().filter(|_| moves) else { return };
        let moved = self.workers.detach_receive(id);
        if let Err(error) = moved.and_then(|queues| self.workers.attach_receive(&config, queues)) {
            tracing::error!(port = config.name, "{error}");
        }
    }
}
