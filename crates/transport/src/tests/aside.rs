//! Paths other than the network.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

const PATH: Path = Path { number: 7, mtu: 1500 };

/// What left, by the network and by a path.
#[derive(Default)]
struct Ways {
    network: PacketList,
    path: PacketList,
    by_path: bool,
    /// The path is full.
    full: bool,
    /// The path takes several segments as one.
    joins: bool,
    away: Vec<Ends>,
}

impl Sink for Ways {
    fn offloads(&self) -> Offloads {
        let path_segmentation = if self.joins { 65_000 } else { 0 };
        Offloads { path_segmentation, ..Offloads::default() }
    }

    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.by_path = false;
        self.network.buffer(length)
    }

    fn buffer_by(&mut self, path: u16, length: usize) -> Option<&mut [u8]> {
        assert_eq!(path, PATH.number);
        self.by_path = true;
        if self.full { None } else { self.path.buffer(length) }
    }

    fn turn_away(&mut self, path: u16, ends: &Ends) {
        assert_eq!(path, PATH.number);
        self.away.push(*ends);
    }

    fn send(&mut self, departure: Departure) {
        if self.by_path { self.path.send(departure) } else { self.network.send(departure) }
    }
}

/// Two stacks with a path between them.
struct Neighbours {
    stacks: [Stack<Rings>; 2],
    ways: [Ways; 2],
    now: u64,
    listener: ListenerId,
}

fn stack(seed: u64) -> Stack<Rings> {
    Stack::new(Config { seed: [seed, 1], ..Config::default() }, Rings).unwrap()
}

fn server_address() -> std::net::SocketAddr {
    (ADDRESSES[SERVER], 80).into()
}

impl Neighbours {
    fn new() -> Self {
        let mut stacks = [stack(1), stack(2)];
        let listener = stacks[SERVER].listen(server_address(), 10, &Options::default()).unwrap();
        Self { stacks, ways: Default::default(), now: SECOND, listener }
    }

    fn open(&mut self) -> ConnectionId {
        let source = ADDRESSES[CLIENT].into();
        let client = &mut self.stacks[CLIENT];
        let id =
            client.connect(self.now, source, 0, server_address(), &Options::default()).unwrap();
        assert!(client.take_path(id, PATH));
        id
    }

    /// One side sends what it has.
    fn flush(&mut self, side: usize) {
        self.stacks[side].expire(self.now, &mut self.ways[side]);
        self.stacks[side].flush(self.now, &mut self.ways[side]);
    }

    /// What a side has sent arrives by the way by which it left. Gives how many packets there were, by path and network.
    fn carry(&mut self, side: usize) -> (usize, usize) {
        let path = std::mem::take(&mut self.ways[side].path.packets);
        let network = std::mem::take(&mut self.ways[side].network.packets);
        let (stack, sink) = (&mut self.stacks[1 - side], &mut self.ways[1 - side]);
        for bytes in &path {
            let packet = Packet { bytes, checksum_is_good: true };
            stack.input_by(PATH, self.now, &[packet], sink);
        }
        for bytes in &network {
            stack.input(self.now, &[Packet::new(bytes)], sink);
        }
        (path.len(), network.len())
    }

    /// Both sides take turns until nothing is left to say. Gives packets by path and by network.
    fn settle(&mut self) -> (usize, usize) {
        let mut all = (0, 0);
        for _ in 0..200 {
            let mut now = (0, 0);
            for side in [CLIENT, SERVER] {
                self.flush(side);
                let (path, network) = self.carry(side);
                now = (now.0 + path, now.1 + network);
            }
            all = (all.0 + now.0, all.1 + now.1);
            if now == (0, 0) {
                break;
            }
        }
        all
    }

    fn connected() -> (Self, [ConnectionId; 2]) {
        let mut pair = Self::new();
        let id = pair.open();
        assert!(pair.settle().0 >= 3);
        let accepted = pair.stacks[SERVER].accept(pair.listener).unwrap();
        (pair, [id, accepted])
    }

    fn read(&mut self, side: usize, id: ConnectionId) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        let count = self.stacks[side].recv(id, &mut bytes).unwrap();
        bytes.truncate(count);
        bytes
    }
}

#[test]
fn a_connection_keeps_to_its_path_and_needs_no_checksums() {
    let (mut pair, ids) = Neighbours::connected();
    let data = pattern(10_000);
    assert_eq!(pair.stacks[CLIENT].send(ids[0], &data), Ok(10_000));
    pair.flush(CLIENT);
    let first = pair.ways[CLIENT].path.packets[0].clone();
    let (path, network) = pair.settle();
    assert!(path >= 7 && network == 0, "{path} {network}");
    assert_eq!(pair.read(SERVER, ids[1]), data);
    assert_eq!([0, 1].map(|side| pair.stacks[side].path(ids[side])), [7, 7]);
    // Nobody has summed it.
    let (mut other, mut sink) = (stack(3), PacketList::default());
    other.input(pair.now, &[Packet::new(&first)], &mut sink);
    assert_eq!(other.counters().dropped(Reason::TcpChecksum), 1);
}

#[test]
fn a_path_does_not_speak_for_the_connections_of_others() {
    let (mut pair, ids) = Neighbours::connected();
    pair.stacks[CLIENT].send(ids[0], b"forged").unwrap();
    pair.flush(CLIENT);
    let packets = std::mem::take(&mut pair.ways[CLIENT].path.packets);
    let forged = Packet { bytes: &packets[0], checksum_is_good: true };
    let (server, sink) = (&mut pair.stacks[SERVER], &mut pair.ways[SERVER]);
    let other = Path { number: 8, ..PATH };
    server.input_by(other, pair.now, &[forged], sink);
    assert_eq!(server.counters().dropped(Reason::Path), 1);
    assert_eq!(pair.read(SERVER, ids[1]), b"");
    // Nor may it turn away what goes elsewhere.
    let ends = Transport::ends(&pair.stacks[CLIENT], ids[0]).unwrap();
    assert!(!pair.stacks[CLIENT].leave_path(8, &ends, pair.now, &mut pair.ways[CLIENT]));
    assert_eq!(pair.stacks[CLIENT].path(ids[0]), 7);
}

#[test]
fn who_is_turned_away_goes_by_the_network_at_once() {
    let (mut pair, ids) = Neighbours::connected();
    let moved = pair.stacks[SERVER].export(pair.now, ids[1], Contents::Copied).unwrap();
    pair.stacks[SERVER].hold(&moved.ends, pair.now + SECOND);
    pair.stacks[CLIENT].send(ids[0], b"where are you?").unwrap();
    pair.flush(CLIENT);
    assert_eq!(pair.carry(CLIENT), (1, 0));
    let away = std::mem::take(&mut pair.ways[SERVER].away);
    assert_eq!(away.len(), 1, "no reset, and the other end is told");
    assert!(pair.ways[SERVER].path.packets.is_empty());
    let seen = Ends { local: away[0].remote, remote: away[0].local };
    assert!(pair.stacks[CLIENT].leave_path(7, &seen, pair.now, &mut pair.ways[CLIENT]));
    pair.flush(CLIENT);
    let sent = std::mem::take(&mut pair.ways[CLIENT].network.packets);
    // The network's: summed, and for whoever has the connection now.
    let mut heir = stack(2);
    heir.import(pair.now, 0, &moved.bytes, &mut None).unwrap();
    let mut sink = PacketList::default();
    sent.iter().for_each(|bytes| heir.input(pair.now, &[Packet::new(bytes)], &mut sink));
    let id = heir.all_connections()[0];
    let mut buffer = [0; 64];
    assert_eq!(heir.recv(id, &mut buffer), Ok(14));
    assert_eq!(&buffer[..14], b"where are you?");
    assert_eq!(pair.stacks[CLIENT].counters().timeouts, 0);
}

#[test]
fn what_a_path_took_along_is_sent_again_by_the_network() {
    let (mut pair, ids) = Neighbours::connected();
    let data = pattern(6_000);
    pair.stacks[CLIENT].send(ids[0], &data).unwrap();
    pair.flush(CLIENT);
    pair.ways[CLIENT].path.packets.clear();
    for side in [CLIENT, SERVER] {
        assert_eq!(pair.stacks[side].end_path(7, pair.now, &mut pair.ways[side]), 1);
    }
    let (path, network) = pair.settle();
    assert!(path == 0 && network >= 5, "{path} {network}");
    assert_eq!(pair.read(SERVER, ids[1]), data);
    assert_eq!(pair.stacks[CLIENT].counters().timeouts, 0);
    assert_eq!(pair.stacks[CLIENT].end_path(7, pair.now, &mut pair.ways[CLIENT]), 0);
}

#[test]
fn a_syn_that_nobody_answers_takes_the_network() {
    let mut pair = Neighbours::new();
    let id = pair.open();
    pair.flush(CLIENT);
    assert_eq!(pair.ways[CLIENT].path.packets.len(), 1);
    pair.ways[CLIENT].path.packets.clear();
    pair.now += 3 * SECOND / 2;
    let (path, network) = pair.settle();
    assert!(path == 0 && network >= 3, "{path} {network}");
    assert_eq!(pair.stacks[CLIENT].state(id), Some(State::Established));
}

#[test]
fn a_peer_that_comes_by_the_network_is_followed() {
    let (mut pair, ids) = Neighbours::connected();
    pair.stacks[SERVER].end_path(7, pair.now, &mut pair.ways[SERVER]);
    pair.stacks[SERVER].send(ids[1], b"by the network").unwrap();
    pair.settle();
    assert_eq!(pair.read(CLIENT, ids[0]), b"by the network");
    assert_eq!(pair.stacks[CLIENT].path(ids[0]), 0);
}

#[test]
fn a_full_path_holds_back_its_own_connections_only() {
    let (mut pair, ids) = Neighbours::connected();
    let source = ADDRESSES[CLIENT].into();
    let client = &mut pair.stacks[CLIENT];
    let other = client.connect(pair.now, source, 0, server_address(), &Options::default()).unwrap();
    client.send(ids[0], b"later").unwrap();
    pair.ways[CLIENT].full = true;
    let (path, network) = pair.settle();
    assert!(path == 0 && network >= 3, "{path} {network}");
    assert_eq!(pair.stacks[CLIENT].state(other), Some(State::Established));
    assert!(pair.stacks[CLIENT].is_flush_due(), "it waits for room");
    pair.ways[CLIENT].full = false;
    pair.settle();
    assert_eq!(pair.read(SERVER, ids[1]), b"later");
}

#[test]
fn a_path_takes_many_segments_as_one() {
    let (mut pair, ids) = Neighbours::connected();
    pair.ways.iter_mut().for_each(|ways| ways.joins = true);
    let data = pattern(60_000);
    assert_eq!(pair.stacks[CLIENT].send(ids[0], &data), Ok(60_000));
    pair.flush(CLIENT);
    // The initial window of ten segments in one packet.
    assert_eq!(pair.ways[CLIENT].path.packets.len(), 1);
    assert_eq!(pair.ways[CLIENT].path.packets[0].len(), 20 + 32 + 14_480);
    // Time stands still: each packet is acknowledged at once, though it is not larger than the one before.
    let (path, network) = pair.settle();
    assert!(path < 20 && network == 0, "{path} {network}");
    assert_eq!(pair.read(SERVER, ids[1]), data);
    assert_eq!(pair.stacks[CLIENT].counters().retransmissions, 0);
}

#[test]
fn segments_that_a_path_took_as_one_go_one_by_one_over_the_network() {
    let (mut pair, ids) = Neighbours::connected();
    pair.ways.iter_mut().for_each(|ways| ways.joins = true);
    let data = pattern(60_000);
    pair.stacks[CLIENT].send(ids[0], &data).unwrap();
    pair.flush(CLIENT);
    pair.ways[CLIENT].path.packets.clear();
    for side in [CLIENT, SERVER] {
        assert_eq!(pair.stacks[side].end_path(7, pair.now, &mut pair.ways[side]), 1);
    }
    pair.flush(CLIENT);
    let network = &pair.ways[CLIENT].network.packets;
    let lengths: Vec<usize> = network.iter().map(Vec::len).collect();
    assert!(lengths.len() >= 10 && lengths.iter().all(|length| *length <= 1500), "{lengths:?}");
    pair.settle();
    assert_eq!(pair.read(SERVER, ids[1]), data);
    assert_eq!(pair.stacks[CLIENT].counters().timeouts, 0);
}
