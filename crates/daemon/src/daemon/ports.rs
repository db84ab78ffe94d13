//! Ports opened, changed and closed. The device does its part on the threads for devices, the workers theirs
//! between two vectors; both are waited for without the daemon being locked, and not for ever.

use control::Config;
use control::api::PortChange;
use control::config;
use dpdk::PortError;
use graph::WorkerError;
use wire::ipv6;

use super::Changing;
use crate::ports::{
    Condition, Devices, Needs, OpenDevice, OpenError, Order, PortState, Queues, Ready, Unanswered,
    touches_device,
};
use crate::workers::{Crew, attach_receive, attach_transmit, detach, detach_receive};

/// Why a port could not be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("port {name}: {source}")]
    Unanswered { name: String, source: Unanswered },
    #[error("VLAN sub-interface {name} has an MTU of {mtu}, which its port must have too")]
    Vlan { name: String, mtu: u16 },
    #[error(
        "bridge {name} has an MTU of {mtu} for its own addresses, which its members must have too"
    )]
    Bridge { name: String, mtu: u16 },
    #[error("{name} has IPv6 addresses, which need an MTU of at least {least}", least = ipv6::MINIMUM_MTU)]
    Ipv6 { name: String },
}

impl Changing {
    /// Opens a port's device and gives the workers their ways out. Packets are received after
    /// [`Self::receive_from`]. `None`: there is no such port.
    ///
    /// Errors: [`ChangeError`]; the device is closed again.
    pub(crate) async fn open_port(&self, name: &str) -> Result<Option<Queues>, ChangeError> {
        let order = self.lock().ports.get(name).map(PortState::order);
        let Some(order) = order else { return Ok(None) };
        let opened = self.open_device(order).await;
        if let Err(ChangeError::Open(OpenError::Unanswered { source, .. })) = &opened {
            let why = source.to_string();
            if self.lock().ports.get_mut(name).is_some_and(|port| port.note_gone(why)) {
                tracing::error!(port = name, "not opened: {source}; it is tried again");
            }
        }
        let ready = opened?;
        Ok(self.lock().ports.get_mut(name).map(|port| port.install(ready)))
    }

    /// Opens a device and gives the workers their ways out.
    ///
    /// Errors: [`ChangeError`]; the device is closed again.
    pub(crate) async fn open_device(&self, order: Order) -> Result<Ready, ChangeError> {
        let (devices, crew) = self.hands();
        let name = order.name().to_owned();
        let mut ready = devices.open(order).await?;
        let (id, transmit) = (ready.id(), ready.take_transmit());
        if let Err(error) = attach_transmit(&crew, id, transmit).await {
            let (_, paths) = detach(&crew, id).await;
            let (device, receive) = ready.into_parts();
            devices.close(name, device, (receive, paths)).await;
            return Err(error.into());
        }
        Ok(ready)
    }

    /// Closes the device of a port that is not, or no more, among the daemon's. `queues`: receive queues that no worker
    /// has yet.
    pub(crate) async fn close_device(&self, mut port: PortState, queues: Queues) {
        let (devices, crew) = self.hands();
        let Some(id) = port.id() else { return };
        let (mut receive, paths) = detach(&crew, id).await;
        receive.extend(queues.rx);
        if let Some(open) = port.open.take() {
            devices.close(port.config.name, open, (receive, paths)).await;
        }
    }

    fn hands(&self) -> (Devices, Crew) {
        let daemon = self.lock();
        (daemon.devices.clone(), daemon.workers.crew())
    }

    /// Lets the workers receive from a port that they can send by already.
    pub(crate) async fn receive_from(&self, name: &str, queues: Queues) {
        let (config, crew) = {
            let mut daemon = self.lock();
            let counted = daemon.ports.id(name).map(|id| daemon.workers.counted(id));
            let crew = daemon.workers.crew();
            let Some(port) = daemon.ports.get_mut(name) else { return };
            if let Some(counted) = counted {
                port.count_from(counted);
            }
            (port.config.clone(), crew)
        };
        if let Err(error) = attach_receive(&crew, &config, queues.rx).await {
            tracing::error!(port = name, "{error}");
        }
    }

    /// Takes a port's queues from the workers and closes its device.
    pub(crate) async fn close_port(&self, name: &str) {
        let (id, jobs, crew) = {
            let daemon = self.lock();
            let Some(port) = daemon.ports.get(name) else { return };
            let Some(id) = port.id() else { return };
            let jobs = port.open.as_ref().filter(|_| port.answers()).map(OpenDevice::jobs);
            (id, jobs, daemon.workers.crew())
        };
        let queues = detach(&crew, id).await;
        if let Some(jobs) = jobs {
            if let Err(error) = jobs.count().await {
                tracing::warn!(port = name, "what its device has counted last is lost: {error}");
            }
        }
        let (device, devices) = {
            let mut daemon = self.lock();
            let counted = daemon.workers.counted(id);
            let devices = daemon.devices.clone();
            let Some(state) = daemon.ports.get_mut(name) else { return };
            state.forget_queues(&counted);
            (state.take_device(), devices)
        };
        if let Some(device) = device {
            devices.close(name.to_owned(), device, queues).await;
        }
    }

    /// Opens a port whose device was gone, and lets it carry packets.
    ///
    /// Errors: [`ChangeError`]: it is still gone.
    pub(crate) async fn reopen_port(&self, name: &str) -> Result<(), ChangeError> {
        let Some(queues) = self.open_port(name).await? else { return Ok(()) };
        self.publish().await;
        self.receive_from(name, queues).await;
        Ok(())
    }

    /// Opens the ports that another process had until now.
    pub(crate) async fn open_released_ports(&self) {
        let closed: Vec<String> = {
            let mut daemon = self.lock();
            let closed = |port: &mut PortState| {
                let closed = port.enabled && port.id().is_none() && !port.lacks_peer();
                closed.then(|| port.config.name.clone())
            };
            daemon.ports.iter_mut().filter_map(closed).collect()
        };
        for name in closed {
            if let Err(error) = self.reopen_port(&name).await {
                tracing::error!("{error}; it is tried again");
            }
        }
    }

    /// Gives a port another section that [`crate::ports::PortState::can_adapt`] has found fit: MTU and promiscuous mode of the
    /// device, places of its queues.
    ///
    /// Errors: the device's, and nothing has changed, or what it changes too late is changed back; a worker's, and the port has
    /// the section without all of its queues.
    pub(crate) async fn adapt_port(
        &self,
        section: &config::Port,
        needs: Needs,
    ) -> Result<(), ChangeError> {
        let name = &section.name;
        let (jobs, before, id, crew) = {
            let daemon = self.lock();
            let Some(port) = daemon.ports.get(name) else { return Ok(()) };
            let before = (port.config.clone(), port.needs());
            let jobs = port.open.as_ref().map(OpenDevice::jobs);
            (jobs, before, port.id(), daemon.workers.crew())
        };
        let moves =
            section.queues != before.0.queues || section.software_rss != before.0.software_rss;
        let touches = touches_device((&before.0, before.1), (section, needs));
        if let Some(jobs) = jobs.filter(|_| touches) {
            let adapted = jobs.adapt(before, (section.clone(), needs)).await;
            adapted.map_err(|source| ChangeError::Unanswered { name: name.clone(), source })??;
        }
        if let Some(port) = self.lock().ports.get_mut(name) {
            port.adapted(section.clone(), needs);
        }
        if let Some(id) = id.filter(|_| moves) {
            let queues = detach_receive(&crew, id).await;
            attach_receive(&crew, section, queues).await?;
        }
        Ok(())
    }

    /// Changes a port's MTU, promiscuous mode, or whether it carries packets at all.
    ///
    /// Errors: what the device refuses; what came before it in this order is done then.
    pub(crate) async fn change_port(
        &self,
        name: &str,
        change: PortChange,
    ) -> Result<(), ChangeError> {
        let (before, section, config) = {
            let daemon = self.lock();
            let Some(port) = daemon.ports.get(name) else { return Ok(()) };
            let mut section = port.config.clone();
            section.mtu = change.mtu.unwrap_or(section.mtu);
            section.promiscuous = change.promiscuous.unwrap_or(section.promiscuous);
            let config = with_section(&daemon.config, &section)?;
            (port.config.clone(), section, config)
        };
        if section != before {
            let needs = Needs::of(&config, name);
            self.adapt_port(&section, needs).await?;
            self.lock().config = config;
            tracing::info!(port = name, mtu = section.mtu, "changed");
            self.publish().await;
        }
        match change.up {
            Some(true) => self.set_port_up(name).await,
            Some(false) => self.set_port_down(name).await,
            None => Ok(()),
        }
    }

    async fn set_port_down(&self, name: &str) -> Result<(), ChangeError> {
        if let Some(port) = self.lock().ports.get_mut(name).filter(|port| port.enabled) {
            port.enabled = false;
            port.condition = Condition::Gone("it was set down".to_owned());
            tracing::info!(port = name, "set down");
        } else {
            return Ok(());
        }
        self.close_port(name).await;
        self.publish().await;
        Ok(())
    }

    /// Notes whether a port is wanted. `false`: there is none, or it was noted before.
    fn enable(&self, name: &str, enabled: bool) -> bool {
        let mut daemon = self.lock();
        let port = daemon.ports.get_mut(name).filter(|port| port.enabled != enabled);
        port.map(|port| port.enabled = enabled).is_some()
    }

    async fn set_port_up(&self, name: &str) -> Result<(), ChangeError> {
        if !self.enable(name, true) {
            return Ok(());
        }
        let opened = self.reopen_port(name).await;
        match opened {
            Ok(()) => tracing::info!(port = name, "set up"),
            Err(_) => drop::<bool>(self.enable(name, false)),
        }
        opened
    }
}

/// The configuration with another section for a port.
fn with_section(config: &Config, section: &config::Port) -> Result<Config, ChangeError> {
    let above = |vlan: &&config::Vlan| vlan.port == section.name && vlan.mtu > section.mtu;
    if let Some(vlan) = config.vlans.iter().find(above) {
        return Err(ChangeError::Vlan { name: vlan.name.clone(), mtu: vlan.mtu });
    }
    let has_member = |bridge: &config::Bridge| {
        bridge.members.iter().any(|member| member.interface == section.name)
    };
    let above = |bridge: &&config::Bridge| {
        bridge.mtu > section.mtu && !bridge.addresses.is_empty() && has_member(bridge)
    };
    if let Some(bridge) = config.bridges.iter().find(above) {
        return Err(ChangeError::Bridge { name: bridge.name.clone(), mtu: bridge.mtu });
    }
    let has_ipv6 = section.addresses.iter().any(|address| address.address().is_ipv6());
    if has_ipv6 && usize::from(section.mtu) < ipv6::MINIMUM_MTU {
        return Err(ChangeError::Ipv6 { name: section.name.clone() });
    }
    let mut config = config.clone();
    if let Some(place) = config.ports.iter_mut().find(|port| port.name == section.name) {
        *place = section.clone();
    }
    Ok(config)
}
