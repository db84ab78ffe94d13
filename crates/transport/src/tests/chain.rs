//! Packets whose buffers come in pieces.

use super::pair::*;
use crate::*;

/// Gives buffers in pieces of 2,048 bytes, the first of them shorter.
#[derive(Default)]
struct Chain {
    pieces: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
    most: usize,
}

impl Sink for Chain {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.pieces = vec![vec![0; length.min(151)]];
        self.pieces.last_mut().map(Vec::as_mut_slice)
    }

    fn extend(&mut self, left: usize) -> Option<&mut [u8]> {
        if self.pieces.len() == self.most {
            return None;
        }
        self.pieces.push(vec![0; left.min(701)]);
        self.pieces.last_mut().map(Vec::as_mut_slice)
    }

    fn head(&mut self) -> Option<&mut [u8]> {
        self.pieces.first_mut().map(Vec::as_mut_slice)
    }

    fn send(&mut self, departure: Departure) {
        let packet = self.pieces.concat();
        assert_eq!(packet.len(), departure.length);
        self.packets.push(packet);
    }
}

#[test]
fn a_packet_leaves_as_a_chain_of_pieces() {
    let mut link = Link::new();
    let options = Options { no_delay: true, ..Options::default() };
    let ids = link.connect(&options, &options);
    let data = pattern(5 * 1448 + 7);
    assert_eq!(link.stacks[CLIENT].send(ids[CLIENT], &data), Ok(data.len()));
    let mut short = Chain { most: 2, ..Chain::default() };
    link.stacks[CLIENT].flush(link.now, &mut short);
    // A chain that ends early is a full sink: nothing has left, nothing is lost.
    assert!(short.packets.is_empty() && link.stacks[CLIENT].is_flush_due());
    let mut chain = Chain { most: 9, ..Chain::default() };
    link.stacks[CLIENT].flush(link.now, &mut chain);
    let mut answers = PacketList::default();
    for packet in &chain.packets {
        link.stacks[SERVER].input(link.now, &[Packet::new(packet)], &mut answers);
    }
    let mut received = vec![0; data.len() + 1];
    assert_eq!(link.stacks[SERVER].recv(ids[SERVER], &mut received), Ok(data.len()));
    assert!(received[..data.len()] == data[..]);
    assert_eq!(link.stacks[SERVER].counters().dropped(Reason::TcpChecksum), 0);
}
