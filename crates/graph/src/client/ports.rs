//! The ports that a client may use, by its numbers for them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::PortId;

/// Bytes of a frame beyond those of its IP packet: Ethernet header and two VLAN tags.
const FRAMING: u64 = 14 + 2 * 4;
/// Shortest frame that is sent: bytes of an Ethernet header.
const SHORTEST: usize = 14;
/// Numbers that fit into a packet's mark.
const NUMBERS: usize = 256;
/// Bits of a port's id in a packed entry.
const PORT_BITS: u32 = 16;

/// Ports by the number that stands in a packet's mark. One thread changes it while workers read.
#[derive(Debug)]
pub struct ClientPorts {
    /// Longest frame (bytes) and port; 0: none.
    by_number: [AtomicU64; NUMBERS],
    /// Port, and above it number and 1; 0: none.
    by_port: [AtomicU32; PortId::NUMBERS],
}

impl Default for ClientPorts {
    fn default() -> Self {
        Self {
            by_number: [const { AtomicU64::new(0) }; NUMBERS],
            by_port: [const { AtomicU32::new(0) }; PortId::NUMBERS],
        }
    }
}

impl ClientPorts {
    /// Gives a number to a port (its id and the bytes of its longest IP packet), or takes it away. A worker that reads
    /// meanwhile sees what stays as it was: a packet must not pass its client by because somebody else has come.
    pub fn set(&self, number: u8, port: Option<(PortId, u16)>) {
        let ours = u32::from(number) + 1;
        let own = port.map(|(port, _)| port);
        for (at, place) in self.by_port.iter().enumerate() {
            if let Some(port) = own.filter(|port| port.number() == at) {
                place.store(ours << PORT_BITS | u32::from(port.to_bits()), Ordering::Relaxed);
            } else if place.load(Ordering::Relaxed) >> PORT_BITS == ours {
                place.store(0, Ordering::Relaxed);
            }
        }
        let entry = port.map_or(0, |(port, mtu)| {
            (u64::from(mtu) + FRAMING) << PORT_BITS | u64::from(port.to_bits())
        });
        if let Some(place) = self.by_number.get(usize::from(number)) {
            place.store(entry, Ordering::Relaxed);
        }
    }

    /// The client's number for a port.
    #[inline]
    pub(super) fn number(&self, port: PortId) -> Option<u8> {
        let place = self.by_port.get(port.number())?.load(Ordering::Relaxed);
        let (number, of) = (place >> PORT_BITS, PortId::from_bits(place as u16));
        number.checked_sub(1).filter(|_| of == port).map(|number| number as u8)
    }

    /// The port by which a client may send a frame of `length` bytes under this number.
    #[inline]
    pub(super) fn admit(&self, number: u8, length: usize) -> Option<PortId> {
        let (port, longest) = self.of_number(number)?;
        (SHORTEST..=longest).contains(&length).then_some(port)
    }

    /// The port of a number, and the longest frame that it takes: bytes.
    #[inline]
    fn of_number(&self, number: u8) -> Option<(PortId, usize)> {
        let entry = self.by_number.get(usize::from(number))?.load(Ordering::Relaxed);
        (entry != 0).then_some((PortId::from_bits(entry as u16), (entry >> PORT_BITS) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_while_ports_come_and_go() {
        let ports = ClientPorts::default();
        ports.set(3, Some((PortId::new(9), 1500)));
        assert_eq!(
            (ports.number(PortId::new(9)), ports.of_number(3)),
            (Some(3), Some((PortId::new(9), 1522)))
        );
        // Opened anew under another id.
        ports.set(3, Some((PortId::new(11), 9000)));
        assert_eq!((ports.number(PortId::new(9)), ports.number(PortId::new(11))), (None, Some(3)));
        assert_eq!(ports.of_number(3), Some((PortId::new(11), 9022)));
        assert_eq!(ports.number(PortId::with_generation(11, 1)), None, "what has its number next");
        ports.set(3, None);
        assert_eq!((ports.number(PortId::new(11)), ports.of_number(3)), (None, None));
        assert_eq!((ports.admit(3, 100), ports.admit(4, 100)), (None, None));
        ports.set(255, Some((PortId::new(255), 1500)));
        let admitted = [13, 14, 1522, 1523].map(|length| ports.admit(255, length));
        assert_eq!(admitted, [None, Some(PortId::new(255)), Some(PortId::new(255)), None]);
        assert_eq!(
            (ports.number(PortId::new(255)), ports.of_number(255)),
            (Some(255), Some((PortId::new(255), 1522)))
        );
    }

    #[test]
    fn what_stays_is_there_all_the_time() {
        let ports = ClientPorts::default();
        ports.set(3, Some((PortId::new(9), 1500)));
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    ports.set(3, Some((PortId::new(9), 1500)));
                }
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                assert_eq!(
                    (ports.number(PortId::new(9)), ports.of_number(3)),
                    (Some(3), Some((PortId::new(9), 1522)))
                );
            }
        });
    }
}
