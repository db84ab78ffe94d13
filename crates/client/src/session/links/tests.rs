use super::*;

use std::net::SocketAddr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use shm::Meta;
use shm::book::BookWriter;
use transport::{Config, Departure, Offloads, Options, Rings, Sink, Stack};

/// The stacks at both ends.
const CLIENT: u32 = 4;
const SERVER: u32 = 9;
/// First port that the client leases.
const LEASED: u16 = 20_480;

fn own() -> Vec<IpAddr> {
    vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]
}

struct Bed {
    client: Links,
    server: Links,
    segment: Segment,
}

impl Bed {
    fn new() -> Self {
        let segment = Segment::create("link", LinkPlace::bytes().unwrap()).unwrap();
        let book = BookWriter::new().unwrap();
        book.note(LEASED, 256, CLIENT);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, two) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().unwrap();
        let files = |bell| vec![copy(segment.as_fd()), bell, copy(book.as_fd())];
        let (mut client, mut server) = (Links::default(), Links::default());
        let place = |stack, peer| LinkPlace { link: 3, stack, peer };
        let path = client.add(place(CLIENT, SERVER), true, files(one), |file| file).unwrap();
        assert_eq!(path.number, 1);
        client.learn(1, Served { address: "0.0.0.0:80".parse().unwrap(), only_v6: false });
        server.add(place(SERVER, CLIENT), false, files(two), |file| file).unwrap();
        Self { client, server, segment }
    }

    fn send(links: &mut Links, packet: &[u8]) {
        links.exits.buffer(1, packet.len()).unwrap().copy_from_slice(packet);
        links.exits.send(packet.len());
    }
}

/// What came: the bytes of each packet.
fn take(links: &mut Links) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    links.receive(&own(), |path, packets, _| {
        assert_eq!(path.number, 1);
        assert!(packets.iter().all(|packet| packet.checksum_is_good));
        all.extend(packets.iter().map(|packet| packet.bytes.to_vec()));
    });
    all
}

/// A TCP segment without options, checksums and data.
fn segment(from: &str, to: &str, flags: u8) -> Vec<u8> {
    let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
    let mut bytes = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
            header.extend(from.octets().into_iter().chain(to.octets()));
            header
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut header = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
            header.extend(from.octets().into_iter().chain(to.octets()));
            header
        }
        _ => panic!("two versions"),
    };
    bytes.extend(from.port().to_be_bytes().into_iter().chain(to.port().to_be_bytes()));
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    bytes
}

const SYN: u8 = 2;
const ACK: u8 = 16;

#[test]
fn packets_come_as_they_went() {
    let mut bed = Bed::new();
    let syn = segment("192.0.2.1:20480", "192.0.2.1:80", SYN);
    let answer = segment("192.0.2.1:80", "192.0.2.1:20480", SYN | ACK);
    Bed::send(&mut bed.client, &syn);
    assert_eq!(take(&mut bed.server), [syn]);
    Bed::send(&mut bed.server, &answer);
    assert_eq!(take(&mut bed.client), [answer]);
    let six = segment("[2001:db8::1]:20735", "[2001:db8::1]:80", SYN);
    for _ in 0..2_000 {
        Bed::send(&mut bed.client, &six);
        assert_eq!(take(&mut bed.server), [&six[..]]);
    }
    assert_eq!((bed.client.refused(), bed.server.refused()), (0, 0));
    assert!(
        Segment::from_file(bed.segment.as_fd().try_clone_to_owned().unwrap()).is_err(),
        "sealed"
    );
}

#[test]
fn nobody_sends_from_where_the_daemon_would_not_let_it() {
    let mut bed = Bed::new();
    let own_end = "192.0.2.1:80";
    for from in ["192.0.2.1:20479", "192.0.2.1:20736", "192.0.2.1:22", "192.0.2.7:20480"] {
        Bed::send(&mut bed.client, &segment(from, own_end, SYN));
        assert!(take(&mut bed.server).is_empty(), "{from}");
        assert!(take(&mut bed.client).is_empty());
        let ends = Ends { local: from.parse().unwrap(), remote: own_end.parse().unwrap() };
        assert_eq!(bed.client.take_turned(), [(1, ends)], "it is told to ask the daemon");
    }
    // To somebody else, and from a port that the server does not serve.
    Bed::send(&mut bed.client, &segment("192.0.2.1:20480", "198.51.100.1:80", SYN));
    Bed::send(&mut bed.server, &segment("192.0.2.1:81", "192.0.2.1:20480", ACK));
    assert!(take(&mut bed.server).is_empty() && take(&mut bed.client).is_empty());
    assert_eq!((bed.server.refused(), bed.client.refused()), (5, 1));
}

#[test]
fn what_is_no_segment_is_dropped_without_a_word() {
    let mut bed = Bed::new();
    let good = segment("192.0.2.1:20480", "192.0.2.1:80", SYN);
    let change = |at: usize, to: u8| {
        let mut bad = good.clone();
        bad[at] = to;
        bad
    };
    let options = change(0, 0x46);
    let bad = [change(6, 0x20), change(7, 1), change(9, 17), options, good[..30].to_vec(), vec![0]];
    for packet in &bad {
        Bed::send(&mut bed.client, packet);
        assert!(take(&mut bed.server).is_empty(), "{packet:?}");
    }
    take(&mut bed.client);
    assert!(!bed.client.has_turned());
    assert_eq!(bed.server.refused(), bad.len() as u64);
}

#[test]
fn noise_in_the_memory_harms_nobody() {
    let mut bed = Bed::new();
    // A producer that keeps to nothing: each byte of the segment in turn.
    let segment =
        Arc::new(Segment::from_file(bed.segment.as_fd().try_clone_to_owned().unwrap()).unwrap());
    let layout = LinkPlace::layout().unwrap();
    let mut hostile = Producer::new(segment.region(0, layout.bytes()).unwrap(), layout).unwrap();
    let mut state = 7_u64;
    for round in 0..20_000_usize {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round as u64);
        let length = 1 + (state >> 33) as usize % 1_500;
        let packet: Vec<u8> = (0..length).map(|at| (state >> (at % 57)) as u8).collect();
        let meta = Meta { port: state as u8, flags: (state >> 40) as u8 & 0x7f };
        let _ = hostile.push(&packet, meta);
        if round % 100 == 0 {
            assert!(take(&mut bed.server).is_empty());
        }
    }
    assert!(bed.server.refused() > 1_000);
    assert!(bed.server.take_turned().len() < 20_000);
}

#[test]
fn an_earlier_daemons_link_opens_no_connections() {
    let mut bed = Bed::new();
    bed.server.outlive_daemon();
    Bed::send(&mut bed.client, &segment("192.0.2.1:20480", "192.0.2.1:80", SYN));
    assert!(take(&mut bed.server).is_empty());
    let goes_on = segment("192.0.2.1:20480", "192.0.2.1:80", ACK);
    Bed::send(&mut bed.client, &goes_on);
    assert_eq!(take(&mut bed.server), [goes_on]);
    assert_eq!(bed.server.path_of(3), None);
    assert_eq!(bed.server.remove(1, |_| ()), None);
}

#[test]
fn a_sleeper_is_rung_and_an_end_is_seen() {
    let mut bed = Bed::new();
    assert!(bed.server.arm(), "nothing is there");
    Bed::send(&mut bed.client, &segment("192.0.2.1:20480", "192.0.2.1:80", SYN));
    bed.client.exits.ring();
    assert!(bed.server.heed().is_empty());
    assert!(!bed.server.arm(), "a packet waits");
    bed.server.withdraw();
    assert_eq!(take(&mut bed.server).len(), 1);
    assert_eq!(bed.client.remove(1, |_| ()), Some(3));
    assert!(bed.client.is_empty());
    assert_eq!(bed.server.heed(), [1]);
}

#[test]
fn who_finds_no_room_is_told_of_it() {
    let mut bed = Bed::new();
    let packet = segment("192.0.2.1:20480", "192.0.2.1:80", ACK);
    let mut sent = 0;
    while let Some(buffer) = bed.client.exits.buffer(1, packet.len()) {
        buffer.copy_from_slice(&packet);
        bed.client.exits.send(packet.len());
        sent += 1;
    }
    assert_eq!(sent, 512);
    assert!(bed.client.exits.is_starved());
    assert!(bed.client.arm(), "it sleeps until there is room");
    let mut taken = 0;
    while !bed.server.has_packets() || taken < sent {
        taken += take(&mut bed.server).len();
        if taken == sent {
            break;
        }
    }
    assert!(!bed.client.arm(), "there is room");
    assert!(bed.client.exits.buffer(1, packet.len()).is_some());
    assert!(!bed.client.exits.is_starved());
}

/// A segment with data.
fn long(data: usize) -> Vec<u8> {
    let mut packet = segment("192.0.2.1:20480", "192.0.2.1:80", ACK);
    packet.extend((0..data).map(|byte| (byte % 251) as u8));
    packet
}

#[test]
fn segments_in_one_piece_come_as_they_went() {
    let mut bed = Bed::new();
    for data in [1_460, 1_461, 14_480, 65_000, 65_535 - 40] {
        let packet = long(data);
        for _ in 0..20 {
            Bed::send(&mut bed.client, &packet);
            assert_eq!(take(&mut bed.server), [&packet[..]]);
        }
    }
    // More than is taken out at once, in any order of sizes.
    let sent: Vec<_> = [65_000, 100, 65_000, 1, 65_000, 65_000].map(long).to_vec();
    sent.iter().for_each(|packet| Bed::send(&mut bed.client, packet));
    let mut came = Vec::new();
    while bed.server.has_packets() {
        came.extend(take(&mut bed.server));
    }
    assert!(came == sent && bed.server.refused() == 0);
}

#[test]
fn who_finds_no_room_for_a_long_packet_sleeps_until_there_is() {
    let mut bed = Bed::new();
    let (whole, short) = (long(65_000), long(0));
    let mut sent = 0;
    while let Some(buffer) = bed.client.exits.buffer(1, whole.len()) {
        buffer.copy_from_slice(&whole);
        bed.client.exits.send(whole.len());
        sent += 1;
    }
    assert_eq!(sent, 512 / 44);
    assert!(bed.client.arm(), "there is room, but not enough");
    bed.client.withdraw();
    Bed::send(&mut bed.client, &short);
    assert!(bed.client.exits.is_starved(), "the long one waits nevertheless");
    assert!(bed.client.arm());
    let taken = take(&mut bed.server).len();
    assert!((1..sent).contains(&taken), "a part of it: {taken}");
    assert!(!bed.client.arm(), "there is room");
    assert!(bed.client.arm(), "nobody wants it any more");
    assert!(bed.client.exits.buffer(1, whole.len()).is_some());
}

/// Everything leaves by links.
struct ByLink<'a>(&'a mut Exits);

impl Sink for ByLink<'_> {
    fn offloads(&self) -> Offloads {
        Offloads { path_segmentation: exits::BATCH, ..Offloads::default() }
    }

    fn buffer(&mut self, _: usize) -> Option<&mut [u8]> {
        panic!("by the network")
    }

    fn buffer_by(&mut self, path: u16, length: usize) -> Option<&mut [u8]> {
        self.0.buffer(path, length)
    }

    fn send(&mut self, departure: Departure) {
        self.0.send(departure.length);
    }
}

#[test]
fn a_connection_carries_megabytes_both_ways() {
    let mut bed = Bed::new();
    let stack = |seed| Stack::new(Config { seed: [seed, 1], ..Config::default() }, Rings).unwrap();
    let (mut client, mut server) = (stack(1), stack(2));
    let mut now = 1_000_000_000;
    let at: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let listener = server.listen(at, 10, &Options::default()).unwrap();
    let path = Path { number: 1, mtu: LINK_PACKET };
    let opened = client.connect(now, at.ip(), LEASED, at, &Options::default()).unwrap();
    assert!(client.take_path(opened, path));
    let all: Vec<u8> =
        (0..3_000_000_u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut accepted = None;
    let (mut sent, mut got, mut largest) = ([0; 2], [Vec::new(), Vec::new()], 0);
    while got.iter().any(|got| got.len() < all.len()) {
        now += 20_000;
        assert!(now < 60_000_000_000, "it stands still: {sent:?}");
        for side in 0..2 {
            let (stack, links) = if side == 0 {
                (&mut client, &mut bed.client)
            } else {
                (&mut server, &mut bed.server)
            };
            links.receive(&own(), |path, packets, exits| {
                largest = packets.iter().fold(largest, |most, packet| packet.bytes.len().max(most));
                stack.input_by(path, now, packets, &mut ByLink(exits));
            });
            let id = if side == 0 { Some(opened) } else { accepted };
            if let Some(id) = id {
                sent[side] += stack.send(id, &all[sent[side]..]).unwrap_or(0);
                let mut buffer = vec![0; 1 << 20];
                let count = stack.recv(id, &mut buffer).unwrap_or(0);
                got[side].extend_from_slice(&buffer[..count]);
            }
            stack.expire(now, &mut ByLink(&mut links.exits));
            stack.flush(now, &mut ByLink(&mut links.exits));
            links.exits.ring();
        }
        accepted = accepted.or_else(|| server.accept(listener));
    }
    assert!(got.iter().all(|got| *got == all), "byte by byte");
    assert!(largest > 30_000, "{largest} bytes at most in one packet");
    assert_eq!((bed.client.refused(), bed.server.refused()), (0, 0));
    let counters = [client.counters(), server.counters()];
    assert!(counters.iter().all(|count| count.retransmissions + count.timeouts == 0));
}
