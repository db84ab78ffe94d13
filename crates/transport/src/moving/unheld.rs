//! Connections that no application has: not accepted yet, or closed and not over.

use crate::fifo::Buffers;
use crate::handle::{ConnectionId, ListenerId};
use crate::stack::Stack;
use crate::tcp::hot::flag;

impl<B: Buffers> Stack<B> {
    /// Whether the application has closed a connection that goes on until all is sent and acknowledged.
    #[must_use]
    pub fn is_released(&self, connection: ConnectionId) -> bool {
        let found = self.slab.get(connection);
        found.is_some_and(|(hot, _)| hot.has(flag::RELEASED)) && !self.is_unaccepted(connection)
    }

    /// Whether [`Event::Gone`](crate::Event::Gone) is still to come for a connection that the application has closed.
    #[must_use]
    pub fn awaits_gone(&self, connection: ConnectionId) -> bool {
        self.slab.get(connection).is_some_and(|(hot, cold)| hot.has(flag::RELEASED) && cold.known)
    }

    /// Whether nobody has accepted a connection that came in.
    #[must_use]
    pub fn is_unaccepted(&self, connection: ConnectionId) -> bool {
        let unaccepted = flag::QUEUED | flag::HALF_OPEN;
        self.slab.get(connection).is_some_and(|(hot, _)| hot.flags & unaccepted != 0)
    }

    /// The connections that have waited longest for a listener's application, so many at most.
    #[must_use]
    pub fn longest_unaccepted(&self, listener: ListenerId, most: usize) -> Vec<ConnectionId> {
        let listener = self.shared.listeners.get(listener).into_iter();
        listener.flat_map(|listener| listener.queue.iter().copied()).take(most).collect()
    }

    /// The connections of a listener that nobody has accepted: those that wait, in their order, then those whose handshake goes on.
    #[must_use]
    pub fn unaccepted(&self, listener: ListenerId) -> Vec<ConnectionId> {
        let waiting = self.shared.listeners.get(listener).into_iter();
        let mut all: Vec<_> = waiting.flat_map(|listener| listener.queue.iter().copied()).collect();
        let opening = self.slab.ids().filter(|id| {
            self.slab.get(*id).is_some_and(|(hot, cold)| {
                hot.has(flag::HALF_OPEN) && cold.listener == Some(listener)
            })
        });
        all.extend(opening);
        all
    }
}
