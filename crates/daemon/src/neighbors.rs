//! Neighbours by the names of their interfaces.

use std::net::IpAddr;

use control::api::{Neighbor, NeighborState};
use control::config::StaticNeighbor;
use forward::neighbor::State;

use crate::daemon::Daemon;

/// Why a neighbour was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NeighborError {
    #[error(transparent)]
    Unfit(#[from] control::config::NeighborError),
    #[error("there is no interface {0}")]
    NoInterface(String),
    #[error(transparent)]
    Refused(#[from] forward::neighbor::NeighborError),
}

impl Daemon {
    /// Adds or replaces a static neighbour.
    pub(crate) fn add_neighbor(&mut self, neighbor: &StaticNeighbor) -> Result<(), NeighborError> {
        self.config.check_neighbor(neighbor)?;
        let id = self.interface_id(&neighbor.interface)?;
        let mac = neighbor.mac.into();
        let now = self.now();
        let mut actions = std::mem::take(&mut self.actions);
        let added = self.slow.add_neighbor(id, neighbor.address, mac, now, &mut actions);
        self.perform(actions);
        self.wake_slow_path();
        Ok(added?)
    }

    /// Forgets a neighbour. `false`: it was not there.
    pub(crate) fn remove_neighbor(
        &mut self,
        interface: &str,
        address: IpAddr,
    ) -> Result<bool, NeighborError> {
        let id = self.interface_id(interface)?;
        let mut actions = std::mem::take(&mut self.actions);
        let removed = self.slow.remove_neighbor(id, address, &mut actions);
        self.perform(actions);
        self.wake_slow_path();
        Ok(removed.is_ok())
    }

    /// Forgets the neighbours that were not configured, of one interface or of all. Returns how
    /// many.
    pub(crate) fn flush_neighbors(
        &mut self,
        interface: Option<&str>,
    ) -> Result<usize, NeighborError> {
        let id = interface.map(|name| self.interface_id(name)).transpose()?;
        let mut actions = std::mem::take(&mut self.actions);
        let count = self.slow.flush(id, &mut actions);
        self.perform(actions);
        self.wake_slow_path();
        Ok(count)
    }

    /// All neighbours.
    pub(crate) fn neighbors(&self) -> Vec<Neighbor> {
        let all = self.slow.neighbors(self.now());
        let shown = all.into_iter().filter_map(|neighbor| {
            Some(Neighbor {
                interface: self.topology.interfaces.name(neighbor.interface)?.to_owned(),
                address: neighbor.address,
                mac: neighbor.mac.map(|mac| mac.into()),
                state: state(neighbor.state),
                age: Some(neighbor.age / 1_000_000),
                queued: u32::try_from(neighbor.waiting).unwrap_or(u32::MAX),
            })
        });
        shown.collect()
    }

    /// Neighbours that are being asked for.
    pub(crate) fn unresolved_count(&self) -> usize {
        let all = self.slow.neighbors(self.now());
        all.iter().filter(|neighbor| neighbor.state == State::Incomplete).count()
    }

    fn interface_id(&self, name: &str) -> Result<u16, NeighborError> {
        let id = self.topology.interfaces.get(name);
        id.ok_or_else(|| NeighborError::NoInterface(name.to_owned()))
    }
}

fn state(state: State) -> NeighborState {
    match state {
        State::Incomplete => NeighborState::Incomplete,
        State::Reachable => NeighborState::Reachable,
        State::Stale => NeighborState::Stale,
        State::Delay => NeighborState::Delay,
        State::Probe => NeighborState::Probe,
        State::Failed => NeighborState::Failed,
        State::Permanent => NeighborState::Static,
    }
}
