//! All neighbours by the index of their next hop, with their timers and the packets that wait.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

use graph::InterfaceId;

use super::machine::{Event, Machine, Outcome, State, Wait};
use super::settings::{Bounds, Timing};

/// A neighbour and what belongs to it.
#[derive(Debug)]
pub(super) struct Neighbor<P> {
    pub(super) interface: InterfaceId,
    pub(super) address: IpAddr,
    pub(super) machine: Machine,
    /// It says that it is a router.
    pub(super) router: bool,
    /// When its state last changed.
    pub(super) since: u64,
    deadline: u64,
    /// Of the time in which a worker did not listen: until it was asked last, or given more time.
    lost: u64,
    waiting: VecDeque<P>,
}

/// All neighbours.
#[derive(Debug)]
pub(super) struct Table<P> {
    entries: HashMap<u32, Neighbor<P>>,
    by_interface: BTreeSet<(InterfaceId, u32)>,
    /// (deadline, index) of all.
    timers: BTreeSet<(u64, u32)>,
    /// Those of them that are stale: the first is unused for longest.
    stale: BTreeSet<(u64, u32)>,
    /// Those that did not answer.
    failed: BTreeSet<(u64, u32)>,
    resolved: usize,
    waiting: usize,
    timing: Timing,
    bounds: Bounds,
    random: u64,
}

/// No timer runs.
const NEVER: u64 = u64::MAX;

impl<P> Table<P> {
    pub(super) fn new(timing: Timing, bounds: Bounds, seed: u64) -> Self {
        Self {
            entries: HashMap::new(),
            by_interface: BTreeSet::new(),
            timers: BTreeSet::new(),
            stale: BTreeSet::new(),
            failed: BTreeSet::new(),
            resolved: 0,
            waiting: 0,
            timing,
            bounds,
            random: seed | 1,
        }
    }

    /// Takes over other times and bounds; what waits already waits as it was told to.
    pub(super) fn set_limits(&mut self, timing: Timing, bounds: Bounds) {
        (self.timing, self.bounds) = (timing, bounds);
    }

    pub(super) fn timing(&self) -> &Timing {
        &self.timing
    }

    pub(super) fn get(&self, index: u32) -> Option<&Neighbor<P>> {
        self.entries.get(&index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Neighbor<P>)> {
        self.entries.iter().map(|(index, neighbor)| (*index, neighbor))
    }

    /// Indices of the neighbours on an interface.
    pub(super) fn on(&self, interface: InterfaceId) -> impl Iterator<Item = u32> + '_ {
        let all = self.by_interface.range((interface, 0)..=(interface, u32::MAX));
        all.map(|(_, index)| *index)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether one more unresolved neighbour would be too many.
    pub(super) fn unresolved_full(&self) -> bool {
        self.entries.len() - self.resolved >= self.bounds.unresolved
    }

    /// Whether there are more resolved neighbours than allowed.
    pub(super) fn resolved_over(&self) -> bool {
        self.resolved > self.bounds.neighbors
    }

    /// The neighbour that failed first.
    pub(super) fn oldest_failed(&self) -> Option<u32> {
        self.failed.first().map(|(_, index)| *index)
    }

    /// The stale neighbour, other than `but`, that was unused for longest.
    pub(super) fn oldest_stale(&self, but: u32) -> Option<u32> {
        self.stale.iter().map(|(_, index)| *index).find(|index| *index != but)
    }

    pub(super) fn stale(&self) -> Vec<u32> {
        self.stale.iter().map(|(_, index)| *index).collect()
    }

    /// The next timer.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.timers.first().map(|(deadline, _)| *deadline)
    }

    /// A neighbour whose time has come.
    pub(super) fn due(&self, now: u64) -> Option<u32> {
        self.timers.first().filter(|(deadline, _)| *deadline <= now).map(|(_, index)| *index)
    }

    /// It is asked; `lost` is the time in which workers have not listened until now.
    pub(super) fn asked(&mut self, index: u32, lost: u64) {
        if let Some(neighbor) = self.entries.get_mut(&index) {
            neighbor.lost = lost;
        }
    }

    /// Whether one whose time has come is given as much time again as was lost while it was waited for.
    pub(super) fn waits_on(&mut self, index: u32, lost: u64, now: u64) -> bool {
        let Some(neighbor) = self.entries.get_mut(&index) else { return false };
        let more = lost.saturating_sub(neighbor.lost).min(self.timing.retrans_timer);
        if more == 0 || !matches!(neighbor.machine.state, State::Incomplete | State::Probe) {
            return false;
        }
        neighbor.lost = lost;
        self.set_timer(index, now.saturating_add(more));
        true
    }

    pub(super) fn insert(
        &mut self,
        index: u32,
        (interface, address): (InterfaceId, IpAddr),
        (machine, outcome): (Machine, Outcome),
        now: u64,
    ) {
        let neighbor = Neighbor {
            interface,
            address,
            machine,
            router: false,
            since: now,
            deadline: NEVER,
            lost: 0,
            waiting: VecDeque::new(),
        };
        self.resolved += usize::from(machine.is_resolved());
        self.entries.insert(index, neighbor);
        self.by_interface.insert((interface, index));
        self.rearm(index, outcome.wait, now);
    }

    /// Forgets a neighbour; gives the packets that waited.
    pub(super) fn remove(&mut self, index: u32) -> VecDeque<P> {
        self.disarm(index);
        let Some(neighbor) = self.entries.remove(&index) else { return VecDeque::new() };
        self.by_interface.remove(&(neighbor.interface, index));
        self.resolved -= usize::from(neighbor.machine.is_resolved());
        self.waiting -= neighbor.waiting.len();
        neighbor.waiting
    }

    /// Lets an event happen to a neighbour. Gives what it was before, and what follows.
    pub(super) fn step(
        &mut self,
        index: u32,
        event: Event,
        now: u64,
    ) -> Option<(Machine, Outcome)> {
        let max_probes = self.timing.max_probes;
        let neighbor = self.entries.get_mut(&index)?;
        let before = neighbor.machine;
        let outcome = neighbor.machine.step(event, max_probes);
        self.settle(index, before, outcome, now);
        Some((before, outcome))
    }

    /// Puts a neighbour into another state from outside: it was configured.
    pub(super) fn replace(&mut self, index: u32, (machine, outcome): (Machine, Outcome), now: u64) {
        let Some(neighbor) = self.entries.get_mut(&index) else { return };
        let before = std::mem::replace(&mut neighbor.machine, machine);
        self.settle(index, before, outcome, now);
    }

    pub(super) fn set_router(&mut self, index: u32, router: bool) {
        if let Some(neighbor) = self.entries.get_mut(&index) {
            neighbor.router = router;
        }
    }

    /// Lets a packet wait. Gives back the one that has to go for it, if any.
    pub(super) fn hold(&mut self, index: u32, packet: P) -> Option<P> {
        let bounds = self.bounds;
        let Some(neighbor) = self.entries.get_mut(&index) else { return Some(packet) };
        let full = neighbor.waiting.len() >= bounds.queue;
        let others = self.waiting - usize::from(full && !neighbor.waiting.is_empty());
        // The bounds may have been others when those came that wait.
        if bounds.queue == 0 || others >= bounds.waiting {
            return Some(packet);
        }
        let oldest = if full { neighbor.waiting.pop_front() } else { None };
        neighbor.waiting.push_back(packet);
        self.waiting = others + 1;
        oldest
    }

    /// Takes the packets that wait for a neighbour.
    pub(super) fn take_waiting(&mut self, index: u32) -> VecDeque<P> {
        let Some(neighbor) = self.entries.get_mut(&index) else { return VecDeque::new() };
        let waiting = std::mem::take(&mut neighbor.waiting);
        self.waiting -= waiting.len();
        waiting
    }

    fn settle(&mut self, index: u32, before: Machine, outcome: Outcome, now: u64) {
        let Some(neighbor) = self.entries.get_mut(&index) else { return };
        let resolved = neighbor.machine.is_resolved();
        if before.state != neighbor.machine.state {
            neighbor.since = now;
        }
        self.resolved += usize::from(resolved);
        self.resolved -= usize::from(before.is_resolved());
        if outcome.wait.is_some() {
            self.rearm(index, outcome.wait, now);
        }
    }

    fn disarm(&mut self, index: u32) {
        if let Some(neighbor) = self.entries.get(&index) {
            let timer = (neighbor.deadline, index);
            self.timers.remove(&timer);
            self.stale.remove(&timer);
            self.failed.remove(&timer);
        }
    }

    fn rearm(&mut self, index: u32, wait: Option<Wait>, now: u64) {
        let after = match wait {
            Some(Wait::Retransmit) => self.timing.retrans_timer,
            Some(Wait::Reachable) => self.reachable_time(),
            Some(Wait::DelayFirst) => self.timing.delay_first_probe,
            Some(Wait::Unused) => self.timing.stale_time,
            Some(Wait::Negative) => self.timing.negative_time,
            Some(Wait::Never) | None => NEVER,
        };
        self.set_timer(index, now.saturating_add(after));
    }

    fn set_timer(&mut self, index: u32, deadline: u64) {
        self.disarm(index);
        let Some(neighbor) = self.entries.get_mut(&index) else { return };
        neighbor.deadline = deadline;
        if neighbor.deadline == NEVER {
            return;
        }
        let timer = (neighbor.deadline, index);
        self.timers.insert(timer);
        match neighbor.machine.state {
            State::Stale => self.stale.insert(timer),
            State::Failed => self.failed.insert(timer),
            _ => false,
        };
    }

    /// RFC 4861 6.3.4: between half and one and a half of the base, so that neighbours do not ask
    /// in step. (xorshift; nothing secret depends on it.)
    fn reachable_time(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let base = self.timing.reachable_time;
        base / 2 + self.random % base.max(1)
    }
}

impl<P> Neighbor<P> {
    /// Packets that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
