//! What people configure: neighbours that are not asked for, and forgetting.

use std::net::IpAddr;

use graph::{InterfaceId, Reason};
use wire::MacAddr;

use super::machine::{Event, Machine, State};
use super::{Action, Packet, SlowPath};
use crate::rib::{RouteError, is_host};

/// Why a neighbour can't be added or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeighborError {
    /// The address can't be a neighbour's.
    #[error("{0} is not a single host's address")]
    NotAHost(IpAddr),
    /// The MAC address can't be a neighbour's.
    #[error("{0} is a group address or zero: give a single station's")]
    NotAStation(MacAddr),
    /// There is no such neighbour.
    #[error("there is no neighbour {address} on interface {interface}")]
    NoSuchNeighbor {
        /// The interface.
        interface: InterfaceId,
        /// The address.
        address: IpAddr,
    },
    /// Its next hop or route does not fit.
    #[error(transparent)]
    Route(#[from] RouteError),
}

impl<P: Packet> SlowPath<P> {
    /// Adds a neighbour that is not asked for, or replaces one. It may wait for its interface.
    pub fn add_neighbor(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddr,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> Result<(), NeighborError> {
        if !is_host(address) {
            return Err(NeighborError::NotAHost(address));
        }
        if !mac.is_unicast() {
            return Err(NeighborError::NotAStation(mac));
        }
        match self.fix((interface, address), mac, now, actions) {
            Ok(()) | Err(RouteError::NoSuchInterface(_)) => {
                self.fixed.insert((interface, address), mac);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes over a neighbour that was learned in an earlier run. It is stale: packets go to it, and it is asked as soon as
    /// one does (RFC 4861 7.3.3). `false`: something newer is known of it, it is not on the link, its addresses are no
    /// station's, or there is no room.
    pub fn recall(
        &mut self,
        neighbor: (InterfaceId, IpAddr),
        mac: MacAddr,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> bool {
        if !is_host(neighbor.1) || !mac.is_unicast() {
            return false;
        }
        let Some(index) = self.known(neighbor) else {
            return self.meet(neighbor, Machine::heard(mac), now, actions);
        };
        let known = self.table.get(index).is_some_and(|known| known.machine.is_resolved());
        if !known {
            self.happen(index, Event::Heard(mac), now, actions);
        }
        !known
    }

    /// Forgets a neighbour, configured or not.
    pub fn remove_neighbor(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        actions: &mut Vec<Action<P>>,
    ) -> Result<(), NeighborError> {
        let configured = self.fixed.remove(&(interface, address)).is_some();
        match self.known((interface, address)) {
            Some(index) => self.forget(index, Reason::NeighborUnresolved, actions),
            None if configured => {}
            None => return Err(NeighborError::NoSuchNeighbor { interface, address }),
        }
        Ok(())
    }

    /// Forgets all neighbours (of an interface) that were not configured. Returns how many.
    pub fn flush(&mut self, interface: Option<InterfaceId>, actions: &mut Vec<Action<P>>) -> usize {
        let learned = self.table.iter().filter(|(_, known)| {
            known.machine.state != State::Permanent
                && interface.is_none_or(|interface| interface == known.interface)
        });
        let learned: Vec<u32> = learned.map(|(index, _)| index).collect();
        for index in &learned {
            self.forget(*index, Reason::NeighborUnresolved, actions);
        }
        learned.len()
    }

    /// Makes a neighbour permanent.
    pub(super) fn fix(
        &mut self,
        neighbor: (InterfaceId, IpAddr),
        mac: MacAddr,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> Result<(), RouteError> {
        let born = Machine::permanent(mac);
        let index = match self.known(neighbor) {
            Some(index) => {
                self.table.replace(index, born, now);
                index
            }
            None => {
                let index = self.rib.open_neighbor(neighbor.0, neighbor.1)?;
                self.table.insert(index, neighbor, born, now);
                index
            }
        };
        let limit = self.rib.hop_limit();
        if self.show(index, actions) { Ok(()) } else { Err(RouteError::TooManyHops { limit }) }
    }
}
