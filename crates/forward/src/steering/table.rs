//! The owner's side: what is there, and how workers come to see it.

mod leases;
mod listeners;
mod stacks;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use graph::StackId;
use shm::session::TransportProtocol;
use tables::{Epoch, OutOfMemory};

use super::bind::Place;
use super::listener::{Claimant, Group, ROOT};
use super::reader::{Port, Shared, SteeringReader};
use super::redirects::Redirects;
use super::{Bind, ListenerId, SteeringError};

pub use stacks::Claims;

/// Of so many places for stacks and listeners, one is kept for root.
const ROOTS: usize = 8;

/// How many of `most` places may be taken when one is a user's.
fn open_to(user: u32, most: usize) -> usize {
    if user == ROOT { most } else { most - most / ROOTS }
}

/// How much there may be. Users other than root leave it an eighth of the stacks and of the listeners.
#[derive(Debug, Clone, Copy)]
pub struct SteeringLimits {
    /// Stacks.
    pub stacks: u16,
    /// Listeners, those included whose last member has left while it may have flows.
    pub listeners: usize,
    /// Listeners of one stack, likewise. Beyond, those that it has left longest ago are forgotten.
    pub of_stack: usize,
    /// Connections that have moved, of each version of IP.
    pub redirects: usize,
    /// Connections that are over and whose TIME-WAIT somebody else has, of each version of IP.
    pub time_waits: usize,
}

impl Default for SteeringLimits {
    fn default() -> Self {
        Self {
            stacks: 4096,
            listeners: 8192,
            of_stack: 512,
            redirects: 1 << 17,
            time_waits: 1 << 16,
        }
    }
}

/// A stack that is there.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) claimant: Arc<Claimant>,
    /// First port and number of ports.
    leases: BTreeMap<u16, u16>,
    /// Listeners that it is or was a member of.
    listeners: BTreeSet<ListenerId>,
    /// Those that it has left, the longest ago first.
    left: VecDeque<ListenerId>,
}

/// Who gets which packets to this router. One thread owns it.
#[derive(Debug)]
pub struct Steering {
    limits: SteeringLimits,
    pub(super) shared: Arc<Shared>,
    pub(super) redirects: Redirects,
    /// The same of what is left of connections that are over.
    pub(super) time_waits: Redirects,
    epoch: Epoch,
    /// Places for stacks.
    seats: Vec<Option<Stack>>,
    /// Free seats, the longest free first.
    free: VecDeque<u16>,
    /// The number of the stack that came last.
    last_stack: u32,
    pub(super) groups: BTreeMap<ListenerId, Group>,
    pub(super) by_bind: HashMap<(TransportProtocol, u16, Place), ListenerId>,
    next_listener: ListenerId,
    /// What workers may still look at, until they have passed an epoch.
    retired: VecDeque<(u64, Arc<dyn Any + Send + Sync>)>,
}

impl Steering {
    /// Nobody's yet. `seed`: random, so that nobody outside knows which flows share a bucket. `epoch`: that of the workers.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the memory.
    pub fn new(limits: SteeringLimits, seed: u64, epoch: &Epoch) -> Result<Self, OutOfMemory> {
        Ok(Self {
            limits,
            shared: Arc::new(Shared::new(seed)),
            redirects: Redirects::new(limits.redirects, limits.stacks)?,
            time_waits: Redirects::new(limits.time_waits, limits.stacks)?,
            epoch: epoch.clone(),
            seats: Vec::new(),
            free: VecDeque::new(),
            last_stack: 0,
            groups: BTreeMap::new(),
            by_bind: HashMap::new(),
            next_listener: 1,
            retired: VecDeque::new(),
        })
    }

    /// For the nodes of a worker.
    #[must_use]
    pub fn reader(&self) -> SteeringReader {
        SteeringReader {
            shared: Arc::clone(&self.shared),
            redirects: self.redirects.reader(),
            time_waits: self.time_waits.reader(),
        }
    }

    /// Whether stacks are expected to come back, as after a restart: until then a segment that no stack has is not answered
    /// with a reset, because its connection may go on.
    pub fn keep_quiet(&self, quiet: bool) {
        self.shared.keep_quiet(quiet);
    }

    /// Frees what no worker looks at any more. To be called now and then; each change does it, too.
    pub fn reclaim(&mut self) {
        let passed = self.epoch.passed();
        while self.retired.front().is_some_and(|(tag, _)| *tag <= passed) {
            self.retired.pop_front();
        }
    }

    /// Pieces that wait for workers to look again.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.retired.len()
    }

    pub(super) fn stack(&self, id: StackId) -> Result<&Stack, SteeringError> {
        let seat = self.seats.get(usize::from(id.place()));
        let stack = seat.and_then(Option::as_ref);
        stack.filter(|stack| stack.claimant.id == id).ok_or(SteeringError::NoStack(id))
    }

    fn stack_mut(&mut self, id: StackId) -> Result<&mut Stack, SteeringError> {
        let seat = self.seats.get_mut(usize::from(id.place()));
        let stack = seat.and_then(Option::as_mut);
        stack.filter(|stack| stack.claimant.id == id).ok_or(SteeringError::NoStack(id))
    }

    /// Shows a listener to the workers as it is now, and forgets it when it is over.
    pub(super) fn publish(&mut self, id: ListenerId) {
        let Some(group) = self.groups.get(&id) else { return };
        let Bind { protocol, port, .. } = group.bind;
        let place = Place::of(&group.bind);
        let new = (!group.is_over()).then(|| Arc::new(group.publish()));
        if new.is_none() {
            self.groups.remove(&id);
            self.by_bind.remove(&(protocol, port, place));
        }
        let ports = self.shared.ports(protocol);
        let before = ports.listeners(port);
        let others = before.iter().flat_map(|known| known.listeners.iter().cloned());
        let mut listeners: Vec<_> = others.filter(|(known, _)| *known != place).collect();
        listeners.extend(new.map(|listener| (place, listener)));
        listeners.sort_by_key(|(place, _)| *place);
        drop(before);
        let entry = (!listeners.is_empty())
            .then(|| Arc::new(Port { listeners: listeners.into_boxed_slice() }));
        if let Some(old) = ports.set_listeners(port, entry) {
            self.retire(old);
        }
        self.reclaim();
    }

    /// What workers do not find any more is freed when they have looked again.
    fn retire(&mut self, what: Arc<dyn Any + Send + Sync>) {
        let tag = self.epoch.retire();
        self.retired.push_back((tag, what));
    }
}
