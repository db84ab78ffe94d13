//! Neighbours and routes together: what the control thread runs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use graph::{InterfaceId, Reason};
use wire::{MacAddr, ipv4, ipv6};

use super::machine::{Event, Machine, Outcome, Probe, State};
use super::table::Table;
use super::{Action, Bounds, Entry, Packet, Timing, frame};
use crate::Cause;
use crate::rib::{ApplyError, Change, NextHopMacs, Rib, RouteError, Status, is_host};
use crate::state::{Interfaces, Mode, State as Shared};

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

/// Routes and neighbours, and all that happens to packets that workers hand up.
pub struct SlowPath<P> {
    pub(super) rib: Rib,
    pub(super) table: Table<P>,
    pub(super) interfaces: Arc<Interfaces>,
    shared: Shared,
    fixed: BTreeMap<(InterfaceId, IpAddr), MacAddr>,
    next_check: u64,
}

impl<P: Packet> SlowPath<P> {
    /// A slow path on an empty routing table and its workers' handles. `seed` varies times.
    #[must_use]
    pub fn new(rib: Rib, shared: Shared, timing: Timing, bounds: Bounds, seed: u64) -> Self {
        let table = Table::new(timing, bounds, seed);
        let interfaces = shared.interfaces.load_full();
        Self { rib, table, interfaces, shared, fixed: BTreeMap::new(), next_check: 0 }
    }

    /// The routing table.
    #[must_use]
    pub fn rib(&self) -> &Rib {
        &self.rib
    }

    /// Changes static routes: all of them or, on an error, none.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), ApplyError> {
        // Members of new groups are to be asked for at once.
        self.next_check = 0;
        self.rib.apply(changes)
    }

    /// Shows new interfaces to the workers, and follows with routes and neighbours. New addresses
    /// are announced on their links.
    pub fn set_interfaces(
        &mut self,
        interfaces: Arc<Interfaces>,
        macs: &NextHopMacs,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        self.shared.interfaces.store(interfaces.clone());
        let gone = self.rib.set_interfaces(&interfaces, macs);
        let lost = self.table.iter().filter(|(_, known)| gone.contains(&known.interface));
        let lost: Vec<u32> = lost.map(|(index, _)| index).collect();
        for index in lost {
            self.forget(index, Reason::NeighborUnresolved, actions);
        }
        let before = std::mem::replace(&mut self.interfaces, interfaces);
        for ((interface, address), mac) in self.fixed.clone() {
            if self.known((interface, address)).is_none() {
                // Without its interface it waits until that is there.
                let _ = self.fix((interface, address), mac, now, actions);
            }
        }
        self.announce(&before, &gone, actions);
        self.next_check = 0;
    }

    /// Takes a packet that a worker handed up for `cause`.
    pub fn input(&mut self, cause: Cause, packet: P, now: u64, actions: &mut Vec<Action<P>>) {
        match cause {
            Cause::Arp => self.arp(packet, now, actions),
            Cause::Nd => self.discovery(packet, now, actions),
            Cause::Unresolved => match self.rib.neighbor_at(packet.next_hop()) {
                Some(neighbor) => self.resolve(neighbor, packet, now, actions),
                // Its next hop has changed since: the look-up knows.
                None => release(packet, actions),
            },
            Cause::Glean => {
                let Some(destination) = destination(packet.network()).filter(|to| is_host(*to))
                else {
                    let reason = Reason::NeighborUnresolved;
                    return actions.push(Action::Drop { packet, reason });
                };
                match self.rib.glean_at(packet.next_hop()) {
                    Some(on) => self.resolve((on, destination), packet, now, actions),
                    None => release(packet, actions),
                }
            }
        }
    }

    /// Does what is due. Returns when to call again at the latest (nanoseconds), packets aside.
    pub fn poll(&mut self, now: u64, actions: &mut Vec<Action<P>>) -> Option<u64> {
        while let Some(index) = self.table.due(now) {
            // A group's next hop is kept fresh: without an address it would lose its flows.
            let stale =
                |index| self.table.get(index).is_some_and(|n| n.machine.state == State::Stale);
            let event = if stale(index) && self.rib.is_member(index) {
                Event::Used
            } else {
                Event::Timeout
            };
            self.happen(index, event, now, actions);
        }
        if now >= self.next_check {
            self.next_check = now.saturating_add(self.table.timing().retrans_timer);
            self.check(now, actions);
        }
        self.rib.reclaim();
        let next = self.table.next_deadline();
        let idle = self.table.len() == 0 && !self.rib.has_groups();
        if idle { next } else { Some(next.unwrap_or(u64::MAX).min(self.next_check)) }
    }

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

    /// The index of a neighbour that has an entry.
    pub(super) fn known(&self, (interface, address): (InterfaceId, IpAddr)) -> Option<u32> {
        let index = self.rib.neighbor_index(interface, address)?;
        self.table.get(index).map(|_| index)
    }

    /// Makes an entry for a neighbour on the link that made itself known. `false`: there is no room.
    pub(super) fn meet(
        &mut self,
        neighbor: (InterfaceId, IpAddr),
        born: (Machine, Outcome),
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> bool {
        if !self.rib.is_on_link(neighbor.0, neighbor.1) {
            return false;
        }
        let Ok(index) = self.rib.open_neighbor(neighbor.0, neighbor.1) else { return false };
        self.table.insert(index, neighbor, born, now);
        self.show(index, actions)
    }

    /// Lets an event happen to a neighbour, and does all that follows.
    pub(super) fn happen(
        &mut self,
        index: u32,
        event: Event,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        let Some((before, outcome)) = self.table.step(index, event, now) else { return };
        if outcome.forget {
            return self.forget(index, Reason::NeighborUnresolved, actions);
        }
        if let Some(probe) = outcome.probe {
            self.ask(index, probe, actions);
        }
        let after = self.table.get(index).map(|neighbor| neighbor.machine);
        if after.is_some_and(|after| (after.state, after.mac) != (before.state, before.mac)) {
            self.show(index, actions);
        }
    }

    /// Forgets a neighbour and drops what waits for it.
    fn forget(&mut self, index: u32, reason: Reason, actions: &mut Vec<Action<P>>) {
        for packet in self.table.remove(index) {
            actions.push(Action::Drop { packet, reason });
        }
        self.rib.close_neighbor(index);
    }

    /// Shows a neighbour's state to the workers and lets go of what waited for it. `false`: there
    /// was no room, and it is forgotten.
    fn show(&mut self, index: u32, actions: &mut Vec<Action<P>>) -> bool {
        let Some(neighbor) = self.table.get(index) else { return false };
        let (machine, address) = (neighbor.machine, neighbor.address);
        if machine.is_resolved() && self.table.resolved_over() {
            let Some(oldest) = self.table.oldest_stale(index) else {
                self.forget(index, Reason::NeighborTableFull, actions);
                return false;
            };
            self.forget(oldest, Reason::NeighborTableFull, actions);
        }
        let status = match machine.state {
            State::Incomplete => Status::Unresolved,
            State::Failed => Status::Failed,
            State::Stale => Status::Resolved { mac: machine.mac, stale: true },
            _ => Status::Resolved { mac: machine.mac, stale: false },
        };
        if machine.state == State::Stale {
            // Uses from before it became stale do not count.
            self.shared.next_hops.take_used(index);
        }
        if self.rib.set_neighbor(index, status).is_err() {
            self.forget(index, Reason::NeighborTableFull, actions);
            return false;
        }
        if machine.state != State::Incomplete {
            for packet in self.table.take_waiting(index) {
                self.look_up_again(address, packet, actions);
            }
        }
        true
    }

    /// A packet for a neighbour of known state goes back to the look-up, unless that would only
    /// hand it up again.
    fn look_up_again(&self, address: IpAddr, packet: P, actions: &mut Vec<Action<P>>) {
        if destination(packet.network()) == Some(address) && self.rib.is_gleaned(address) {
            actions.push(Action::Drop { packet, reason: Reason::NeighborTableFull });
        } else {
            release(packet, actions);
        }
    }

    /// A packet needs a neighbour.
    fn resolve(
        &mut self,
        neighbor: (InterfaceId, IpAddr),
        packet: P,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        let known = self.known(neighbor).and_then(|index| Some((index, self.table.get(index)?)));
        if let Some((_, known)) =
            known.filter(|(_, known)| known.machine.state != State::Incomplete)
        {
            return self.look_up_again(known.address, packet, actions);
        }
        let known = known.map(|(index, _)| index);
        let Some(index) = known.or_else(|| self.ask_new(neighbor, now, actions)) else {
            return actions.push(Action::Drop { packet, reason: Reason::NeighborTableFull });
        };
        if let Some(packet) = self.table.hold(index, packet) {
            actions.push(Action::Drop { packet, reason: Reason::NeighborQueueFull });
        }
    }

    /// Begins to ask for a neighbour. `None`: too many are being asked for, or no index is free.
    fn ask_new(
        &mut self,
        neighbor: (InterfaceId, IpAddr),
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> Option<u32> {
        if self.table.unresolved_full() {
            let oldest = self.table.oldest_failed()?;
            self.forget(oldest, Reason::NeighborTableFull, actions);
        }
        let index = self.rib.open_neighbor(neighbor.0, neighbor.1).ok()?;
        self.table.insert(index, neighbor, Machine::asked(), now);
        self.ask(index, Probe::Multicast, actions);
        Some(index)
    }

    fn ask(&self, index: u32, probe: Probe, actions: &mut Vec<Action<P>>) {
        let Some(neighbor) = self.table.get(index) else { return };
        let Some(from) = self.interfaces.get(neighbor.interface) else { return };
        let known = (probe == Probe::Unicast).then_some(neighbor.machine.mac);
        let interface = neighbor.interface;
        let frame = frame::question(from, neighbor.address, known);
        actions.extend(frame.map(|frame| Action::Send { interface, frame }));
    }

    /// Looks for stale neighbours that were used, and asks for next hops of groups.
    fn check(&mut self, now: u64, actions: &mut Vec<Action<P>>) {
        for index in self.table.stale() {
            if self.shared.next_hops.take_used(index) {
                self.happen(index, Event::Used, now, actions);
            }
        }
        for neighbor in self.rib.unresolved_members() {
            if self.known(neighbor).is_none() {
                self.ask_new(neighbor, now, actions);
            }
        }
    }

    /// Makes a neighbour permanent.
    fn fix(
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

    /// Tells the links about addresses that are new on them.
    fn announce(&self, before: &Interfaces, gone: &[InterfaceId], actions: &mut Vec<Action<P>>) {
        for (id, interface) in (0..=InterfaceId::MAX).zip(&self.interfaces.list) {
            let Some(interface) = interface else { continue };
            if !matches!(interface.mode, Mode::Routed | Mode::BridgeIp(_)) {
                continue;
            }
            let old = before.get(id).filter(|_| !gone.contains(&id));
            let new4 = interface.addresses4.iter().map(|(own, _)| *own);
            let new4 =
                new4.filter(|own| old.is_none_or(|old| old.addresses4.iter().all(|o| o.0 != *own)));
            let new6 = interface.addresses6.iter().map(|(own, _)| *own);
            let new6 =
                new6.filter(|own| old.is_none_or(|old| old.addresses6.iter().all(|o| o.0 != *own)));
            for own in new4.map(IpAddr::V4).chain(new6.map(IpAddr::V6)) {
                let frame = frame::announcement(interface.mac, own);
                actions.extend(frame.map(|frame| Action::Send { interface: id, frame }));
            }
        }
    }
}

/// The destination of an IP packet.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    let v4 = ipv4::Header::peek(packet).map(|header| header.destination().into());
    v4.or_else(|| ipv6::Header::peek(packet).map(|header| header.destination().into()))
}

fn release<P: Packet>(packet: P, actions: &mut Vec<Action<P>>) {
    let entry = match packet.network().first() {
        Some(first) if first >> 4 == 6 => Entry::Ip6Lookup,
        _ => Entry::Ip4Lookup,
    };
    actions.push(Action::Release { packet, entry });
}
