//! The owner's side: stacks, leases and listeners come and go.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use graph::StackId;
use shm::claims::ClaimsReader;
use shm::session::TransportProtocol;
use tables::{Epoch, OutOfMemory};

use super::bind::Place;
use super::listener::{Claimant, Group, ListenerView};
use super::reader::{Port, Shared, SteeringReader};
use super::redirects::Redirects;
use super::{Bind, ListenerId, SteeringError};

const PROTOCOLS: [TransportProtocol; 2] = [TransportProtocol::Tcp, TransportProtocol::Udp];

/// How much there may be.
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
}

impl Default for SteeringLimits {
    fn default() -> Self {
        Self { stacks: 4096, listeners: 8192, of_stack: 512, redirects: 1 << 17 }
    }
}

/// Where a stack says which flows it has, the key of their tags, and whose they are.
#[derive(Debug)]
pub struct Claims {
    /// The user of its process.
    pub user: u32,
    /// The process's number.
    pub process: u32,
    /// The table.
    pub reader: ClaimsReader,
    /// The key.
    pub key: [u64; 2],
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
    shared: Arc<Shared>,
    pub(super) redirects: Redirects,
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
    retired: VecDeque<(u64, Arc<Port>)>,
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
        SteeringReader { shared: Arc::clone(&self.shared), redirects: self.redirects.reader() }
    }

    /// Whether stacks are expected to come back, as after a restart: until then a segment that no stack has is not answered
    /// with a reset, because its connection may go on.
    pub fn keep_quiet(&self, quiet: bool) {
        self.shared.keep_quiet(quiet);
    }

    /// The number of the stack that comes next.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        self.last_stack.wrapping_add(1).max(1)
    }

    /// A stack comes: [`Self::next_number`] is its own. It gets nothing yet.
    ///
    /// # Errors
    /// [`SteeringError::TooManyStacks`].
    pub fn add_stack(&mut self, claims: Claims) -> Result<StackId, SteeringError> {
        let full = SteeringError::TooManyStacks(usize::from(self.limits.stacks));
        let number = self.next_number();
        let place = match self.free.pop_front() {
            Some(place) => place,
            None if self.seats.len() < usize::from(self.limits.stacks) => {
                self.seats.push(None);
                u16::try_from(self.seats.len() - 1).map_err(|_| full)?
            }
            None => return Err(full),
        };
        let seat = self.seats.get_mut(usize::from(place)).ok_or(full)?;
        let id = StackId::new(place, number).ok_or(full)?;
        self.last_stack = number;
        let Claims { user, process, reader, key } = claims;
        *seat = Some(Stack {
            claimant: Arc::new(Claimant { id, user, process, claims: reader, key }),
            leases: BTreeMap::new(),
            listeners: BTreeSet::new(),
            left: VecDeque::new(),
        });
        Ok(id)
    }

    /// A stack has ended: its leases and places in listeners go with it. Nothing is delivered to it any more once workers
    /// have looked again.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`].
    pub fn remove_stack(&mut self, id: StackId) -> Result<(), SteeringError> {
        self.stack(id)?;
        let seat = self.seats.get_mut(usize::from(id.place()));
        let stack = seat.and_then(Option::take).ok_or(SteeringError::NoStack(id))?;
        for (first, count) in &stack.leases {
            self.set_leases(*first, *count, None);
        }
        for listener in &stack.listeners {
            if let Some(group) = self.groups.get_mut(listener) {
                group.forget(id);
                self.publish(*listener);
            }
        }
        self.redirects.forget(id);
        self.free.push_back(id.place());
        self.reclaim();
        Ok(())
    }

    /// The local ports `first..first + count` of both protocols are for what the stack opens itself.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`], [`SteeringError::NoPort`] also when there are no such ports, [`SteeringError::Leased`],
    /// [`SteeringError::Served`] by another process.
    pub fn lease(&mut self, id: StackId, first: u16, count: u16) -> Result<(), SteeringError> {
        let process = self.stack(id)?.claimant.process;
        let last = count.checked_sub(1).and_then(|more| first.checked_add(more));
        let last = last.filter(|_| first != 0).ok_or(SteeringError::NoPort)?;
        for port in first..=last {
            if let Some(by) = self.lessee(port) {
                return Err(SteeringError::Leased { port, by });
            }
            if self.is_served_by_another(port, process) {
                return Err(SteeringError::Served(port));
            }
        }
        self.stack_mut(id)?.leases.insert(first, count);
        self.set_leases(first, count, Some(id));
        Ok(())
    }

    /// Takes a lease back.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`]; [`SteeringError::NoLease`] when it was not given from `first` on.
    pub fn release(&mut self, id: StackId, first: u16) -> Result<(), SteeringError> {
        let count = self.stack_mut(id)?.leases.remove(&first);
        let count = count.ok_or(SteeringError::NoLease { stack: id, first })?;
        self.set_leases(first, count, None);
        Ok(())
    }

    /// Whether any of the ports `first..=last` is served.
    #[must_use]
    pub fn serves_within(&self, first: u16, last: u16) -> bool {
        let within = |group: &Group| (first..=last).contains(&group.bind.port);
        self.groups.values().any(|group| within(group) && group.has_members())
    }

    /// Whether another process serves a port.
    fn is_served_by_another(&self, port: u16, process: u32) -> bool {
        let served = PROTOCOLS.iter().any(|one| self.shared.ports(*one).listeners(port).is_some());
        let mut all = self.groups.values();
        served && all.any(|group| group.bind.port == port && !group.is_of(process))
    }

    /// Who leases a port.
    #[must_use]
    pub fn lessee(&self, port: u16) -> Option<StackId> {
        self.shared.ports(TransportProtocol::Tcp).lease(port)
    }

    /// A stack serves what a socket is bound to, or gets another weight there. Weight 0 is stand-by: it gets new flows only
    /// while no member has more.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`], [`SteeringError::NoPort`], [`SteeringError::Leased`] to another process, and those for too
    /// many.
    pub fn listen(
        &mut self,
        id: StackId,
        bind: Bind,
        weight: u8,
    ) -> Result<ListenerId, SteeringError> {
        let Bind { protocol, port, .. } = bind;
        let claimant = Arc::clone(&self.stack(id)?.claimant);
        if port == 0 {
            return Err(SteeringError::NoPort);
        }
        let anothers = |by: &StackId| {
            self.stack(*by).is_ok_and(|stack| stack.claimant.process != claimant.process)
        };
        if let Some(by) = self.lessee(port).filter(anothers) {
            return Err(SteeringError::Leased { port, by });
        }
        let key = (protocol, port, Place::of(&bind));
        let known = self.by_bind.get(&key).copied();
        if known.is_none_or(|known| !self.belongs(id, known)) {
            self.make_room(id)?;
        }
        // Room may have been made by forgetting this very one.
        let known = self.by_bind.get(&key).copied();
        let listener = match known {
            Some(known) => known,
            None if self.groups.len() >= self.limits.listeners => {
                return Err(SteeringError::TooManyListeners(self.limits.listeners));
            }
            None => self.open(key, bind),
        };
        let group = self.groups.get_mut(&listener).ok_or(SteeringError::NoPort)?;
        let changed = group.join(&claimant, weight)?;
        let stack = self.stack_mut(id)?;
        stack.listeners.insert(listener);
        stack.left.retain(|left| *left != listener);
        if changed {
            self.publish(listener);
        }
        self.part_owners(&bind, listener, &claimant);
        Ok(listener)
    }

    /// Who served a port before in another name must not take flows of a stack that serves it now.
    fn part_owners(&mut self, bind: &Bind, listener: ListenerId, stack: &Claimant) {
        let owner = self.groups.get(&listener).and_then(|group| group.owner(stack.id));
        let owner = owner.unwrap_or(stack.user);
        let Bind { protocol, port, .. } = *bind;
        let Some(entry) = self.shared.ports(protocol).listeners(port) else { return };
        for (place, _) in &entry.listeners {
            let Some(listener) = self.by_bind.get(&(protocol, port, *place)).copied() else {
                continue;
            };
            let group = self.groups.get_mut(&listener);
            let gone =
                group.map(|group| group.forget_others_than(stack, owner)).unwrap_or_default();
            for id in &gone {
                if let Ok(stack) = self.stack_mut(*id) {
                    stack.listeners.remove(&listener);
                    stack.left.retain(|left| *left != listener);
                }
            }
            if !gone.is_empty() {
                self.publish(listener);
            }
        }
    }

    /// A stack takes no new flows of a listener any more. It keeps those that it claims until it ends.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`], [`SteeringError::NoMember`].
    pub fn unlisten(&mut self, id: StackId, listener: ListenerId) -> Result<(), SteeringError> {
        self.stack(id)?;
        let none = SteeringError::NoMember { stack: id, listener };
        let group = self.groups.get_mut(&listener).ok_or(none)?;
        if !group.leave(id) {
            return Err(none);
        }
        self.stack_mut(id)?.left.push_back(listener);
        self.publish(listener);
        Ok(())
    }

    /// All listeners.
    pub fn listeners(&self) -> impl Iterator<Item = ListenerView> {
        self.groups.iter().map(|(id, group)| group.view(*id))
    }

    /// Whether somebody serves that end.
    #[must_use]
    pub fn serves(&self, protocol: TransportProtocol, address: IpAddr, port: u16) -> bool {
        let listeners = Place::serving(address).into_iter();
        let mut known = listeners.filter_map(|place| self.by_bind.get(&(protocol, port, place)));
        known.any(|id| self.groups.get(id).is_some_and(Group::has_members))
    }

    /// The listener that new flows to that end belong to.
    #[must_use]
    pub fn serving(
        &self,
        protocol: TransportProtocol,
        address: IpAddr,
        port: u16,
    ) -> Option<ListenerView> {
        let listeners = Place::serving(address).into_iter();
        let mut known = listeners.filter_map(|place| self.by_bind.get(&(protocol, port, place)));
        known.find_map(|id| {
            Some(self.groups.get(id)?.view(*id)).filter(|one| !one.members.is_empty())
        })
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

    fn belongs(&self, id: StackId, listener: ListenerId) -> bool {
        self.stack(id).is_ok_and(|stack| stack.listeners.contains(&listener))
    }

    fn set_leases(&self, first: u16, count: u16, id: Option<StackId>) {
        for protocol in PROTOCOLS {
            let ports = self.shared.ports(protocol);
            let leased = (first..=u16::MAX).take(usize::from(count));
            leased.for_each(|port| ports.set_lease(port, id));
        }
    }

    fn open(&mut self, key: (TransportProtocol, u16, Place), bind: Bind) -> ListenerId {
        let id = self.next_listener;
        self.next_listener = id.wrapping_add(1).max(1);
        self.groups.insert(id, Group::new(bind));
        self.by_bind.insert(key, id);
        id
    }

    /// Makes room for one more listener of a stack: it forgets the one that it left longest ago.
    fn make_room(&mut self, id: StackId) -> Result<(), SteeringError> {
        let most = self.limits.of_stack;
        let stack = self.stack_mut(id)?;
        if stack.listeners.len() < most {
            return Ok(());
        }
        let oldest = stack.left.pop_front().ok_or(SteeringError::TooManyOfStack(most))?;
        stack.listeners.remove(&oldest);
        if let Some(group) = self.groups.get_mut(&oldest) {
            group.forget(id);
            self.publish(oldest);
        }
        Ok(())
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
            let tag = self.epoch.retire();
            self.retired.push_back((tag, old));
        }
        self.reclaim();
    }
}
