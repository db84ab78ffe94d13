//! `port-output`: a whole frame leaves by the port of its next hop, behind the output features of its interface.
//!
//! Needs `next_hop`.

use std::sync::Arc;

use graph::{Context, NoEdge, Node, Slot, Vector};

use crate::state::NextHops;

/// The node.
pub(crate) struct PortOutput {
    next_hops: Arc<NextHops>,
}

impl PortOutput {
    /// The node, reading these next hops.
    #[must_use]
    pub(crate) fn new(next_hops: Arc<NextHops>) -> Self {
        Self { next_hops }
    }
}

impl Node for PortOutput {
    type Next = NoEdge;

    fn name(&self) -> &'static str {
        "port-output"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, NoEdge>) {
        let next_hops = self.next_hops.reader();
        for &slot in slots {
            let hop = next_hops.words(cx.vector.next_hop[usize::from(slot)]);
            cx.transmit(slot, hop.port());
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let hop = self.next_hops.get(vector.next_hop[usize::from(slot)]);
        format!("leaves by port {}", hop.port)
    }
}
