//! `neighbor-resolved`: packets that waited for a neighbour, back from the control thread.
//!
//! Needs `interface` and `network`. Notes the destination address, which the input node had noted, and lets the packet
//! be looked up again, in the VRF that it came in by: its neighbour has answered, or the look-up tells the sender that it has not.

use std::net::IpAddr;

use graph::{Context, InterfaceId, Node, Reason, Slot, Vector};
use wire::{ipv4, ipv6};

use super::snapshot::Snapshot;
use crate::state::{DEFAULT_VRF, Interfaces, VrfId};

graph::edges! {
    /// Next nodes of `neighbor-resolved`.
    pub(crate) Next {
        Lookup4 => "ip4-lookup",
        Lookup6 => "ip6-lookup",
        Output4 => "ip4-output",
        Output6 => "ip6-output",
        Vrf4 => "ip4-vrf",
        Vrf6 => "ip6-vrf",
        VrfOutput4 => "ip4-vrf-output",
        VrfOutput6 => "ip6-vrf-output",
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
            if id != InterfaceId::NONE && interfaces.get(id).is_none() {
                cx.drop(slot, Reason::NoPort);
                continue;
            }
            let Some(source) = note(cx.vector, slot) else {
                cx.drop(slot, Reason::Forgotten);
                continue;
            };
            let vrf = interfaces.vrf_of(id);
            cx.vector.vrf[at] = vrf;
            // What was made here, or by a stack, was not forwarded, and keeps its hop count.
            let made_here = id == InterfaceId::NONE || interfaces.is_own(id, source);
            cx.send(slot, next(source.is_ipv4(), vrf, made_here));
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        super::family::describe(vector.network(slot))
    }
}

/// Notes a packet's destination address for the look-up, and gives its source address.
fn note(vector: &mut Vector, slot: Slot) -> Option<IpAddr> {
    let at = usize::from(slot);
    if let Some(header) = ipv4::Header::peek(vector.network(slot)) {
        let (source, destination) = (header.source(), header.destination());
        vector.destination4[at] = destination.to_bits();
        return Some(source.into());
    }
    let header = ipv6::Header::peek(vector.network(slot))?;
    let (source, destination) = (header.source(), header.destination());
    vector.destination6[at] = destination.to_bits();
    Some(source.into())
}

fn next(four: bool, vrf: VrfId, made_here: bool) -> Next {
    match (vrf, made_here, four) {
        (DEFAULT_VRF, false, true) => Next::Lookup4,
        (DEFAULT_VRF, false, false) => Next::Lookup6,
        (DEFAULT_VRF, true, true) => Next::Output4,
        (DEFAULT_VRF, true, false) => Next::Output6,
        (_, false, true) => Next::Vrf4,
        (_, false, false) => Next::Vrf6,
        (_, true, true) => Next::VrfOutput4,
        (_, true, false) => Next::VrfOutput6,
    }
}
