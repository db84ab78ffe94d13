//! `reflect`: a packet without a route goes back out of the port that it came in by (the source
//! document's answer to a look-up miss), to the MAC address that it came from.
//!
//! Needs `interface`.

use graph::{Context, Node, Reason, Slot, Vector};
use wire::ethernet::Header;

use super::snapshot::Snapshot;
use crate::state::Interfaces;

graph::edges! {
    /// Next nodes of `reflect`.
    pub(crate) Next { Bridge => "bridge-output" }
}

/// The node.
pub(crate) struct Reflect {
    interfaces: Snapshot<Interfaces>,
}

impl Reflect {
    /// The node, reading these interfaces.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>) -> Self {
        Self { interfaces }
    }
}

impl Node for Reflect {
    type Next = Next;

    fn name(&self) -> &'static str {
        "reflect"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        for &slot in slots {
            let ingress = interfaces.get(cx.vector.interface[usize::from(slot)]);
            let (Some(ingress), Some(buffer)) = (ingress, cx.vector.buffer_mut(slot)) else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            // Tags stay where they are: the frame goes back whole.
            if let Ok((header, _)) = Header::parse_mut(buffer.data_mut()) {
                header.destination = header.source;
                header.source = ingress.mac;
            }
            match ingress.port {
                Some(port) => cx.transmit(slot, port),
                None => cx.send(slot, Next::Bridge),
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        format!("no route: back out of interface {}", vector.interface[usize::from(slot)])
    }
}
