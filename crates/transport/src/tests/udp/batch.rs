//! Many datagrams at once: by one call, as one packet, in pieces.

use super::*;

#[test]
fn a_batch_is_cut_into_datagrams_and_a_full_queue_counts() {
    let mut hosts = Hosts::new();
    let options = UdpOptions { receive_buffer: 4000, ..UdpOptions::default() };
    let server = hosts.stacks[SERVER].udp_bind(v4(SERVER, 7), &options).unwrap();
    let client = hosts.bind(CLIENT, v4(CLIENT, 7));
    let data = [7; 250];
    let message = Message { segment_size: 100, ..Message::to(v4(SERVER, 7), &data) };
    assert_eq!(hosts.send(CLIENT, client, &message), Ok(3));
    let lengths: Vec<usize> =
        std::iter::from_fn(|| hosts.recv(SERVER, server)).map(|(data, _)| data.len()).collect();
    assert_eq!(lengths, [100, 100, 50]);
    for _ in 0..4 {
        hosts.send(CLIENT, client, &message).unwrap();
    }
    let dropped = hosts.stacks[SERVER].counters().dropped(Reason::UdpQueue);
    let shown = hosts.stacks[SERVER].udp_glance(server.index()).unwrap();
    assert_eq!((shown.id, shown.local, shown.remote), (server, v4(SERVER, 7), None));
    assert_eq!(shown.dropped, dropped);
    // Of 100, 100, 50 and 100 bytes; one more would be beyond 4,000.
    assert_eq!(shown.waiting, 3 * 868 + 818);
    let kept = std::iter::from_fn(|| hosts.recv(SERVER, server)).count();
    assert!(dropped > 0 && kept + dropped as usize == 12);
}

/// A port that cuts datagrams and hands buffers out in pieces.
#[derive(Default)]
struct Chains {
    piece: usize,
    offloads: Offloads,
    pieces: Vec<Vec<u8>>,
    sent: Vec<(Departure, Vec<u8>)>,
}

impl Sink for Chains {
    fn offloads(&self) -> Offloads {
        self.offloads
    }

    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.pieces = vec![vec![0xee; length.min(self.piece.max(120))]];
        self.head()
    }

    fn extend(&mut self, left: usize) -> Option<&mut [u8]> {
        self.pieces.push(vec![0xee; left.min(self.piece)]);
        self.pieces.last_mut().map(Vec::as_mut_slice)
    }

    fn head(&mut self) -> Option<&mut [u8]> {
        self.pieces.first_mut().map(Vec::as_mut_slice)
    }

    fn send(&mut self, departure: Departure) {
        self.sent.push((departure, std::mem::take(&mut self.pieces).concat()));
    }
}

#[test]
fn datagrams_leave_in_chains() {
    let data: Vec<u8> = (0..3000u32).map(|i| (i * 7) as u8).collect();
    for (from, to) in [(v4(CLIENT, 7), v4(SERVER, 7)), (v6(CLIENT, 7), v6(SERVER, 7))] {
        for piece in [1, 121, 127, 1000] {
            let mut hosts = Hosts::new();
            let (client, server) = (hosts.bind(CLIENT, from), hosts.bind(SERVER, to));
            let mut sink = Chains { piece, ..Chains::default() };
            hosts.stacks[CLIENT].udp_send(1, client, &Message::to(to, &data), &mut sink).unwrap();
            hosts.hand_over(SERVER, &[sink.sent.remove(0).1]);
            assert!(hosts.recv(SERVER, server).unwrap().0 == data, "{piece}");
            // An answer about a long datagram for nobody is a chain too.
            let closed = SocketAddr::new(to.ip(), 9);
            let mut list = PacketList::default();
            hosts.stacks[CLIENT]
                .udp_send(1, client, &Message::to(closed, &data), &mut list)
                .unwrap();
            let packet = Packet::new(&list.packets[0]);
            hosts.stacks[SERVER].input(1, &[packet], &mut sink);
            hosts.stacks[CLIENT].udp_connect(client, from.ip(), closed).unwrap();
            hosts.hand_over(CLIENT, &[sink.sent.remove(0).1]);
            let told = Err(UdpError::Trouble(UdpTrouble::Failed(Failure::Refused)));
            assert_eq!(hosts.stacks[CLIENT].udp_recv(client, &mut []), told);
        }
    }
}

#[test]
fn a_port_cuts_what_is_sent_as_one() {
    let mut hosts = Hosts::new();
    let client = hosts.bind(CLIENT, v4(CLIENT, 7));
    let offloads = Offloads { datagram_segmentation: 65_000, ..Offloads::default() };
    let mut sink = Chains { piece: 70_000, offloads, ..Chains::default() };
    let data = vec![5; 100_050];
    let message = Message { segment_size: 1000, ..Message::to(v4(SERVER, 7), &data) };
    assert_eq!(hosts.stacks[CLIENT].udp_send(1, client, &message, &mut sink), Ok(101));
    let sizes: Vec<(usize, u16)> =
        sink.sent.iter().map(|(departure, _)| (departure.length, departure.segment_size)).collect();
    assert_eq!(sizes, [(65_028, 1000), (28 + 35_050, 1000)]);
    // The port finds the pseudo header's sum, and numbers follow one another.
    let sum = |packet: &[u8]| u16::from_be_bytes([packet[26], packet[27]]);
    let ends = wire::checksum::Sum::new();
    let pseudo = |length| {
        let [from, to] = ADDRESSES.map(std::net::Ipv4Addr::from);
        !ends.pseudo_v4(from, to, wire::Protocol::UDP, length).finish()
    };
    assert_eq!(
        sink.sent.iter().map(|(_, packet)| sum(packet)).collect::<Vec<_>>(),
        [pseudo(65_008), pseudo(35_058)]
    );
    let number = |packet: &[u8]| u16::from_be_bytes([packet[4], packet[5]]);
    assert_eq!(number(&sink.sent[1].1).wrapping_sub(number(&sink.sent[0].1)), 65);
}

#[test]
fn many_are_sent_and_received_with_one_call_and_marked() {
    let mut hosts = Hosts::new();
    let options = UdpOptions { ecn: 2, dscp: 10, ..UdpOptions::default() };
    let client = hosts.stacks[CLIENT].udp_bind(v4(CLIENT, 7), &options).unwrap();
    let server = hosts.bind(SERVER, v4(SERVER, 7));
    let to = v4(SERVER, 7);
    let messages = [
        Message::to(to, b"aaaa"),
        Message { segment_size: 4, ..Message::to(to, b"bbbbcc") },
        Message { ecn: Some(1), ..Message::to(to, b"dddd") },
        Message { ecn: Some(0), ..Message::to(v4(SERVER, 0), b"nowhere") },
        Message::to(to, b"never"),
    ];
    let mut list = PacketList::default();
    let stack = &mut hosts.stacks[CLIENT];
    assert_eq!(stack.udp_send_all(1, client, &messages, &mut list), Ok(3));
    let refused = stack.udp_send_all(1, client, &messages[3..], &mut list);
    assert_eq!(refused, Err(UdpError::Address));
    hosts.hand_over(SERVER, &list.packets);
    let mut buffer = [0; 100];
    let stack = &mut hosts.stacks[SERVER];
    assert_eq!(stack.udp_peek(server, &mut buffer).unwrap().unwrap().length, 4);
    let run = stack.udp_recv_run(server, &mut buffer).unwrap().unwrap();
    assert_eq!((run.count, run.first.service, &buffer[..run.copied]), (3, 42, &b"aaaabbbbcc"[..]));
    let run = stack.udp_recv_run(server, &mut buffer).unwrap().unwrap();
    assert_eq!((run.count, run.first.service, &buffer[..run.copied]), (1, 41, &b"dddd"[..]));
    assert_eq!(stack.udp_recv_run(server, &mut buffer), Ok(None));
}
