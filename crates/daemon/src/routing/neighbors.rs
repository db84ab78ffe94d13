//! Neighbours by the names of their interfaces.

use graph::InterfaceId;
use std::net::IpAddr;

use control::api::{Neighbor, NeighborState};
use control::config::{Config, StaticNeighbor};
use control::net::MacAddr;
use forward::neighbor::State;

use super::Routing;

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

impl Routing {
    /// Adds or replaces a static neighbour.
    pub(crate) fn add_neighbor(
        &mut self,
        config: &Config,
        neighbor: &StaticNeighbor,
    ) -> Result<(), NeighborError> {
        config.check_neighbor(neighbor)?;
        let id = self.interface_id(&neighbor.interface)?;
        let (address, mac, now) = (neighbor.address, neighbor.mac.into(), self.now());
        self.changes += 1;
        Ok(self.act(|slow, actions| slow.add_neighbor(id, address, mac, now, actions))?)
    }

    /// Forgets a neighbour. `false`: it was not there.
    pub(crate) fn remove_neighbor(
        &mut self,
        interface: &str,
        address: IpAddr,
    ) -> Result<bool, NeighborError> {
        let id = self.interface_id(interface)?;
        self.changes += 1;
        Ok(self.act(|slow, actions| slow.remove_neighbor(id, address, actions)).is_ok())
    }

    /// Takes over a neighbour that an earlier run has learned. `false`: it does not fit, or is known better.
    pub(crate) fn recall_neighbor(
        &mut self,
        interface: &str,
        address: IpAddr,
        mac: MacAddr,
    ) -> Result<bool, NeighborError> {
        let id = self.interface_id(interface)?;
        let (neighbor, mac, now) = ((id, address), mac.into(), self.now());
        Ok(self.act(|slow, actions| slow.recall(neighbor, mac, now, actions)))
    }

    /// Forgets the neighbours that were not configured, of one interface or of all. Returns how
    /// many.
    pub(crate) fn flush_neighbors(
        &mut self,
        interface: Option<&str>,
    ) -> Result<usize, NeighborError> {
        let id = interface.map(|name| self.interface_id(name)).transpose()?;
        self.changes += 1;
        Ok(self.act(|slow, actions| slow.flush(id, actions)))
    }

    /// All neighbours, the static ones included whose interface is gone.
    pub(crate) fn neighbors(&self) -> Vec<Neighbor> {
        let all = self.slow.neighbors(self.now());
        let shown = all.into_iter().filter_map(|neighbor| {
            Some(Neighbor {
                interface: self.topology.interface_name(neighbor.interface)?.to_owned(),
                address: neighbor.address,
                mac: neighbor.mac.map(|mac| mac.into()),
                state: state(neighbor.state),
                age: Some(neighbor.age / 1_000_000),
                queued: u32::try_from(neighbor.waiting).unwrap_or(u32::MAX),
                parked: false,
            })
        });
        let parked = self.slow.parked_neighbors().filter_map(|(interface, address, mac)| {
            Some(Neighbor {
                interface: self.topology.interface_name(interface)?.to_owned(),
                address,
                mac: Some(mac.into()),
                state: NeighborState::Static,
                age: None,
                queued: 0,
                parked: true,
            })
        });
        shown.chain(parked).collect()
    }

    /// How many neighbours there are.
    pub(crate) fn neighbor_count(&self) -> usize {
        self.slow.neighbor_count()
    }

    /// Neighbours that are being asked for.
    pub(crate) fn unresolved_count(&self) -> usize {
        let all = self.slow.neighbors(self.now());
        all.iter().filter(|neighbor| neighbor.state == State::Incomplete).count()
    }

    fn interface_id(&self, name: &str) -> Result<InterfaceId, NeighborError> {
        let id = self.topology.interface(name);
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
