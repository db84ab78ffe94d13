//! `reflect`: a packet without a route goes back out of the port that it came in by (the source
//! document's answer to a look-up miss), to the MAC address that it came from.
//!
//! Needs `interface` and `network`; fills `egress`. A packet that was made here out of several has no frame to go back by.

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
            let at = usize::from(slot);
            let (id, network) = (cx.vector.interface[at], usize::from(cx.vector.network[at]));
            let (Some(ingress), Some(buffer)) = (interfaces.get(id), cx.vector.buffer_mut(slot))
            else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            // Tags stay where they are: the frame goes back whole.
            let link = buffer.data_mut().get_mut(..network).map(Header::parse_mut);
            let Some(Ok((header, _))) = link else {
                let reason = no_route(cx.vector.network(slot));
                cx.drop(slot, reason);
                continue;
            };
            header.destination = header.source;
            header.source = ingress.mac;
            cx.vector.egress[at] = id;
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

fn no_route(packet: &[u8]) -> Reason {
    let six = packet.first().is_some_and(|byte| byte >> 4 == 6);
    if six { Reason::Ip6NoRoute } else { Reason::Ip4NoRoute }
}
