//! What stacks serve: they join listeners and leave them.

use std::net::IpAddr;
use std::sync::Arc;

use graph::StackId;
use shm::session::TransportProtocol;

use super::super::bind::Place;
use super::super::listener::{Claimant, Group, ListenerView};
use super::super::{Bind, ListenerId, SteeringError};
use super::{Steering, open_to};

impl Steering {
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
        let most = open_to(claimant.user, self.limits.listeners);
        let listener = match known {
            Some(known) => known,
            None if self.groups.len() >= most => return Err(SteeringError::TooManyListeners(most)),
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

    /// How many listeners a stack is or was a member of, as far as it may have flows there.
    #[must_use]
    pub fn listeners_of(&self, id: StackId) -> usize {
        self.stack(id).map_or(0, |stack| stack.listeners.len())
    }

    /// A stack gives up the flows of the listener that it left longest ago. Gives whether it had left one.
    pub fn forget_left(&mut self, id: StackId) -> bool {
        let Ok(stack) = self.stack_mut(id) else { return false };
        let Some(oldest) = stack.left.pop_front() else { return false };
        stack.listeners.remove(&oldest);
        if let Some(group) = self.groups.get_mut(&oldest) {
            group.forget(id);
            self.publish(oldest);
        }
        true
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

    fn belongs(&self, id: StackId, listener: ListenerId) -> bool {
        self.stack(id).is_ok_and(|stack| stack.listeners.contains(&listener))
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
        if self.stack(id)?.listeners.len() < most || self.forget_left(id) {
            return Ok(());
        }
        Err(SteeringError::TooManyOfStack(most))
    }
}
