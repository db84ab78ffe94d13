//! Datagrams that no link takes whole. What is expected was read from Linux 6.18.

use std::io::IoSlice;
use std::net::IpAddr;

use millrace_host::{Domain, Errno, Id, Kind, Outgoing, Sessions};

use crate::pair::{Pair, at, recv, v4, v6};

const A: Id = Id(1);
const B: Id = Id(2);

/// `IP_MTU_DISCOVER`, `IP_MTU`, `IPV6_MTU_DISCOVER`, `IPV6_DONTFRAG`, `UDP_SEGMENT`, `SO_SNDBUF`, `SO_RCVBUF`.
const MTU_DISCOVER: (i32, i32) = (0, 10);
const MTU: (i32, i32) = (0, 14);
const MTU_DISCOVER_V6: (i32, i32) = (41, 23);
const DONT_FRAGMENT_V6: (i32, i32) = (41, 62);
const SEGMENT: (i32, i32) = (17, 103);
const SEND_BUFFER: (i32, i32) = (1, 7);
const RECEIVE_BUFFER: (i32, i32) = (1, 8);

fn set(sessions: &mut Sessions, (level, name): (i32, i32), value: i32) {
    sessions.set_option(A, level, name, &value.to_ne_bytes()).unwrap();
}

/// A connected client, and a server.
fn pair(of: fn(usize) -> IpAddr) -> Pair {
    let mut pair = Pair::default();
    let domain = if of(0).is_ipv4() { Domain::V4 } else { Domain::V6 };
    pair.server().open(B, domain, Kind::Datagram).unwrap();
    pair.server().bind(B, at(of(1), 53)).unwrap();
    let client = pair.client();
    client.open(A, domain, Kind::Datagram).unwrap();
    client.connect(A, 0, of(0), at(of(1), 53)).unwrap();
    pair
}

fn send(sessions: &mut Sessions, length: usize) -> Result<usize, Errno> {
    let data: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
    sessions.send(A, &[IoSlice::new(&data)], Outgoing::default())
}

/// The packets that the client has sent.
fn packets(pair: &mut Pair) -> Vec<Vec<u8>> {
    let now = pair.now;
    let host = &mut pair.hosts[0];
    host.sessions.turn(now, &mut host.out);
    std::mem::take(&mut host.out.packets)
}

fn may_be_cut(packet: &[u8]) -> bool {
    packet[6] & 0x40 == 0
}

#[test]
fn long_ones_may_be_cut_and_come_whole() {
    let mut pair = pair(v4);
    let client = pair.client();
    assert_eq!((send(client, 65_507), send(client, 65_508)), (Ok(65_507), Err(Errno::MSGSIZE)));
    pair.settle();
    // The first in an empty queue is taken whatever SO_RCVBUF says.
    let got = recv(pair.server(), B, 70_000).unwrap();
    assert!(got.len() == 65_507 && got[65_506] == (65_506 * 7_usize) as u8);
    for (how, length, cut) in
        [(1, 1472, false), (1, 1473, true), (0, 1472, true), (5, 10, true), (2, 1472, false)]
    {
        set(pair.client(), MTU_DISCOVER, how);
        assert_eq!(send(pair.client(), length), Ok(length));
        let sent = packets(&mut pair);
        assert_eq!((sent.len(), may_be_cut(&sent[0])), (1, cut), "{how}, {length}");
    }
    assert_eq!(send(pair.client(), 1473), Err(Errno::MSGSIZE));
}

#[test]
fn the_path_says_how_much_goes_whole() {
    let mut pair = pair(v4);
    let client = pair.client();
    let mtu = |client: &mut Sessions| client.option(A, MTU.0, MTU.1, 4).unwrap().to_vec();
    assert_eq!(mtu(client), 1500i32.to_ne_bytes());
    client.note_first_link(v4(1), 1300);
    assert_eq!(mtu(client), 1300i32.to_ne_bytes());
    for (how, length, sent) in [
        (1, 1273, Ok(1273)),
        (2, 1272, Ok(1272)),
        (2, 1273, Err(Errno::MSGSIZE)),
        (3, 1472, Ok(1472)),
        (3, 1473, Err(Errno::MSGSIZE)),
    ] {
        set(client, MTU_DISCOVER, how);
        assert_eq!(send(client, length), sent, "{how}");
    }
}

/// Whether a packet over IPv6 says that it is to be cut: a fragment header, of a packet that is whole.
fn is_to_be_cut(packet: &[u8]) -> bool {
    packet[6] == 44 && packet[40..44] == [17, 0, 0, 0]
}

#[test]
fn over_ipv6_the_first_router_cuts() {
    let mut pair = pair(v6);
    for (mtu, how, length, cut) in [
        (1500, 1, 1452, false),
        (1500, 1, 1453, true),
        (1500, 0, 1453, true),
        (1500, 5, 1453, true),
        (1500, 1, 65_479, true),
        (1280, 1, 1232, false),
        (1280, 1, 1233, true),
        (1280, 0, 1233, true),
    ] {
        let client = pair.client();
        client.note_first_link(v6(1), mtu);
        set(client, MTU_DISCOVER_V6, how);
        assert_eq!(send(client, length), Ok(length));
        let sent = packets(&mut pair);
        assert_eq!((sent.len(), is_to_be_cut(&sent[0])), (1, cut), "{how}, {length}");
        assert_eq!(sent[0].len(), length + if cut { 56 } else { 48 });
        assert_eq!(usize::from(u16::from_be_bytes([sent[0][4], sent[0][5]])), sent[0].len() - 40);
    }
    // What no packet holds.
    assert_eq!(send(pair.client(), 65_480), Err(Errno::MSGSIZE));
}

#[test]
fn over_ipv6_who_forbids_it_is_refused() {
    let mut pair = pair(v6);
    let client = pair.client();
    client.note_first_link(v6(1), 1280);
    set(client, DONT_FRAGMENT_V6, 1);
    assert_eq!((send(client, 1232), send(client, 1233)), (Ok(1232), Err(Errno::MSGSIZE)));
    set(client, DONT_FRAGMENT_V6, 0);
    set(client, MTU_DISCOVER_V6, 2);
    assert_eq!((send(client, 1232), send(client, 1233)), (Ok(1232), Err(Errno::MSGSIZE)));
    set(client, MTU_DISCOVER_V6, 3);
    assert_eq!((send(client, 1452), send(client, 1453)), (Ok(1452), Err(Errno::MSGSIZE)));
}

#[test]
fn fragments_have_to_fit_twice_the_buffer() {
    let mut pair = pair(v4);
    let client = pair.client();
    // Twice as much is told, and taken.
    set(client, SEND_BUFFER, 2304);
    assert_eq!(send(client, 60_000), Err(Errno::NOBUFS));
    assert_eq!(send(client, 1472), Ok(1472));
    set(client, SEND_BUFFER, 100_000);
    assert_eq!(send(client, 60_000), Ok(60_000));
    assert_eq!(send(client, 60_000), Ok(60_000));
}

#[test]
fn segments_go_whole_and_not_too_many() {
    let mut pair = pair(v4);
    let client = pair.client();
    set(client, SEGMENT, 1473);
    assert_eq!(send(client, 3000), Err(Errno::MSGSIZE));
    set(client, SEGMENT, 1472);
    assert_eq!(send(client, 3000), Ok(3000));
    assert_eq!(packets(&mut pair).iter().map(Vec::len).collect::<Vec<_>>(), [1500, 1500, 84]);
    let client = pair.client();
    set(client, SEGMENT, 10);
    assert_eq!((send(client, 1281), send(client, 1280)), (Err(Errno::INVAL), Ok(1280)));
}

#[test]
fn a_small_buffer_takes_one_long_datagram_at_a_time() {
    let mut pair = pair(v4);
    pair.server().set_option(B, RECEIVE_BUFFER.0, RECEIVE_BUFFER.1, &1i32.to_ne_bytes()).unwrap();
    for _ in 0..2 {
        for _ in 0..3 {
            send(pair.client(), 30_000).unwrap();
        }
        pair.settle();
        assert_eq!(recv(pair.server(), B, 40_000).map(|got| got.len()), Ok(30_000));
        assert_eq!(recv(pair.server(), B, 40_000), Err(Errno::AGAIN));
    }
}
