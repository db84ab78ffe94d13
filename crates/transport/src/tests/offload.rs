//! A port that segments and fills in checksums.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

/// Cuts large packets as a port does.
#[derive(Default)]
struct Port {
    buffer: Vec<u8>,
    departures: Vec<Departure>,
    packets: Vec<Vec<u8>>,
}

impl Sink for Port {
    fn offloads(&self) -> Offloads {
        Offloads { checksum: true, segmentation: 65_000, ..Offloads::default() }
    }

    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.buffer = vec![0; length];
        Some(&mut self.buffer)
    }

    fn send(&mut self, departure: Departure) {
        self.departures.push(departure);
        let header_length = usize::from(departure.header_length);
        let (header, data) = self.buffer.split_at(header_length);
        let size = match departure.segment_size {
            0 => data.len().max(1),
            size => usize::from(size),
        };
        let chunks: Vec<&[u8]> =
            if data.is_empty() { vec![&[]] } else { data.chunks(size).collect() };
        for (place, chunk) in chunks.iter().enumerate() {
            let mut packet = [header, chunk].concat();
            let length = packet.len() as u16;
            let ip = wire::ipv4::Header::checked_mut(&mut packet).unwrap();
            ip.set_total_length(length);
            wire::ipv4::write_checksum(&mut packet).unwrap();
            let seq = u32::from_be_bytes(header[24..28].try_into().unwrap());
            packet[24..28].copy_from_slice(&(seq + (place * size) as u32).to_be_bytes());
            if place + 1 < chunks.len() {
                packet[33] &= !0x09;
            }
            self.fill_in(&mut packet);
            self.packets.push(packet);
        }
    }
}

impl Port {
    /// Adds the segment to the sum in the checksum field; a cut packet's length is the port's to mend.
    fn fill_in(&self, packet: &mut [u8]) {
        let whole = (self.buffer.len() - 20) as u16;
        let own = (packet.len() - 20) as u16;
        let sum = wire::checksum::of(&packet[20..]);
        let sum = wire::checksum::update_u16(sum, whole, own);
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
    }
}

#[test]
fn large_packets_are_cut_by_the_port() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    let data = pattern(60_000);
    assert_eq!(link.stacks[CLIENT].send(ids[CLIENT], &data), Ok(60_000));
    let mut port = Port::default();
    link.stacks[CLIENT].flush(link.now, &mut port);
    // The initial window of ten segments in one packet.
    assert_eq!((port.departures.len(), port.packets.len()), (1, 10));
    assert_eq!(port.departures[0].segment_size, 1448);
    let mut list = PacketList::default();
    let packets: Vec<Packet<'_>> = port.packets.iter().map(|bytes| Packet::new(bytes)).collect();
    link.stacks[SERVER].input(link.now, &packets, &mut list);
    let mut got = vec![0; 60_000];
    assert_eq!(link.stacks[SERVER].recv(ids[SERVER], &mut got), Ok(14_480));
    assert!(got[..14_480] == data[..14_480]);
    // One part is lost on the way of the next burst: only it is sent again.
    link.stacks[SERVER].flush(link.now, &mut list);
    let acks: Vec<Packet<'_>> = list.packets.iter().map(|bytes| Packet::new(bytes)).collect();
    let mut port = Port::default();
    link.stacks[CLIENT].input(link.now, &acks, &mut port);
    link.stacks[CLIENT].flush(link.now, &mut port);
    port.packets.remove(3);
    let packets: Vec<Packet<'_>> = port.packets.iter().map(|bytes| Packet::new(bytes)).collect();
    let mut list = PacketList::default();
    link.stacks[SERVER].input(link.now, &packets, &mut list);
    for packet in list.packets {
        link.stacks[CLIENT].input(link.now, &[Packet::new(&packet)], &mut PacketList::default());
    }
    let mut rest = vec![0; 60_000];
    let mut read = 14_480;
    while read < 60_000 && link.now < 100 * SECOND {
        let now = link.now;
        link.step(now + SECOND);
        let count = link.stacks[SERVER].recv(ids[SERVER], &mut rest).unwrap();
        assert!(rest[..count] == data[read..read + count]);
        read += count;
    }
    assert_eq!(read, 60_000);
    assert_eq!(link.stacks[CLIENT].counters().retransmissions, 1);
}

#[test]
fn what_no_port_cuts_is_cut_here() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    let data = pattern(5000);
    link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    link.stacks[CLIENT].shutdown(ids[CLIENT]).unwrap();
    let mut list = PacketList::default();
    link.stacks[CLIENT].flush(link.now, &mut list);
    // Lengths, and what belongs to the end of the data.
    let seen: Vec<_> = list.packets.iter().map(|one| (one.len(), one[33] & 0x09)).collect();
    assert_eq!(seen, [(1500, 0), (1500, 0), (1500, 0), (52 + 656, 0x09)]);
    // The first three are noted as one.
    let (_, cold) = link.stacks[CLIENT].slab.get(ids[CLIENT]).unwrap();
    assert_eq!(cold.flight.sent.len(), 2);
    let packets: Vec<Packet<'_>> = list.packets.iter().map(|bytes| Packet::new(bytes)).collect();
    link.stacks[SERVER].input(link.now, &packets, &mut PacketList::default());
    let mut got = vec![0; 6000];
    assert_eq!(link.stacks[SERVER].recv(ids[SERVER], &mut got), Ok(5000));
    assert!(got[..5000] == data);
    assert!(link.stacks[SERVER].is_finished(ids[SERVER]));
}

#[test]
fn a_sink_that_is_full_loses_no_data() {
    struct Full(u32, PacketList);
    impl Sink for Full {
        fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
            self.0 = self.0.checked_sub(1)?;
            self.1.buffer(length)
        }
        fn send(&mut self, departure: Departure) {
            self.1.send(departure);
        }
    }
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    let data = pattern(8000);
    link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    let mut full = Full(2, PacketList::default());
    link.stacks[CLIENT].flush(link.now, &mut full);
    assert_eq!(full.1.packets.len(), 2);
    link.run(10 * SECOND);
    let mut got = vec![0; 9000];
    assert_eq!(link.stacks[SERVER].recv(ids[SERVER], &mut got), Ok(8000));
    assert!(got[..8000] == data);
}

#[test]
fn a_probe_of_the_path_is_not_cut() {
    let mut link = Link::new();
    let options = Options { path_probing: PathProbing::Always, ..Options::default() };
    let ids = link.connect(&options, &Options::default());
    link.stacks[CLIENT].send(ids[CLIENT], &pattern(60_000)).unwrap();
    let mut port = Port::default();
    link.stacks[CLIENT].flush(link.now, &mut port);
    // 1,500 bytes at once, and what is left of the initial window in pieces of 972.
    let sizes: Vec<_> = port.departures.iter().map(|one| (one.length, one.segment_size)).collect();
    assert_eq!(sizes, [(1500, 0), (52 + 8 * 972, 972)]);
}

#[test]
fn a_counter_that_a_port_would_spoil_goes_with_single_segments() {
    // Marks that came: the counter is 5 and so much.
    for (marks, packets) in [(0, 1), (1, 10), (2, 10), (3, 1)] {
        let mut link = Link::new();
        let ecn = Options { ecn: Ecn::Accurate, ..Options::default() };
        let ids = link.connect(&ecn, &ecn);
        let mut left = marks;
        link.fate = Box::new(move |_, packet| {
            if packet.len() > 500 && left > 0 {
                left -= 1;
                packet[1] |= 3;
                wire::ipv4::write_checksum(packet).unwrap();
            }
            Some(0)
        });
        let data = pattern(5000);
        assert!(link.transfer(ids, SERVER, &data, SECOND) == data);
        link.run(SECOND);
        link.stacks[CLIENT].send(ids[CLIENT], &pattern(60_000)).unwrap();
        let mut port = Port::default();
        link.stacks[CLIENT].flush(link.now, &mut port);
        assert_eq!(port.departures.len(), packets, "{marks} marks");
    }
}
