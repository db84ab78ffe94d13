//! Which slots wait for which node.

use crate::{CAPACITY, NodeId, Slot};

/// Nodes that a graph holds at most: the ready set is one word.
pub(crate) const NODES: usize = 64;

/// Slots that wait for each node.
pub(crate) struct Pending {
    lists: Box<[List; NODES]>,
    ready: u64,
}

#[derive(Clone, Copy)]
struct List {
    len: usize,
    slots: [Slot; CAPACITY],
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self { lists: Box::new([List { len: 0, slots: [0; CAPACITY] }; NODES]), ready: 0 }
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
        let waits = |list: &List| list.slots[..list.len.min(CAPACITY)].contains(&slot);
        self.lists.iter().position(waits).map(|at| NodeId(at as u16))
    }

    /// Takes the list of the first node that has one, into `into`: the node and the length.
    pub(crate) fn take(&mut self, into: &mut [Slot; CAPACITY]) -> Option<(usize, usize)> {
        if self.ready == 0 {
            return None;
        }
        let at = self.ready.trailing_zeros() as usize % NODES;
        self.ready &= self.ready - 1;
        let list = &mut self.lists[at];
        let len = list.len.min(CAPACITY);
        into[..len].copy_from_slice(&list.slots[..len]);
        list.len = 0;
        Some((at, len))
    }
}
