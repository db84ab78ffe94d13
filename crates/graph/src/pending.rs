//! Which slots wait for which node.

use crate::{CAPACITY, NodeId, Slot};

/// Nodes that a graph holds at most: the ready set is one word.
pub(crate) const NODES: usize = 64;

/// Slots that wait for each node.
pub(crate) struct Pending {
    lists: [Box<List>; NODES],
    ready: u64,
}

/// Slots that wait for one node.
pub(crate) struct List {
    len: usize,
    slots: [Slot; CAPACITY],
}

impl List {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { len: 0, slots: [0; CAPACITY] })
    }

    #[inline]
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots[..self.len.min(CAPACITY)]
    }
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self { lists: std::array::from_fn(|_| List::new()), ready: 0 }
    }

    /// Adds one slot to a node's list.
    #[inline(always)]
    pub(crate) fn push(&mut self, node: NodeId, slot: Slot) {
        let at = usize::from(node.0) % NODES;
        let list = &mut self.lists[at];
        list.slots[list.len % CAPACITY] = slot;
        list.len += 1;
        self.ready |= 1 << at;
    }

    #[inline]
    pub(crate) fn extend(&mut self, node: NodeId, slots: &[Slot]) {
        let at = usize::from(node.0) % NODES;
        let list = &mut self.lists[at];
        let end = list.len + slots.len();
        if let Some(room) = list.slots.get_mut(list.len..end) {
            room.copy_from_slice(slots);
            list.len = end;
            self.ready |= u64::from(end > 0) << at;
        }
    }

    /// The node for which the slot waits.
    pub(crate) fn holder(&self, slot: Slot) -> Option<NodeId> {
        self.lists.iter().position(|list| list.slots().contains(&slot)).map(|at| NodeId(at as u16))
    }

    /// Exchanges the list of the first node that has one for `list`, which is done with: the node.
    pub(crate) fn take(&mut self, list: &mut Box<List>) -> Option<usize> {
        if self.ready == 0 {
            return None;
        }
        let at = self.ready.trailing_zeros() as usize % NODES;
        self.ready &= self.ready - 1;
        list.len = 0;
        std::mem::swap(&mut self.lists[at], list);
        Some(at)
    }
}
