//! Connections that are over, and whose TIME-WAIT is with a stack that neither leases nor serves their port.

use std::sync::Arc;

use graph::StackId;

use super::{Flow, Steering, SteeringError, SteeringReader};

impl Steering {
    /// That stack has the TIME-WAIT of a flow's connection: a FIN that comes again is for it, unless the flow is somebody's by
    /// then, because a stack leases the port, claims the flow or has its connection.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`], [`SteeringError::NoFlow`], [`SteeringError::TooManyRedirects`].
    pub fn wait_out(&mut self, id: StackId, flow: &Flow) -> Result<(), SteeringError> {
        let claimant = Arc::clone(&self.stack(id)?.claimant);
        self.time_waits.set(flow, &claimant, false)
    }

    /// Whether a connection from one of these ports is in TIME-WAIT.
    #[must_use]
    pub fn waits_within(&self, first: u16, last: u16) -> bool {
        self.time_waits.within(first, last)
    }

    /// The TIME-WAIT of a flow's connection is over. Gives the stack that had it.
    pub fn end_wait(&mut self, flow: &Flow) -> Option<StackId> {
        self.time_waits.end(flow)
    }
}

impl SteeringReader {
    /// The stack that has the TIME-WAIT of a flow's connection, if the flow is nobody else's. Only FINs are its: what opens a
    /// connection is for whoever serves, and the rest of a new one, before that is claimed, too.
    pub(super) fn find_waiting(&self, flow: &Flow) -> Option<StackId> {
        let id = self.time_waits.find(flow)?;
        let ports = self.shared.ports(flow.protocol);
        let is_free = ports.lease(flow.local.port()).is_none()
            && self.redirects.find(flow).is_none()
            && self.is_anothers(id, flow).is_none();
        is_free.then_some(id)
    }
}
