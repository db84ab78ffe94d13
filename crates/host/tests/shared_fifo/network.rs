//! Two stacks and what is between them; what leaves must be sound.

use transport::options::MILLISECOND;
use transport::{ConnectionId, Contents, Packet, PacketList, Stack};
use wire::checksum::Sum;
use wire::{Protocol, ipv4, tcp};

use crate::fifo::Segments;

pub(crate) const OWN: usize = 0;
pub(crate) const PEER: usize = 1;
/// Windows are in words of so many bits more than the header's.
const SCALE: u32 = 0;

pub(crate) struct Wire {
    pub(crate) stacks: [Stack<Segments>; 2],
    pub(crate) now: u64,
    /// Packets on the way to each.
    pub(crate) flying: [Vec<Vec<u8>>; 2],
    pub(crate) next: Box<dyn FnMut() -> u64>,
    /// What was advertised by the own stack on the connection that suffers: the highest right edge so far.
    pub(crate) edge: Option<u32>,
    /// Its port.
    pub(crate) port: u16,
    pub(crate) packets: usize,
}

impl Wire {
    /// Lets both stacks talk, losing some; what leaves must be sound.
    pub(crate) fn round(&mut self) {
        for _ in 0..3 {
            self.now += (self.next)() % (4 * MILLISECOND);
            for side in [OWN, PEER] {
                let mut list = PacketList::default();
                let arrived: Vec<Vec<u8>> = std::mem::take(&mut self.flying[side]);
                let packets: Vec<Packet<'_>> =
                    arrived.iter().map(|bytes| Packet::new(bytes)).collect();
                self.stacks[side].input(self.now, &packets, &mut list);
                self.stacks[side].expire(self.now, &mut list);
                self.stacks[side].flush(self.now, &mut list);
                while self.stacks[side].poll_event().is_some() {}
                assert!(list.packets.len() < 200, "{} packets at once", list.packets.len());
                for packet in list.packets {
                    self.packets += 1;
                    self.check(side, &packet);
                    if (self.next)() % 20 != 0 {
                        self.flying[1 - side].push(packet);
                    }
                }
            }
        }
    }

    /// Whole, with right sums, and with a window that is not taken back (RFC 9293 3.8.6).
    fn check(&mut self, side: usize, packet: &[u8]) {
        let header = ipv4::Header::parse(packet).unwrap();
        assert_eq!(usize::from(header.total_length()), packet.len());
        let bytes = &packet[header.header_length()..];
        let segment = tcp::Segment::parse(bytes).unwrap();
        let (source, destination) = (header.source(), header.destination());
        let pseudo = Sum::new().pseudo_v4(source, destination, Protocol::TCP, bytes.len() as u16);
        assert!(segment.is_intact(pseudo), "the sum of {} bytes", bytes.len());
        let header = segment.header;
        let tells = header.flags().0 & (tcp::Flags::SYN | tcp::Flags::RST).0 == 0;
        if side == OWN && header.source_port() == self.port && tells {
            let edge = header.acknowledgment().wrapping_add(u32::from(header.window()) << SCALE);
            let before = self.edge.replace(edge).unwrap_or(edge);
            let more = edge.wrapping_sub(before) as i32;
            assert!(more >= 0, "the window was taken back by {more}");
        }
    }

    /// Exports the connection that suffers, and imports it again.
    pub(crate) fn renew(&mut self, id: ConnectionId, contents: Contents) -> ConnectionId {
        let own = &mut self.stacks[OWN];
        let Ok(mut exported) = own.export(self.now, id, contents) else { return id };
        own.import(self.now, 0, &exported.bytes, &mut exported.fifos).unwrap_or(id)
    }
}
