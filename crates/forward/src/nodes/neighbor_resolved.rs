//! `neighbor-resolved`: packets that waited for a neighbour, back from the control thread.
//!
//! Needs `interface` and `network`. Notes the destination address, which the input node had noted, and lets the packet
//! be looked up again, in the VRF that it came in by: its neighbour has answered, or the look-up tells the sender that it has not.

use graph::{Context, InterfaceId, Node, Reason, Slot, Vector};
use wire::{ipv4, ipv6};

use super::snapshot::Snapshot;
use crate::state::{DEFAULT_VRF, Interfaces};

graph::edges! {
    /// Next nodes of `neighbor-resolved`.
    pub(crate) Next {
        Lookup4 => "ip4-lookup",
        Lookup6 => "ip6-lookup",
        Output4 => "ip4-output",
        Output6 => "ip6-output",
        Vrf4 => "ip4-vrf",
        Vrf6 => "ip6-vrf",
    }
}

/// The node.
pub(crate) struct NeighborResolved {
    interfaces: Snapshot<Interfaces>,
}

impl NeighborResolved {
    /// The node, reading these interfaces.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>) -> Self {
        Self { interfaces }
    }
}

impl Node for NeighborResolved {
    type Next = Next;

    fn name(&self) -> &'static str {
        super::RELEASED
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        for &slot in slots {
            let at = usize::from(slot);
            let id = cx.vector.interface[at];
            // What a stack has sent was not forwarded, and keeps its hop count.
            let made_here = id == InterfaceId::NONE;
            if !made_here && interfaces.get(id).is_none() {
                cx.drop(slot, Reason::NoPort);
                continue;
            }
            let vrf = interfaces.vrf_of(id);
            let packet = cx.vector.network(slot);
            if vrf != DEFAULT_VRF {
                let next =
                    if ipv4::Header::peek(packet).is_some() { Next::Vrf4 } else { Next::Vrf6 };
                cx.vector.vrf[at] = vrf;
                cx.send(slot, next);
                continue;
            }
            if let Some(header) = ipv4::Header::peek(packet) {
                cx.vector.destination4[at] = header.destination().to_bits();
                cx.send(slot, if made_here { Next::Output4 } else { Next::Lookup4 });
            } else if let Some(header) = ipv6::Header::peek(packet) {
                cx.vector.destination6[at] = header.destination().to_bits();
                cx.send(slot, if made_here { Next::Output6 } else { Next::Lookup6 });
            } else {
                cx.drop(slot, Reason::Forgotten);
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        super::family::describe(vector.network(slot))
    }
}
