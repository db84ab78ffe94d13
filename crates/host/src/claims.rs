//! Flows that came in through listeners, for whoever steers packets to this stack.

use std::collections::VecDeque;

use transport::{Buffers, ConnectionId, Ends, Grant, Opening, Pair};

use crate::fifo::Fifo;

/// A flow that belongs to this stack, or does no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// A SYN was taken: from now on packets between these ends are this stack's.
    Made(Ends),
    /// Nothing is left of the connection but its TIME-WAIT: a claim that lasted longer would take the segments of the next
    /// connection between the same ends, whose SYN went to whoever serves by then. Comes again at its end, and for
    /// connections that were opened from a port that was not leased, which were never claimed.
    Gone(Ends),
}

/// Gives connections their FIFOs, and hears which ones come and go.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) claims: VecDeque<Claim>,
    /// Places of connections that have got their FIFOs or given them back.
    pub(crate) changed: Vec<u32>,
}

impl Buffers for Store {
    type Fifo = Fifo;

    fn open(&mut self, opening: &Opening) -> Grant<Fifo> {
        self.changed.push(opening.connection.index());
        let (receive, transmit) = (Fifo::new(opening.receive), Fifo::new(opening.transmit));
        Grant::Given(Pair { receive, transmit })
    }

    fn close(&mut self, connection: ConnectionId, _: Pair<Fifo>) {
        self.changed.push(connection.index());
    }

    fn came(&mut self, ends: &Ends) {
        self.claims.push_back(Claim::Made(*ends));
    }

    fn went(&mut self, ends: &Ends) {
        self.claims.push_back(Claim::Gone(*ends));
    }
}
