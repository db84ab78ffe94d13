//! Neighbours for people to see.

use std::net::IpAddr;

use graph::InterfaceId;
use wire::MacAddr;

use super::{SlowPath, State};

/// A neighbour as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighborInfo {
    /// Interface that it is behind.
    pub interface: InterfaceId,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address, where it is known.
    pub mac: Option<MacAddr>,
    /// How much is known of it.
    pub state: State,
    /// Time since its state changed: nanoseconds.
    pub age: u64,
    /// Packets that wait for its answer.
    pub waiting: usize,
    /// It says that it is a router (IPv6).
    pub router: bool,
    /// Index of its next hop.
    pub next_hop: u32,
    /// Sets of next hops that use it.
    pub users: u32,
}

impl<P> SlowPath<P> {
    /// All neighbours, by interface and address.
    #[must_use]
    pub fn neighbors(&self, now: u64) -> Vec<NeighborInfo> {
        let mut list: Vec<NeighborInfo> = self
            .table
            .iter()
            .map(|(index, neighbor)| NeighborInfo {
                interface: neighbor.interface,
                address: neighbor.address,
                mac: neighbor.machine.is_resolved().then_some(neighbor.machine.mac),
                state: neighbor.machine.state,
                age: now.saturating_sub(neighbor.since),
                waiting: neighbor.waiting(),
                router: neighbor.router,
                next_hop: index,
                // The entry itself is one of them.
                users: self.rib.users(index).saturating_sub(1),
            })
            .collect();
        list.sort_unstable_by_key(|neighbor| (neighbor.interface, neighbor.address));
        list
    }

    /// Configured neighbours whose interface is not there now, or down: interface, address and MAC address.
    pub fn parked_neighbors(&self) -> impl Iterator<Item = (InterfaceId, IpAddr, MacAddr)> + '_ {
        let parked = self.fixed.iter().filter(|((interface, address), _)| {
            let index = self.rib.neighbor_index(*interface, *address);
            index.is_none_or(|index| self.table.get(index).is_none())
        });
        parked.map(|((interface, address), mac)| (*interface, *address, *mac))
    }

    /// Neighbours held.
    #[must_use]
    pub fn neighbor_count(&self) -> usize {
        self.table.len()
    }
}
