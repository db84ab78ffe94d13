//! Changes of one port on demand.

use control::api::PortChange;
use dpdk::PortError;

use crate::daemon::Daemon;
use crate::ports::{Condition, Needs, OpenError};

/// Why a port could not be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("VLAN sub-interface {name} has an MTU of {mtu}, which its port must have too")]
    Vlan { name: String, mtu: u16 },
}

impl Daemon {
    /// Changes a port's MTU, promiscuous mode, or whether it carries packets at all.
    ///
    /// Errors: what the device refuses; what came before it in this order is done then.
    pub(crate) fn change_port(&mut self, at: usize, change: PortChange) -> Result<(), ChangeError> {
        let Some(port) = self.ports.get_mut(at) else { return Ok(()) };
        let mut config = port.config.clone();
        config.mtu = change.mtu.unwrap_or(config.mtu);
        config.promiscuous = change.promiscuous.unwrap_or(config.promiscuous);
        let above =
            |vlan: &&control::config::Vlan| vlan.port == config.name && vlan.mtu > config.mtu;
        if let Some(vlan) = self.config.vlans.iter().find(above) {
            return Err(ChangeError::Vlan { name: vlan.name.clone(), mtu: vlan.mtu });
        }
        if config != port.config {
            let before = port.config.clone();
            if let Some(place) = self.config.ports.iter_mut().find(|p| p.name == config.name) {
                *place = config.clone();
            }
            let needs = Needs::of(&self.config, &config.name);
            if let Err(error) = port.adapt(&config, needs) {
                if let Some(place) = self.config.ports.iter_mut().find(|p| p.name == before.name) {
                    *place = before.clone();
                }
                port.keep(before);
                return Err(error.into());
            }
            tracing::info!(port = config.name, mtu = config.mtu, "changed");
            self.publish_interfaces();
        }
        match change.up {
            Some(true) => self.set_port_up(at)?,
            Some(false) => self.set_port_down(at),
            None => {}
        }
        Ok(())
    }

    fn set_port_down(&mut self, at: usize) {
        let Some(port) = self.ports.get_mut(at).filter(|port| port.enabled) else { return };
        port.enabled = false;
        port.condition = Condition::Gone("it was set down".to_owned());
        tracing::info!(port = port.config.name, "set down");
        self.close_port(at);
        self.publish_interfaces();
    }

    fn set_port_up(&mut self, at: usize) -> Result<(), OpenError> {
        let Some(port) = self.ports.get_mut(at).filter(|port| !port.enabled) else {
            return Ok(());
        };
        let queues = port.reopen(&mut self.pools)?;
        port.enabled = true;
        tracing::info!(port = port.config.name, "set up");
        if let Err(error) = self.attach(at, queues) {
            tracing::error!("{error}");
        }
        self.publish_interfaces();
        Ok(())
    }
}
