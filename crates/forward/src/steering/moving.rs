//! Connections that move from stack to stack.

use std::sync::Arc;

use graph::StackId;

use super::bind::Place;
use super::listener::Group;
use super::{Bind, Flow, ListenerId, Steering, SteeringError};

impl Steering {
    /// Whether a stack may have a flow, so that it may give its connection away: it leases the port or is or was a member of a
    /// listener there, or the connection has moved to it; and nobody else has the flow.
    ///
    /// # Errors
    /// [`SteeringError::NotIts`], [`SteeringError::Belongs`] to another.
    pub fn check_owner(&self, id: StackId, flow: &Flow) -> Result<(), SteeringError> {
        self.stack(id)?;
        let reader = self.reader();
        match reader.moved(flow, false) {
            Some(owner) if owner == id => return Ok(()),
            Some(owner) => return Err(SteeringError::Belongs(owner)),
            None => {}
        }
        if !reader.may_have(id, flow) {
            return Err(SteeringError::NotIts(id));
        }
        match reader.is_anothers(id, flow) {
            Some(owner) => Err(SteeringError::Belongs(owner)),
            None => Ok(()),
        }
    }

    /// A connection has moved: its packets are for that stack from now on, whoever leases or serves the port. While that stack does
    /// not claim the flow, because it has yet to come or is over, what opens a connection is for whoever serves, and what another
    /// claims is that one's.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`], [`SteeringError::NoFlow`], [`SteeringError::TooManyRedirects`].
    pub fn redirect(&mut self, id: StackId, flow: &Flow) -> Result<(), SteeringError> {
        let claimant = Arc::clone(&self.stack(id)?.claimant);
        self.redirects.set(flow, &claimant, false)
    }

    /// A connection has moved to a stack that keeps it for others and claims nothing: all its packets are for that one until the
    /// redirect ends or is another.
    ///
    /// # Errors
    /// As [`Self::redirect`].
    pub fn park(&mut self, id: StackId, flow: &Flow) -> Result<(), SteeringError> {
        let claimant = Arc::clone(&self.stack(id)?.claimant);
        self.redirects.set(flow, &claimant, true)
    }

    /// The stack that a connection has moved to.
    #[must_use]
    pub fn redirected(&self, flow: &Flow) -> Option<StackId> {
        self.redirects.get(flow)
    }

    /// Whether that stack keeps it ([`Self::park`]).
    #[must_use]
    pub fn is_parked(&self, flow: &Flow) -> bool {
        self.redirects.is_kept(flow)
    }

    /// How many connections have moved to a stack, beside those that are its by leases and listeners.
    #[must_use]
    pub fn moved_to(&self, id: StackId) -> usize {
        self.redirects.count_of(id)
    }

    /// Whether a connection from one of these ports has moved and goes on.
    #[must_use]
    pub fn has_moved_within(&self, first: u16, last: u16) -> bool {
        self.redirects.within(first, last)
    }

    /// A connection that has moved has ended, or is again where leases and listeners say. Gives the stack that it was at.
    pub fn end_redirect(&mut self, flow: &Flow) -> Option<StackId> {
        self.redirects.end(flow)
    }

    /// Ends the redirects to a stack that it does not need any more: of flows that it no longer claims, and of those that are
    /// its by leases and listeners. `spare`: flows that it has not had the time to claim.
    pub fn sweep_redirects(&mut self, id: StackId, spare: impl Fn(&Flow) -> bool) {
        let Ok(stack) = self.stack(id) else { return };
        let reader = self.reader();
        let needless = |flow: &&Flow| {
            !spare(flow)
                && (!stack.claimant.claims(flow) || reader.find_unmoved(flow, false) == Some(id))
        };
        let over: Vec<Flow> = self.redirects.of(id).filter(needless).copied().collect();
        for flow in &over {
            self.redirects.end(flow);
        }
    }

    /// Whether a stack is there.
    #[must_use]
    pub fn has(&self, id: StackId) -> bool {
        self.stack(id).is_ok()
    }

    /// Which member of a listener gets a connection that its member `id` has not accepted. `None`: there is no other.
    #[must_use]
    pub fn successor(&self, listener: ListenerId, id: StackId, flow: &Flow) -> Option<StackId> {
        self.groups.get(&listener)?.successor(self.shared.hash(flow), id)
    }

    /// Whether a stack may give a connection to the other members of a listener: it is or was one of them, and the listener
    /// serves the connection's local end.
    #[must_use]
    pub fn may_hand(&self, listener: ListenerId, id: StackId, flow: &Flow) -> bool {
        self.groups.get(&listener).is_some_and(|group| {
            let Bind { protocol, port, .. } = group.bind;
            (protocol, port) == (flow.protocol, flow.local.port())
                && Place::serving(flow.local.ip()).contains(&Place::of(&group.bind))
                && group.owner(id).is_some()
        })
    }

    /// Whether a stack is a member of a listener, be it one that only keeps it open.
    #[must_use]
    pub fn is_member(&self, listener: ListenerId, id: StackId) -> bool {
        self.groups.get(&listener).is_some_and(|group| group.has(id))
    }

    /// Whether anybody gets new flows of what is bound so, who does not only keep it open and is not busy.
    #[must_use]
    pub fn is_taken(&self, bind: &Bind) -> bool {
        let listener = self.by_bind.get(&(bind.protocol, bind.port, Place::of(bind)));
        listener.and_then(|id| self.groups.get(id)).is_some_and(Group::is_taken)
    }

    /// The members of a listener that do not.
    pub fn others(&self, listener: ListenerId) -> impl Iterator<Item = StackId> {
        self.groups.get(&listener).into_iter().flat_map(Group::others)
    }

    /// A member of a listener is busy, or no longer: new flows are for those that are not, as long as some are.
    pub fn set_busy(&mut self, listener: ListenerId, id: StackId, busy: bool) {
        let group = self.groups.get_mut(&listener);
        if group.is_some_and(|group| group.set_busy(id, busy)) {
            self.publish(listener);
        }
    }

    /// Whether a listener's member gets a share of new flows: one that only keeps the listener open does not.
    #[must_use]
    pub fn accepts(&self, listener: ListenerId, id: StackId) -> bool {
        self.groups.get(&listener).is_some_and(|group| group.accepts(id))
    }
}
