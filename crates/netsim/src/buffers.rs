//! FIFOs in memory of the process, counted.

use std::cell::Cell;
use std::rc::Rc;

use transport::{Buffers, ConnectionId, ListenerId, Pair, Ring, Rings};

/// [`Rings`] that know how many connections have theirs.
#[derive(Debug, Clone, Default)]
pub struct CountedRings {
    held: Rc<Cell<usize>>,
}

impl CountedRings {
    /// Connections that have FIFOs.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.get()
    }
}

impl Buffers for CountedRings {
    type Fifo = Ring;

    fn open(
        &mut self,
        connection: ConnectionId,
        listener: Option<ListenerId>,
        receive: usize,
        transmit: usize,
    ) -> Option<Pair<Ring>> {
        let pair = Rings.open(connection, listener, receive, transmit)?;
        self.held.set(self.held.get() + 1);
        Some(pair)
    }

    fn close(&mut self, connection: ConnectionId, pair: Pair<Ring>) {
        self.held.set(self.held.get() - 1);
        Rings.close(connection, pair);
    }
}
