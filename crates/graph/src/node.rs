//! What a node is.

use crate::{Context, Edge, Slot, Vector};

/// One processing stage.
///
/// `process` takes slots whose buffers are present, and must dispose of each of them exactly once
/// through the [`Context`]: send, transmit, punt or drop. A slot that it forgets is freed and
/// counted as [`Reason::Forgotten`](crate::Reason::Forgotten).
pub trait Node: Send + 'static {
    /// Where this node sends packets.
    type Next: Edge;

    /// Name in counters, trace and docs, e.g. `ip4-lookup`.
    fn name(&self) -> &'static str;

    /// Its edges, each with the name of the node that it leads to. A node that is in a graph twice, for two families,
    /// overrides it.
    fn edges(&self) -> Vec<(Self::Next, &'static str)> {
        Self::Next::edges()
    }

    /// Treats the packets in `slots`.
    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Self::Next>);

    /// What the node sees in a packet that it is about to process, in words, for `millrace trace`.
    fn describe(&self, vector: &Vector, slot: Slot) -> String;
}
