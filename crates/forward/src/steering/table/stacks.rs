//! Stacks that come and go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use graph::StackId;
use shm::claims::ClaimsReader;

use super::super::SteeringError;
use super::super::listener::Claimant;
use super::{Stack, Steering, open_to};

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

impl Steering {
    /// The number of the stack that comes next.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        self.last_stack.wrapping_add(1).max(1)
    }

    /// The process whose stack it is. `None`: it has ended.
    #[must_use]
    pub fn process_of(&self, id: StackId) -> Option<u32> {
        self.stack(id).ok().map(|stack| stack.claimant.process)
    }

    /// A stack comes: [`Self::next_number`] is its own. It gets nothing yet.
    ///
    /// # Errors
    /// [`SteeringError::TooManyStacks`].
    pub fn add_stack(&mut self, claims: Claims) -> Result<StackId, SteeringError> {
        let most = open_to(claims.user, usize::from(self.limits.stacks));
        let full = SteeringError::TooManyStacks(most);
        if self.seats.len() - self.free.len() >= most {
            return Err(full);
        }
        let number = self.next_number();
        let place = match self.free.pop_front() {
            Some(place) => place,
            None => {
                self.seats.push(None);
                u16::try_from(self.seats.len() - 1).map_err(|_| full)?
            }
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
        self.time_waits.forget(id);
        self.free.push_back(id.place());
        self.retire(stack.claimant);
        self.reclaim();
        Ok(())
    }
}
