//! The ports that a client may use, by its numbers for them.

use crate::PortId;

/// Bytes of a frame beyond those of its IP packet: Ethernet header and two VLAN tags.
const FRAMING: usize = 14 + 2 * 4;

/// Ports by the number that stands in a packet's mark.
#[derive(Debug, Clone, Default)]
pub struct ClientPorts {
    /// Number, port, longest frame: bytes.
    list: Vec<(u8, PortId, usize)>,
}

impl ClientPorts {
    /// Adds a port; `mtu`: bytes of an IP packet.
    pub fn add(&mut self, number: u8, port: PortId, mtu: u16) {
        self.list.push((number, port, usize::from(mtu) + FRAMING));
    }

    /// The client's number for a port.
    #[inline]
    pub(super) fn number(&self, port: PortId) -> Option<u8> {
        self.list.iter().find(|(_, known, _)| *known == port).map(|(number, ..)| *number)
    }

    /// The port of a number, and the longest frame that it takes.
    #[inline]
    pub(super) fn of_number(&self, number: u8) -> Option<(PortId, usize)> {
        let entry = self.list.iter().find(|(known, ..)| *known == number);
        entry.map(|(_, port, longest)| (*port, *longest))
    }
}
