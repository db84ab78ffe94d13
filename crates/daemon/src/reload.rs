//! A new configuration in place of the one in force: checked as a whole, then the difference
//! applied. Packets of what did not change do not notice.

use std::path::PathBuf;

use control::api::Reloaded;
use control::config::{Config, Route};
use control::{ConfigError, config};
use forward::rib::Change;

use crate::daemon::{Daemon, Shared};
use crate::ports::{Needs, OpenError, PortState, Queues};
use crate::{files, notify, routes};

/// Why a configuration was refused. The one before is still in force then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error("{}", lines(.0))]
    Config(Vec<ConfigError>),
    #[error("{0}; nothing was changed")]
    Port(#[from] OpenError),
    #[error("{0}; nothing was changed")]
    Routes(String),
}

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
    let loaded = tokio::task::spawn_blocking(move || Config::load(&file)).await;
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

/// Takes over the settings that only a start can change. Returns the sections that differ.
fn hold_fixed(old: &Config, new: &mut Config) -> Vec<String> {
    let mut differ = Vec::new();
    let mut hold = |section: &str, same: bool| {
        if !same {
            differ.push(format!("[{section}] differs"));
        }
    };
    hold("daemon", old.daemon == new.daemon);
    hold("memory", old.memory == new.memory);
    hold("workers", old.workers == new.workers);
    hold("limits", old.limits == new.limits);
    hold("forwarding", old.forwarding == new.forwarding);
    hold("neighbors", old.neighbors == new.neighbors);
    new.daemon = old.daemon.clone();
    new.memory = old.memory.clone();
    new.workers = old.workers.clone();
    new.limits = old.limits.clone();
    new.forwarding = old.forwarding.clone();
    new.neighbors = old.neighbors.clone();
    differ
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
                return Err(error.into());
            }
        };
        for (port, _) in &opened {
            done.changes.push(format!("port {} opened", port.config.name));
        }
        let before = self.config.clone();
        let (added, removed) = match self.switch(new, &opened, &closed) {
            Ok(changes) => changes,
            Err(error) => {
                drop(opened);
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

    fn open_new(
        &mut self,
        new: &Config,
        closed: &[usize],
    ) -> Result<Vec<(PortState, Queues)>, OpenError> {
        let stays = |name: &str| {
            let mut ports = self.ports.iter().enumerate();
            ports.any(|(at, port)| port.config.name == name && !closed.contains(&at))
        };
        let wanted: Vec<_> = new.ports.iter().filter(|port| !stays(&port.name)).collect();
        let needs = |name: &str| Needs::of(new, name);
        wanted
            .into_iter()
            .map(|port| PortState::open(port, needs(&port.name), &mut self.pools))
            .collect()
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
        opened: &[(PortState, Queues)],
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
    fn exchange_ports(&mut self, opened: Vec<(PortState, Queues)>, closed: Vec<usize>) {
        for at in closed.into_iter().rev() {
            self.close_port(at);
            self.ports.remove(at);
        }
        for at in 0..self.ports.len() {
            self.adapt_port(at);
        }
        for (port, queues) in opened {
            self.ports.push(port);
            if let Err(error) = self.attach(self.ports.len() - 1, queues) {
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

/// Differences that have no list of their own.
fn other_changes(old: &Config, new: &Config) -> Vec<String> {
    let mut changes = Vec::new();
    for port in &new.ports {
        let before = old.port(&port.name);
        if before.is_some_and(|before| before.device == port.device && before != port) {
            changes.push(format!("port {} changed", port.name));
        }
    }
    for (what, same) in [
        ("VLAN sub-interfaces changed", old.vlans == new.vlans),
        ("bridges changed", old.bridges == new.bridges),
        ("cross-connects changed", old.cross_connects == new.cross_connects),
        ("route files changed", old.routes == new.routes),
        ("flow files changed", old.flows == new.flows),
    ] {
        if !same {
            changes.push(what.to_owned());
        }
    }
    changes
}

/// Routes that are new or different, and prefixes that have none any more.
fn route_changes(old: &[Route], new: &[Route]) -> (Vec<Route>, Vec<control::net::Prefix>) {
    use std::collections::HashMap;
    let before: HashMap<_, _> = old.iter().map(|route| (route.prefix, &route.target)).collect();
    let after: HashMap<_, _> = new.iter().map(|route| (route.prefix, &route.target)).collect();
    let added = new.iter().filter(|route| before.get(&route.prefix) != Some(&&route.target));
    let removed = old.iter().map(|route| route.prefix).filter(|p| !after.contains_key(p));
    (added.cloned().collect(), removed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn routes(text: &str) -> Vec<Route> {
        let port = "[[port]]\nname = \"a\"\ndevice = \"null\"\naddresses = [\"10.0.0.1/24\"]\n";
        testing::config(&format!("{port}{text}")).static_routes
    }

    #[test]
    fn only_the_difference_of_routes_is_applied() {
        let old = routes(
            "[[route]]\nprefix = \"10.1.0.0/16\"\nvia = \"10.0.0.2\"\n\
             [[route]]\nprefix = \"10.2.0.0/16\"\nkind = \"blackhole\"\n\
             [[route]]\nprefix = \"10.3.0.0/16\"\nvia = \"10.0.0.2\"\n",
        );
        let new = routes(
            "[[route]]\nprefix = \"10.1.0.0/16\"\nvia = \"10.0.0.2\"\n\
             [[route]]\nprefix = \"10.2.0.0/16\"\nkind = \"unreachable\"\n\
             [[route]]\nprefix = \"10.4.0.0/16\"\nvia = \"10.0.0.2\"\n",
        );
        let (added, removed) = route_changes(&old, &new);
        let added: Vec<String> = added.iter().map(|route| route.prefix.to_string()).collect();
        assert_eq!(added, ["10.2.0.0/16", "10.4.0.0/16"]);
        assert_eq!(removed, ["10.3.0.0/16".parse().unwrap()]);
    }

    #[test]
    fn what_only_a_start_can_change_stays_and_is_told() {
        let old = testing::config("");
        let mut new = testing::config("[limits]\nroutes4 = 77\n[workers]\nvector = 8\n");
        let told = hold_fixed(&old, &mut new);
        assert_eq!(told, ["[workers] differs", "[limits] differs"]);
        assert_eq!(new, old);
    }
}
