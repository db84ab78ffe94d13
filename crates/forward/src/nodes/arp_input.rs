//! `arp-input`: hands well-formed ARP packets to the control thread.

use graph::{Context, NoEdge, Node, Reason, Slot, Vector};
use wire::arp::Packet;

use crate::Cause;

/// The node.
#[derive(Default)]
pub(crate) struct ArpInput;

impl Node for ArpInput {
    type Next = NoEdge;

    fn name(&self) -> &'static str {
        "arp-input"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, NoEdge>) {
        for &slot in slots {
            match Packet::parse(cx.vector.network(slot)) {
                Ok(_) => cx.punt(slot, Cause::Arp as u16),
                Err(_) => cx.drop(slot, Reason::ArpMalformed),
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        match Packet::parse(vector.network(slot)) {
            Ok(arp) => {
                format!("ARP {:?}: {} about {}", arp.operation(), arp.sender(), arp.target())
            }
            Err(malformed) => format!("not ARP: {malformed}"),
        }
    }
}
