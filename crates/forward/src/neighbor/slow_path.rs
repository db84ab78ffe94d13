//! Neighbours and routes together: what the control thread runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use graph::{InterfaceId, Reason};
use tables::OutOfMemory;
use wire::{MacAddr, ipv4, ipv6};

use super::hearing::Hearing;
use super::machine::{Event, Machine, Outcome, Probe, State};
use super::table::Table;
use super::{Action, Bounds, Packet, Timing, frame};
use crate::Cause;
use crate::rib::{ApplyError, Change, Miss, Rib, Status, is_host};
use crate::state::{Interfaces, Settings, State as Shared, VrfId};

/// Routes and neighbours, and all that happens to packets that workers hand up.
pub struct SlowPath<P> {
    pub(super) rib: Rib,
    pub(super) table: Table<P>,
    pub(super) interfaces: Arc<Interfaces>,
    pub(super) shared: Shared,
    /// Configured neighbours, those too whose interface is not there now.
    pub(super) fixed: BTreeMap<(InterfaceId, IpAddr), MacAddr>,
    /// Those of them that found no room when their interface came.
    pub(super) unplaced: BTreeSet<(InterfaceId, IpAddr)>,
    /// When to look for uses and for next hops of groups.
    next_check: u64,
    /// Whether there may be new next hops of groups, which are asked for at once.
    pub(super) members_due: bool,
    hearing: Hearing,
}

impl<P: Packet> SlowPath<P> {
    /// A slow path on an empty routing table and its workers' handles. `seed` varies times.
    #[must_use]
    pub fn new(rib: Rib, shared: Shared, timing: Timing, bounds: Bounds, seed: u64) -> Self {
        let table = Table::new(timing, bounds, seed);
        let interfaces = shared.interfaces.load_full();
        let hearing = Hearing::default();
        let (fixed, unplaced) = (BTreeMap::new(), BTreeSet::new());
        let (next_check, members_due) = (0, false);
        Self { rib, table, interfaces, shared, fixed, unplaced, next_check, members_due, hearing }
    }

    /// The routing table.
    #[must_use]
    pub fn rib(&self) -> &Rib {
        &self.rib
    }

    /// Takes over switches of the forwarder, and times and bounds of neighbours. Routes that interfaces
    /// imply follow with the next `set_interfaces`.
    pub fn set_switches(&mut self, miss: Miss, settings: Settings, timing: Timing, bounds: Bounds) {
        self.rib.set_switches(miss, settings);
        self.table.set_limits(timing, bounds);
    }

    /// Makes tables for the routes of a VRF: see [`Rib::open_vrf`].
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the tables' address space.
    pub fn open_vrf(&mut self, id: VrfId) -> Result<(), OutOfMemory> {
        self.rib.open_vrf(id)
    }

    /// Changes routes that are given: all of them or, on an error, none.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), ApplyError> {
        self.members_due = true;
        self.rib.apply(changes)
    }

    /// Does more of what a change of interfaces concerns: see [`Rib::converge`].
    pub fn converge(&mut self, most: usize) -> bool {
        self.rib.converge(most)
    }

    /// Takes a packet that a worker handed up for `cause`.
    pub fn input(&mut self, cause: Cause, packet: P, now: u64, actions: &mut Vec<Action<P>>) {
        match cause {
            Cause::Arp => self.arp(packet, now, actions),
            Cause::Nd => self.discovery(packet, now, actions),
            Cause::Unresolved => match self.rib.neighbor_at(packet.next_hop()) {
                Some(neighbor) => self.resolve(neighbor, packet, now, actions),
                // Its next hop has changed since: the look-up knows.
                None => actions.push(Action::Release { packet }),
            },
            Cause::Glean => {
                let Some(destination) = destination(packet.network()).filter(|to| is_host(*to))
                else {
                    let reason = Reason::NeighborUnresolved;
                    return actions.push(Action::Drop { packet, reason });
                };
                match self.rib.glean_at(packet.next_hop()) {
                    Some(on) => self.resolve((on, destination), packet, now, actions),
                    None => actions.push(Action::Release { packet }),
                }
            }
            // It waits for no neighbour.
            Cause::Early => actions.push(Action::Drop { packet, reason: Reason::LocalPort }),
        }
    }

    /// A worker has gone through its receive queues since the last call for it. To be said several times a second: while a
    /// worker is silent, as one that the scheduler holds back, no question counts as unanswered.
    pub fn listened(&mut self, worker: usize, now: u64) {
        self.hearing.listened(worker, now);
    }

    /// Does what is due. Returns when to call again at the latest (nanoseconds), packets aside.
    pub fn poll(&mut self, now: u64, actions: &mut Vec<Action<P>>) -> Option<u64> {
        let lost = self.hearing.lost(now);
        while let Some(index) = self.table.due(now) {
            if self.table.waits_on(index, lost, now) {
                continue;
            }
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
        let check = now >= self.next_check;
        if check {
            self.next_check = now.saturating_add(self.table.timing().retrans_timer);
            self.look_for_uses(now, actions);
        }
        if std::mem::take(&mut self.members_due) || check {
            self.ask_members(now, actions);
        }
        self.rib.reclaim();
        if check && self.rib.feed() {
            return Some(now);
        }
        let next = self.table.next_deadline();
        let idle = self.table.len() == 0 && !self.rib.has_groups() && !self.rib.is_starved();
        if idle { next } else { Some(next.unwrap_or(u64::MAX).min(self.next_check)) }
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
            self.ask(index, probe, now, actions);
        }
        let after = self.table.get(index).map(|neighbor| neighbor.machine);
        if after.is_some_and(|after| (after.state, after.mac) != (before.state, before.mac)) {
            self.show(index, actions);
        }
    }

    /// Forgets a neighbour and drops what waits for it.
    pub(super) fn forget(&mut self, index: u32, reason: Reason, actions: &mut Vec<Action<P>>) {
        for packet in self.table.remove(index) {
            actions.push(Action::Drop { packet, reason });
        }
        self.rib.close_neighbor(index);
    }

    /// Shows a neighbour's state to the workers and lets go of what waited for it. `false`: there
    /// was no room, and it is forgotten.
    pub(super) fn show(&mut self, index: u32, actions: &mut Vec<Action<P>>) -> bool {
        let Some(neighbor) = self.table.get(index) else { return false };
        let machine = neighbor.machine;
        let neighbor = (neighbor.interface, neighbor.address);
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
                self.look_up_again(neighbor, packet, actions);
            }
        }
        true
    }

    /// A packet for a neighbour of known state goes back to the look-up, unless that would only
    /// hand it up again.
    fn look_up_again(
        &self,
        (interface, address): (InterfaceId, IpAddr),
        packet: P,
        actions: &mut Vec<Action<P>>,
    ) {
        let to_it = destination(packet.network()) == Some(address);
        if to_it && self.rib.is_gleaned(interface, address) {
            actions.push(Action::Drop { packet, reason: Reason::NeighborTableFull });
        } else {
            actions.push(Action::Release { packet });
        }
    }

    /// A packet needs a neighbour.
    pub(super) fn resolve(
        &mut self,
        neighbor: (InterfaceId, IpAddr),
        packet: P,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        let known = self.known(neighbor).and_then(|index| Some((index, self.table.get(index)?)));
        if known.is_some_and(|(_, known)| known.machine.state != State::Incomplete) {
            return self.look_up_again(neighbor, packet, actions);
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
        self.ask(index, Probe::Multicast, now, actions);
        Some(index)
    }

    fn ask(&mut self, index: u32, probe: Probe, now: u64, actions: &mut Vec<Action<P>>) {
        self.table.asked(index, self.hearing.lost(now));
        let Some(neighbor) = self.table.get(index) else { return };
        let Some(from) = self.interfaces.get(neighbor.interface) else { return };
        let known = (probe == Probe::Unicast).then_some(neighbor.machine.mac);
        let interface = neighbor.interface;
        let frame = frame::question(from, neighbor.address, known);
        actions.extend(frame.map(|frame| Action::Send { interface, frame }));
    }

    /// Looks for stale neighbours that were used.
    fn look_for_uses(&mut self, now: u64, actions: &mut Vec<Action<P>>) {
        for index in self.table.stale() {
            if self.shared.next_hops.take_used(index) {
                self.happen(index, Event::Used, now, actions);
            }
        }
    }

    /// Asks for next hops of groups.
    fn ask_members(&mut self, now: u64, actions: &mut Vec<Action<P>>) {
        for neighbor in self.rib.unresolved_members() {
            if self.known(neighbor).is_none() {
                self.ask_new(neighbor, now, actions);
            }
        }
    }
}

/// The destination of an IP packet.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    let v4 = ipv4::Header::peek(packet).map(|header| header.destination().into());
    v4.or_else(|| ipv6::Header::peek(packet).map(|header| header.destination().into()))
}
