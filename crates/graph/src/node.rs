//! What a node is, and the typed edges between nodes.

use crate::{Context, Slot, Vector};

/// The next nodes of a node: a field-less enum, its variants numbered from 0 in order.
///
/// Write it with [`edges!`](crate::edges), which derives this trait.
pub trait Edge: Copy + Send + 'static {
    /// Names of the nodes that the variants lead to, in the order of the variants.
    const TARGETS: &'static [&'static str];

    /// The variant's number.
    fn index(self) -> usize;
}

/// For nodes that send nothing on.
#[derive(Debug, Clone, Copy)]
pub enum NoEdge {}

impl Edge for NoEdge {
    const TARGETS: &'static [&'static str] = &[];

    fn index(self) -> usize {
        match self {}
    }
}

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

    /// Names of the next nodes, in the order of `Next`. A node that serves two families in one
    /// graph overrides it.
    fn targets(&self) -> &'static [&'static str] {
        Self::Next::TARGETS
    }

    /// Treats the packets in `slots`.
    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Self::Next>);

    /// What the node sees in a packet that it is about to process, in words, for `millrace trace`.
    fn describe(&self, vector: &Vector, slot: Slot) -> String;
}

/// Declares the next nodes of a node: `edges! { pub Next { Lookup => "ip4-lookup", ... } }`.
#[macro_export]
macro_rules! edges {
    ($(#[$meta:meta])* $visibility:vis $name:ident { $($(#[$about:meta])* $variant:ident => $target:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $name { $($(#[$about])* #[doc = concat!("To `", $target, "`.")] $variant),+ }

        impl $crate::Edge for $name {
            const TARGETS: &'static [&'static str] = &[$($target),+];

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
