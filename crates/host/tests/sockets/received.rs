//! What else is told of a datagram that came: when, and how many came alike. What is expected was read from Linux 6.18.

use std::io::{IoSlice, IoSliceMut};

use millrace_host::{Domain, Errno, Id, Incoming, Kind, Outgoing, Sessions, Shape, Stamps};

use crate::pair::{Pair, at, v4};

const A: Id = Id(1);
const B: Id = Id(2);

/// `SO_TIMESTAMP`, `SO_TIMESTAMPNS`, `SO_TIMESTAMPING`, and their new names.
const STAMP: i32 = 29;
const STAMP_NANOS: i32 = 35;
const STAMPING: i32 = 37;
const STAMP_NEW: i32 = 63;
const STAMP_NANOS_NEW: i32 = 64;
const STAMPING_NEW: i32 = 65;

/// A client, and a server with a socket.
fn pair() -> Pair {
    let mut pair = Pair::default();
    pair.server().open(B, Domain::V4, Kind::Datagram).unwrap();
    pair.server().bind(B, at(v4(1), 53)).unwrap();
    let client = pair.client();
    client.open(A, Domain::V4, Kind::Datagram).unwrap();
    client.connect(A, 0, v4(0), at(v4(1), 53)).unwrap();
    pair
}

fn send(pair: &mut Pair, bytes: &[u8]) {
    pair.client().send(A, &[IoSlice::new(bytes)], Outgoing::default()).unwrap();
    pair.settle();
}

/// What comes next, into pieces of these sizes.
fn receive(
    sessions: &mut Sessions,
    rooms: &[usize],
    incoming: Incoming,
) -> Result<(Vec<u8>, Shape), Errno> {
    let mut pieces: Vec<Vec<u8>> = rooms.iter().map(|room| vec![0; *room]).collect();
    let mut targets: Vec<_> = pieces.iter_mut().map(|piece| IoSliceMut::new(piece)).collect();
    let received = sessions.recv(B, &mut targets, incoming)?;
    let mut bytes = pieces.concat();
    bytes.truncate(received.bytes);
    Ok((bytes, received.shape.unwrap()))
}

fn set(sessions: &mut Sessions, name: i32, value: i32) -> Result<(), Errno> {
    sessions.set_option(B, 1, name, &value.to_ne_bytes())
}

#[test]
fn a_datagram_says_when_it_came() {
    let mut pair = pair();
    send(&mut pair, b"one");
    let first = pair.now;
    pair.now += 5_000_000;
    send(&mut pair, b"two");
    let second = pair.now;
    assert!(first < second);
    for at in [first, second] {
        let (_, shape) = receive(pair.server(), &[10], Incoming::default()).unwrap();
        assert_eq!(shape.at, at);
    }
}

#[test]
fn the_last_of_the_stamps_that_was_set_counts() {
    let mut pair = pair();
    let server = pair.server();
    let stamps = |server: &mut Sessions| server.wanted(B).unwrap().stamps;
    let all = [STAMP, STAMP_NANOS, STAMP_NEW, STAMP_NANOS_NEW];
    let told = |server: &mut Sessions| {
        all.map(|name| server.option(B, 1, name, 4).unwrap()[..] == 1i32.to_ne_bytes())
    };
    assert_eq!((stamps(server), told(server)), (Stamps::default(), [false; 4]));
    for (name, micros, nanos, new, expected) in [
        (STAMP, true, false, false, [true, false, false, false]),
        (STAMP_NANOS, false, true, false, [false, true, false, false]),
        (STAMP_NEW, true, false, true, [false, false, true, false]),
        (STAMP_NANOS_NEW, false, true, true, [false, false, true, true]),
    ] {
        set(server, name, 7).unwrap();
        assert_eq!(stamps(server), Stamps { micros, nanos, three: false, new });
        assert_eq!(told(server), expected, "{name}");
    }
    set(server, STAMP, 0).unwrap();
    assert_eq!(told(server), [false; 4]);
    assert!(!stamps(server).micros && !stamps(server).nanos);
}

#[test]
fn stamps_of_software_are_asked_for_by_bits() {
    let mut pair = pair();
    let server = pair.server();
    let bits = |server: &mut Sessions, name| {
        let value = server.option(B, 1, name, 8).unwrap();
        i32::from_ne_bytes(value[..4].try_into().unwrap())
    };
    // Receiving by software; reporting.
    for (value, three) in [(1 << 3, false), (1 << 4, false), (1 << 3 | 1 << 4, true), (0, false)] {
        set(server, STAMPING, value).unwrap();
        assert_eq!(server.wanted(B).unwrap().stamps.three, three, "{value:#x}");
        assert_eq!((bits(server, STAMPING), bits(server, STAMPING_NEW)), (value, 0));
    }
    set(server, STAMPING_NEW, 1 << 3 | 1 << 4).unwrap();
    assert!(server.wanted(B).unwrap().stamps.new);
    assert_eq!((bits(server, STAMPING), bits(server, STAMPING_NEW)), (24, 24));
    for wrong in [1 << 19, -1, 1 << 12, 1 << 16, 1 << 15] {
        assert_eq!(set(server, STAMPING, wrong), Err(Errno::INVAL), "{wrong:#x}");
    }
    assert_eq!(bits(server, STAMPING), 24);
}

#[test]
fn datagrams_alike_are_received_together() {
    let mut pair = pair();
    let gather = |server: &mut Sessions, on: i32| {
        server.set_option(B, 17, 104, &on.to_ne_bytes()).unwrap();
        assert_eq!(server.option(B, 17, 104, 4).unwrap()[..], on.to_ne_bytes());
    };
    gather(pair.server(), 1);
    for data in [&b"aaaa"[..], b"bbbb", b"cc", b"dddd", b"eeee", b"f"] {
        send(&mut pair, data);
    }
    let server = pair.server();
    let mut next = |rooms: &[usize], incoming| {
        let (bytes, shape) = receive(server, rooms, incoming).unwrap();
        (bytes, shape.length, shape.segment_size)
    };
    let peek = Incoming { peek: true, ..Incoming::default() };
    assert_eq!(next(&[100], peek), (b"aaaa".to_vec(), 4, 0), "one, as FIONREAD says");
    assert_eq!(next(&[3, 100], Incoming::default()), (b"aaaabbbbcc".to_vec(), 10, 4));
    // As many as fit whole, and one alone as always.
    assert_eq!(next(&[7], Incoming::default()), (b"dddd".to_vec(), 4, 0));
    assert_eq!(next(&[2], Incoming::default()), (b"ee".to_vec(), 4, 0));
    gather(pair.server(), 0);
    send(&mut pair, b"g");
    for data in [b"f", b"g"] {
        let (bytes, shape) = receive(pair.server(), &[100], Incoming::default()).unwrap();
        assert_eq!((&bytes[..], shape.segment_size), (&data[..], 0));
    }
}
