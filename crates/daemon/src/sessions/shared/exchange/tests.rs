use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use host::{Domain, Errno, Id, Incoming, Kind, Outgoing, Sessions};
use transport::{Config, PacketList};

use super::*;

const LISTENER: Id = Id(1);
const SERVER: Id = Id(2);
const CLIENT: Id = Id(3);

fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// A stack of the worker.
struct Stack {
    sessions: Sessions,
    number: u16,
    network: PacketList,
}

impl Stack {
    fn new(exchange: &mut Exchange, number: u32) -> Self {
        let seed = [number.into(), 7];
        let (v4, v6) = (16, 16);
        let config = Config { seed, connections_v4: v4, connections_v6: v6, ..Config::default() };
        let number = exchange.join(StackId::new(0, number).unwrap()).unwrap();
        Self { sessions: Sessions::new(config).unwrap(), number, network: PacketList::default() }
    }

    /// As a tenant's round. Gives whether there was something.
    fn round(&mut self, now: u64, exchange: &mut Exchange) -> bool {
        let inbox = exchange.take(self.number);
        let found = inbox.is_some();
        let Self { sessions, number, network } = self;
        if let Some(inbox) = inbox {
            inbox.packets(|path, packets| {
                sessions.input_by(path, now, packets, &mut Ways::new(network, exchange, *number));
            });
            for (path, ends) in inbox.turned() {
                let mut ways = Ways::new(network, exchange, *number);
                sessions.leave_path(*path, ends, &mut ways);
            }
            exchange.give_back(*number, inbox);
        }
        sessions.turn(now, &mut Ways::new(network, exchange, *number));
        found
    }

    fn write(&mut self, id: Id, data: &[u8]) -> usize {
        self.sessions.send(id, &[IoSlice::new(data)], Outgoing::default()).unwrap_or(0)
    }

    fn read(&mut self, id: Id) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        let mut targets = [IoSliceMut::new(&mut bytes)];
        let got = self.sessions.recv(id, &mut targets, Incoming::default());
        bytes.truncate(got.map_or(0, |got| got.bytes));
        bytes
    }
}

struct Bed {
    exchange: Exchange,
    server: Stack,
    client: Stack,
    now: u64,
    /// Packets that went by the network.
    by_network: usize,
}

impl Bed {
    /// A connection that has taken the path.
    fn new() -> Self {
        let mut exchange = Exchange::default();
        let (mut server, mut client) = (Stack::new(&mut exchange, 1), Stack::new(&mut exchange, 2));
        let source: IpAddr = at(2, 0).ip();
        server.sessions.open(LISTENER, Domain::V4, Kind::Stream).unwrap();
        server.sessions.bind(LISTENER, at(1, 80)).unwrap();
        server.sessions.listen(LISTENER, 8).unwrap();
        client.sessions.add_ports(10_240, 256);
        client.sessions.open(CLIENT, Domain::V4, Kind::Stream).unwrap();
        let begun = client.sessions.connect(CLIENT, 1_000_000_000, source, at(1, 80));
        assert_eq!(begun, Err(Errno::INPROGRESS));
        let path = exchange.path_to(StackId::new(0, 1).unwrap()).unwrap();
        assert!(client.sessions.take_path(CLIENT, path));
        let mut bed = Self { exchange, server, client, now: 1_000_000_000, by_network: 0 };
        bed.settle();
        bed.server.sessions.accept(LISTENER, SERVER).unwrap();
        bed
    }

    /// What is sent to the network arrives there too.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let Self { exchange, server, client, now, by_network } = self;
            *now += 1_000_000;
            let mut found = server.round(*now, exchange) | client.round(*now, exchange);
            for to_client in [true, false] {
                let (one, other) = if to_client {
                    (&mut *server, &mut *client)
                } else {
                    (&mut *client, &mut *server)
                };
                let packets = std::mem::take(&mut one.network.packets);
                found |= !packets.is_empty();
                for packet in &packets {
                    let mut ways = Ways::new(&mut other.network, exchange, other.number);
                    other.sessions.input(*now, &[Packet::new(packet)], &mut ways);
                    *by_network += 1;
                }
            }
            if !found && !self.exchange.take_busy() {
                return;
            }
        }
        panic!("it does not come to rest");
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

/// Sends as much as a buffer takes one way, and reads it.
fn passes(bed: &mut Bed, to_server: bool) -> bool {
    let data = bytes(3_000_000);
    let (mut sent, mut got) = (0, Vec::new());
    for _ in 0..1_000 {
        let Bed { server, client, .. } = bed;
        let (from, to) = if to_server {
            ((client, CLIENT), (server, SERVER))
        } else {
            ((server, SERVER), (client, CLIENT))
        };
        sent += from.0.write(from.1, &data[sent..]);
        got.extend(to.0.read(to.1));
        if got.len() == data.len() {
            break;
        }
        bed.settle();
    }
    got == data
}

#[test]
fn a_connection_between_two_stacks_sends_nothing_to_the_network() {
    let mut bed = Bed::new();
    assert!(passes(&mut bed, true) && passes(&mut bed, false));
    assert_eq!(bed.by_network, 0);
}

#[test]
fn it_goes_on_by_the_network_when_the_path_ends() {
    let mut bed = Bed::new();
    bed.exchange.leave(bed.server.number);
    assert_eq!(bed.exchange.path_to(StackId::new(0, 1).unwrap()), None);
    let Bed { exchange, client, server, .. } = &mut bed;
    let mut ways = Ways::new(&mut client.network, exchange, client.number);
    assert_eq!(client.sessions.end_path(server.number, &mut ways), 1);
    assert!(passes(&mut bed, true) && bed.by_network > 0);
    // Another has the number.
    let number = bed.exchange.join(StackId::new(0, 3).unwrap());
    assert_eq!(number, Some(bed.server.number));
    bed.exchange.shut(bed.server.number);
    assert_eq!(bed.exchange.path_to(StackId::new(0, 3).unwrap()), None, "it wants no paths");
}

#[test]
fn what_has_moved_is_turned_away_and_found_by_the_network() {
    let mut bed = Bed::new();
    let parcel = bed.server.sessions.export(SERVER, bed.now).unwrap();
    assert_eq!(bed.client.write(CLIENT, b"where are you?"), 14);
    let Bed { exchange, server, client, now, .. } = &mut bed;
    for _ in 0..3 {
        client.round(*now, exchange);
        server.round(*now, exchange);
    }
    // The daemon steers it to the stack that has it.
    server.sessions.import(SERVER, *now, 0, &parcel.bytes).unwrap();
    bed.settle();
    assert_eq!(bed.server.read(SERVER), b"where are you?");
    assert!(bed.by_network > 0 && passes(&mut bed, false));
}

#[test]
fn what_finds_no_room_waits() {
    let mut exchange = Exchange::default();
    let (one, other) = (exchange.join(StackId::new(0, 1).unwrap()).unwrap(), 2);
    exchange.join(StackId::new(0, 2).unwrap()).unwrap();
    let mut network = PacketList::default();
    let mut ways = Ways::new(&mut network, &mut exchange, one);
    let mut count = 0;
    while let Some(place) = ways.buffer_by(other, 60_000) {
        place.fill(count);
        ways.send(Departure {
            length: 60_000 - usize::from(count),
            segment_size: 0,
            header_length: 40,
        });
        count += 1;
    }
    assert_eq!(usize::from(count), ROOM / 60_000);
    assert!(ways.buffer_by(3, 100).is_none() && ways.buffer_by(0, 100).is_none());
    assert!(exchange.take_busy() && !exchange.take_busy());
    let inbox = exchange.take(other).unwrap();
    let mut seen = 0;
    let packets = inbox.packets(|path, packets| {
        for packet in packets {
            assert_eq!(packet.bytes, vec![seen; 60_000 - usize::from(seen)]);
            assert_eq!((path.number, packet.checksum_is_good), (one, true));
            seen += 1;
        }
    });
    assert_eq!((packets, seen), (usize::from(count), count));
    exchange.give_back(other, inbox);
    assert!(exchange.take(other).is_none());
    assert!(Ways::new(&mut network, &mut exchange, one).buffer_by(other, 60_000).is_some());
}
