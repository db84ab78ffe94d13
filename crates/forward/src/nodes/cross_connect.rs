//! `cross-connect`: what comes in by one interface goes out by another, untouched but for the tag
//! of a sub-interface.
//!
//! Needs `interface`; fills `egress`.

use graph::{Context, Node, Reason, Slot, Vector};

use super::interface_output::pop_tag;
use super::snapshot::Snapshot;
use crate::state::{Interfaces, Mode};

graph::edges! {
    /// Next nodes of `cross-connect`.
    pub(crate) Next { Output => "interface-output" }
}

/// The node.
pub(crate) struct CrossConnect {
    interfaces: Snapshot<Interfaces>,
}

impl CrossConnect {
    /// The node, reading these interfaces.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>) -> Self {
        Self { interfaces }
    }
}

impl Node for CrossConnect {
    type Next = Next;

    fn name(&self) -> &'static str {
        "cross-connect"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        for &slot in slots {
            let at = usize::from(slot);
            let Some(ingress) = interfaces.get(cx.vector.interface[at]) else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            let Mode::CrossConnect(egress) = ingress.mode else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            if let (Some(_), Some(buffer)) = (ingress.vlan, cx.vector.buffer_mut(slot)) {
                let _tag_of_this_interface = pop_tag(buffer);
            }
            let Some(buffer) = cx.vector.buffer(slot) else { continue };
            // The MTU is that of the IP packet; the frame has 14 bytes and maybe a tag more.
            let largest = interfaces.get(egress).map_or(0, |egress| usize::from(egress.mtu) + 18);
            if buffer.len() > largest {
                cx.drop(slot, Reason::MtuExceeded);
                continue;
            }
            cx.vector.egress[at] = egress;
            cx.send(slot, Next::Output);
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        format!("cross-connected from interface {}", vector.interface[usize::from(slot)])
    }
}
