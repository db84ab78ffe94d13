//! The ports of a new configuration: opened and changed before it is in force, closed after it.

use control::config::{self, Config};

use crate::daemon::{ChangeError, Changing};
use crate::ports::{Needs, PortState, Ports, Queues};

/// What a new configuration does to the ports.
pub(super) struct Plan {
    /// Ports that are not in it, or not as they are.
    closed: Vec<String>,
    /// Those of them whose device it has too: a device that is in use cannot be opened a second time.
    reused: Vec<String>,
    opened: Vec<config::Port>,
    /// Ports that stay, with another section or other needs.
    adapted: Vec<(config::Port, Needs)>,
}

impl Plan {
    pub(super) fn of(ports: &Ports, new: &Config) -> Self {
        let stays = |port: &&PortState| {
            let section = new.port(&port.config.name);
            section.is_some_and(|section| port.can_adapt(section, Needs::of(new, &section.name)))
        };
        let name = |port: &PortState| port.config.name.clone();
        let closed: Vec<String> = ports.iter().filter(|port| !stays(port)).map(name).collect();
        let key =
            |device: &config::Device| (device.kind().to_owned(), device.argument().to_owned());
        let again = |port: &&PortState| {
            let device = key(&port.config.device);
            !stays(port)
                && port.id().is_some()
                && new.ports.iter().any(|p| key(&p.device) == device)
        };
        let reused = ports.iter().filter(again).map(name).collect();
        let staying = |name: &str| ports.get(name).filter(stays);
        let opened = new.ports.iter().filter(|port| staying(&port.name).is_none());
        let adapted = new.ports.iter().filter_map(|section| {
            let (port, needs) = (staying(&section.name)?, Needs::of(new, &section.name));
            (port.config != *section || port.needs() != needs).then(|| (section.clone(), needs))
        });
        Self { closed, reused, opened: opened.cloned().collect(), adapted: adapted.collect() }
    }

    /// As the user is told.
    pub(super) fn words(&self) -> Vec<String> {
        let closed = self.closed.iter().map(|name| format!("port {name} closed"));
        let opened = self.opened.iter().map(|port| format!("port {} opened", port.name));
        closed.chain(opened).collect()
    }
}

/// What was done, and is to be finished or taken back.
#[derive(Default)]
pub(super) struct PortsDone {
    closing: Vec<String>,
    /// Devices of ports that close were closed already.
    reused: Vec<String>,
    opened: Vec<(PortState, Queues)>,
    /// Ports that were changed, as they were.
    adapted: Vec<(config::Port, Needs)>,
    /// After the switch: ports that are open and no more in the configuration.
    gone: Vec<PortState>,
    /// After the switch: names of ports that are new, with their receive queues.
    waiting: Vec<(String, Queues)>,
}

impl PortsDone {
    /// Opens and changes what the plan says.
    ///
    /// Errors: [`ChangeError`]: [`Self::take_back`] puts everything back.
    pub(super) async fn prepare(
        &mut self,
        changing: &Changing,
        plan: &Plan,
        new: &Config,
    ) -> Result<(), ChangeError> {
        self.closing.clone_from(&plan.closed);
        for (section, needs) in &plan.adapted {
            let before = {
                let daemon = changing.lock();
                let Some(port) = daemon.ports.get(&section.name) else { continue };
                (port.config.clone(), port.needs())
            };
            // Noted first: where a worker does not answer, the device is changed and the port's queues are not.
            self.adapted.push(before);
            changing.adapt_port(section, *needs).await?;
        }
        for name in &plan.reused {
            changing.close_port(name).await;
            self.reused.push(name.clone());
        }
        if !self.reused.is_empty() {
            // Their numbers may be given to others.
            changing.publish().await;
        }
        for section in &plan.opened {
            let mut port = PortState::new(section, Needs::of(new, &section.name))?;
            let mut queues = Queues::default();
            if !port.lacks_peer() {
                let ready = changing.open_device(port.order()).await?;
                queues = port.install(ready);
            }
            self.opened.push((port, queues));
        }
        Ok(())
    }

    /// Exchanges the ports of the daemon for those of the new configuration. No device is touched.
    pub(super) fn switch(&mut self, ports: &mut Ports, new: &Config) {
        let gone = self.closing.iter().filter_map(|name| ports.remove(name));
        self.gone = gone.collect();
        for (port, queues) in self.opened.drain(..) {
            self.waiting.push((port.config.name.clone(), queues));
            ports.push(port);
        }
        ports.sort_as(new);
    }

    /// The reverse of [`Self::switch`]; the order follows with the configuration.
    pub(super) fn switch_back(&mut self, ports: &mut Ports, before: &Config) {
        for (name, queues) in self.waiting.drain(..) {
            if let Some(port) = ports.remove(&name) {
                self.opened.push((port, queues));
            }
        }
        self.gone.drain(..).for_each(|port| ports.push(port));
        ports.sort_as(before);
    }

    /// Puts everything back that [`Self::prepare`] did.
    pub(super) async fn take_back(self, changing: &Changing) {
        for (port, queues) in self.opened {
            changing.close_device(port, queues).await;
        }
        for name in &self.reused {
            if let Err(error) = changing.reopen_port(name).await {
                tracing::error!(port = name, "{error}; it is tried again");
            }
        }
        for (section, needs) in self.adapted.into_iter().rev() {
            if let Err(error) = changing.adapt_port(&section, needs).await {
                tracing::error!(port = section.name, "{error}");
            }
        }
    }

    /// Lets the new ports carry packets, and closes those that are gone.
    pub(super) async fn finish(self, changing: &Changing) {
        for port in self.gone {
            changing.close_device(port, Queues::default()).await;
        }
        for (name, queues) in self.waiting {
            changing.receive_from(&name, queues).await;
        }
    }
}
