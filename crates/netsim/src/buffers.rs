//! FIFOs in memory of the process, counted.

use std::cell::Cell;
use std::rc::Rc;

use transport::{Buffers, ConnectionId, Grant, Opening, Pair, Ring, Rings, Stack};

/// A host's stack.
pub type HostStack = Stack<CountedRings>;

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

    fn open(&mut self, opening: &Opening) -> Grant<Ring> {
        let grant = Rings.open(opening);
        if matches!(grant, Grant::Given(_)) {
            self.held.set(self.held.get() + 1);
        }
        grant
    }

    fn close(&mut self, connection: ConnectionId, pair: Pair<Ring>) {
        self.held.set(self.held.get() - 1);
        Rings.close(connection, pair);
    }
}
