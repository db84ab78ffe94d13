//! `interface-output`: a whole untagged frame leaves by an interface.
//!
//! Needs `egress`. Puts on a sub-interface's VLAN tag. What the control thread sends enters here.

use dpdk::Buffer;
use graph::{Context, Node, Reason, Slot, Vector};
use wire::EtherType;

use super::snapshot::Snapshot;
use crate::state::{Interfaces, Mode};

graph::edges! {
    /// Next nodes of `interface-output`.
    pub(crate) Next { Bridge => "bridge-output" }
}

/// The node.
pub(crate) struct InterfaceOutput {
    interfaces: Snapshot<Interfaces>,
}

impl InterfaceOutput {
    /// The node, reading these interfaces.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>) -> Self {
        Self { interfaces }
    }
}

impl Node for InterfaceOutput {
    type Next = Next;

    fn name(&self) -> &'static str {
        "interface-output"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        for &slot in slots {
            let at = usize::from(slot);
            let id = cx.vector.egress[at];
            let Some(interface) = interfaces.get(id) else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            if let Mode::BridgeIp(_) = interface.mode {
                cx.send(slot, Next::Bridge);
                continue;
            }
            let Some(port) = interface.port else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            let tagged = match (interface.vlan, cx.vector.buffer_mut(slot)) {
                (Some(id), Some(buffer)) => push_tag(buffer, id),
                (None, Some(_)) => true,
                (_, None) => continue,
            };
            if tagged {
                cx.transmit(slot, port);
            } else {
                cx.drop(slot, Reason::NoBuffer);
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        format!("leaves by interface {}", vector.egress[usize::from(slot)])
    }
}

/// Inserts an 802.1Q tag behind the MAC addresses. `false`: no headroom, or no Ethernet header.
pub(super) fn push_tag(buffer: &mut Buffer, tag: u16) -> bool {
    if buffer.data().len() < 14 || buffer.prepend(4).is_none() {
        return false;
    }
    let frame = buffer.data_mut();
    frame.copy_within(4..16, 0);
    let [t0, t1] = EtherType::VLAN.0.to_be_bytes();
    let [v0, v1] = tag.to_be_bytes();
    if let Some(room) = frame.get_mut(12..16) {
        room.copy_from_slice(&[t0, t1, v0, v1]);
    }
    true
}

/// Takes the 802.1Q tag out, if there is one, and returns it.
pub(super) fn pop_tag(buffer: &mut Buffer) -> Option<u16> {
    let frame = buffer.data_mut();
    let tag = match frame.get(12..16) {
        Some(&[0x81, 0x00, v0, v1]) => u16::from_be_bytes([v0, v1]),
        _ => return None,
    };
    frame.copy_within(0..12, 4);
    buffer.adjust(4).then_some(tag)
}
