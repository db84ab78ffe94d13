//! Datagrams. What is expected was read from Linux 6.18.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;

use millrace_host::{Domain, Errno, How, Id, Incoming, Kind, Mask, Outgoing, Sessions};

use crate::pair::{Pair, at, error, poll, recv, recv_with, send, v4, v6};

const A: Id = Id(1);
const B: Id = Id(2);

fn open(sessions: &mut Sessions, id: Id) {
    sessions.open(id, Domain::V4, Kind::Datagram).unwrap();
}

fn send_to(sessions: &mut Sessions, id: Id, bytes: &[u8], to: SocketAddr) -> Result<usize, Errno> {
    let source = if to.ip().to_canonical().is_ipv4() { v4(0) } else { v6(0) };
    let outgoing = Outgoing { to: Some(to), source: Some(source), ..Outgoing::default() };
    sessions.send(id, &[IoSlice::new(bytes)], outgoing)
}

#[test]
fn a_fresh_one_sends_to_nobody_and_hears_nothing() {
    let mut pair = Pair::default();
    let client = pair.client();
    open(client, A);
    assert_eq!(poll(client, A), Mask::OUT);
    assert_eq!(recv(client, A, 1), Err(Errno::AGAIN));
    assert_eq!(send(client, A, b"x"), Err(Errno::DESTADDRREQ));
    assert_eq!(client.listen(A, 1), Err(Errno::OPNOTSUPP));
    assert_eq!(client.accept(A, B), Err(Errno::OPNOTSUPP));
    assert_eq!(client.shutdown(A, How::Both), Err(Errno::NOTCONN));
    assert_eq!(poll(client, A), Mask::IN | Mask::OUT | Mask::HUP | Mask::RDHUP);
    assert_eq!(recv(client, A, 1), Err(Errno::AGAIN));
    assert_eq!(send_to(client, A, b"x", at(v4(1), 9)), Err(Errno::PIPE));
}

#[test]
fn datagrams_keep_their_borders() {
    let mut pair = Pair::default();
    open(pair.server(), A);
    pair.server().bind(A, at([0, 0, 0, 0].into(), 53)).unwrap();
    assert_eq!(pair.server().bind(A, at(v4(1), 54)), Err(Errno::INVAL));
    open(pair.client(), B);
    for data in [&b"hello"[..], b"", b"third"] {
        assert_eq!(send_to(pair.client(), B, data, at(v4(1), 53)), Ok(data.len()));
    }
    pair.settle();
    let from = at(v4(0), pair.client().name(B).unwrap().port());
    let server = pair.server();
    let ready = server.next_ready().unwrap();
    assert_eq!((ready.id, ready.woken.has(Mask::IN)), (A, true));
    assert_eq!(server.pending(A), Ok(5));
    let peek = Incoming { peek: true, ..Incoming::default() };
    assert_eq!(recv_with(server, A, 2, peek).unwrap(), b"he");
    let (mut one, mut two) = ([0; 1], [0; 2]);
    let targets = &mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
    let received = server.recv(A, targets, Incoming::default()).unwrap();
    let shape = received.shape.unwrap();
    assert_eq!((received.bytes, shape.length, shape.from), (3, 5, from));
    assert_eq!((shape.to, shape.ttl, &one, &two), (at(v4(1), 53), 64, b"h", b"el"));
    assert_eq!(recv(server, A, 3).unwrap(), b"");
    assert_eq!(poll(server, A), Mask::IN | Mask::OUT);
    assert_eq!(recv(server, A, 9).unwrap(), b"third");
    assert_eq!(recv(server, A, 9), Err(Errno::AGAIN));
}

#[test]
fn errors_of_the_network_come_back_to_who_is_connected() {
    let mut pair = Pair::default();
    open(pair.client(), A);
    assert_eq!(pair.client().connect(A, 0, v4(0), at(v4(1), 81)), Ok(()));
    assert_eq!(send(pair.client(), A, b"x"), Ok(1));
    pair.settle();
    assert_eq!(poll(pair.client(), A), Mask::OUT | Mask::ERR);
    assert_eq!(send(pair.client(), A, b"x"), Err(Errno::CONNREFUSED));
    assert_eq!(recv(pair.client(), A, 1), Err(Errno::AGAIN));
    assert_eq!(poll(pair.client(), A), Mask::OUT);
    send(pair.client(), A, b"x").unwrap();
    pair.settle();
    assert_eq!(recv(pair.client(), A, 1), Err(Errno::CONNREFUSED));
    send(pair.client(), A, b"x").unwrap();
    pair.settle();
    assert_eq!(error(pair.client(), A), Errno::CONNREFUSED);
    let client = pair.client();
    assert_eq!(client.peer(A), Ok(at(v4(1), 81)));
    assert_eq!(client.name(A).unwrap().ip(), v4(0));
    client.disconnect(A).unwrap();
    assert_eq!(client.name(A), Ok("0.0.0.0:0".parse().unwrap()));
    assert_eq!(client.peer(A), Err(Errno::NOTCONN));
    assert_eq!(client.shutdown(A, How::Write), Err(Errno::NOTCONN));
    // Who is not connected is told nothing.
    open(pair.client(), B);
    send_to(pair.client(), B, b"x", at(v4(1), 81)).unwrap();
    pair.settle();
    assert_eq!(poll(pair.client(), B), Mask::OUT);
}

#[test]
fn a_connected_one_shuts_its_directions() {
    let mut pair = Pair::default();
    let client = pair.client();
    open(client, A);
    client.bind(A, at([0, 0, 0, 0].into(), 4000)).unwrap();
    client.connect(A, 0, v4(0), at(v4(1), 81)).unwrap();
    assert_eq!(client.shutdown(A, How::Write), Ok(()));
    assert_eq!((poll(client, A), send(client, A, b"x")), (Mask::OUT, Err(Errno::PIPE)));
    assert_eq!(client.shutdown(A, How::Read), Ok(()));
    assert_eq!(poll(client, A), Mask::IN | Mask::OUT | Mask::HUP | Mask::RDHUP);
    client.disconnect(A).unwrap();
    assert_eq!(client.name(A), Ok("0.0.0.0:4000".parse().unwrap()));
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut pair = Pair::default();
    let client = pair.client();
    open(client, A);
    let to = at(v4(1), 9);
    let all = at([255, 255, 255, 255].into(), 9);
    assert_eq!(send_to(client, A, b"x", all), Err(Errno::ACCES));
    client.set_option(A, 1, 6, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(send_to(client, A, b"x", all), Ok(1));
    assert_eq!(send_to(client, A, &[0; 70_000], to), Err(Errno::MSGSIZE));
    assert_eq!(send_to(client, A, &[0; 65_508], to), Err(Errno::MSGSIZE));
    assert_eq!(send_to(client, A, &[0; 65_507], to), Ok(65_507));
    assert_eq!(send_to(client, A, b"x", at(v4(1), 0)), Err(Errno::INVAL));
    assert_eq!(send_to(client, A, b"x", at(v6(1), 9)), Err(Errno::AFNOSUPPORT));
    let nowhere = Outgoing { to: Some(to), ..Outgoing::default() };
    assert_eq!(client.send(A, &[IoSlice::new(b"x")], nowhere), Err(Errno::NETUNREACH));
    // Whole packets only: what the path does not take is refused.
    client.set_option(A, 0, 10, &2i32.to_ne_bytes()).unwrap();
    assert_eq!(send_to(client, A, &[0; 1473], to), Err(Errno::MSGSIZE));
    assert_eq!(send_to(client, A, &[0; 1472], to), Ok(1472));
}

#[test]
fn a_full_buffer_says_so_and_when_there_is_room_again() {
    let mut pair = Pair::default();
    open(pair.client(), A);
    let to = at(v4(1), 9);
    let mut sent = 0;
    while send_to(pair.client(), A, &[7; 1000], to).is_ok() {
        sent += 1;
    }
    assert!((100..1000).contains(&sent), "{sent}");
    assert_eq!(send_to(pair.client(), A, b"x", to), Err(Errno::AGAIN));
    assert_eq!(poll(pair.client(), A), Mask::NONE);
    assert!(pair.client().wants_turn());
    pair.quiet();
    let now = pair.now;
    let host = &mut pair.hosts[0];
    host.sessions.turn(now, &mut host.out);
    assert_eq!(host.out.packets.len(), sent);
    let ready = host.sessions.next_ready().unwrap();
    assert_eq!((ready.id, ready.woken.has(Mask::OUT)), (A, true));
    assert!(!host.sessions.wants_turn());
}

#[test]
fn one_socket_for_both_versions() {
    let mut pair = Pair::default();
    let any: SocketAddr = "[::]:53".parse().unwrap();
    pair.server().open(A, Domain::V6, Kind::Datagram).unwrap();
    pair.server().bind(A, any).unwrap();
    pair.client().open(B, Domain::V6, Kind::Datagram).unwrap();
    let mapped: SocketAddr = "[::ffff:10.0.0.2]:53".parse().unwrap();
    for to in [mapped, at(v6(1), 53)] {
        assert_eq!(send_to(pair.client(), B, b"hi", to), Ok(2));
        pair.settle();
        let mut bytes = [0; 9];
        let targets = &mut [IoSliceMut::new(&mut bytes)];
        let shape = pair.server().recv(A, targets, Incoming::default()).unwrap().shape.unwrap();
        assert_eq!(shape.to, to);
        assert!(shape.from.is_ipv6());
    }
    assert_eq!(pair.client().name(B).unwrap().ip(), any.ip());
    let client = pair.client();
    client.open(A, Domain::V6, Kind::Datagram).unwrap();
    client.set_option(A, 41, 26, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(send_to(client, A, b"hi", mapped), Err(Errno::NETUNREACH));
    assert_eq!(client.connect(A, 0, v4(0), mapped), Err(Errno::NETUNREACH));
}

#[test]
fn a_connect_to_port_0_only_chooses_the_source() {
    let mut pair = Pair::default();
    let client = pair.client();
    open(client, A);
    assert_eq!(client.connect(A, 0, v4(0), at(v4(1), 0)), Ok(()));
    assert_eq!(client.name(A).unwrap().ip(), v4(0));
    assert_eq!(client.peer(A), Err(Errno::NOTCONN));
}

#[test]
fn pieces_become_one_datagram() {
    let mut pair = Pair::default();
    open(pair.server(), A);
    pair.server().bind(A, at(v4(1), 53)).unwrap();
    open(pair.client(), B);
    let more = Outgoing {
        to: Some(at(v4(1), 53)),
        source: Some(v4(0)),
        more: true,
        ..Outgoing::default()
    };
    let client = pair.client();
    assert_eq!(client.send(B, &[IoSlice::new(b"one ")], more), Ok(4));
    // The address of the first piece counts.
    let other = Outgoing { to: Some(at(v4(1), 99)), ..more };
    assert_eq!(client.send(B, &[IoSlice::new(b"two ")], other), Ok(4));
    assert_eq!(client.send(B, &[IoSlice::new(&[0; 65_500])], more), Err(Errno::MSGSIZE));
    assert!(!client.wants_turn());
    assert_eq!(send(client, B, b"three"), Ok(5));
    pair.settle();
    assert_eq!(recv(pair.server(), A, 99).unwrap(), b"one two three");
    let client = pair.client();
    client.set_option(B, 17, 1, &1i32.to_ne_bytes()).unwrap();
    send_to(client, B, b"a", at(v4(1), 53)).unwrap();
    send_to(client, B, b"b", at(v4(1), 53)).unwrap();
    assert!(!client.wants_turn());
    client.set_option(B, 17, 1, &0i32.to_ne_bytes()).unwrap();
    pair.settle();
    assert_eq!(recv(pair.server(), A, 99).unwrap(), b"ab");
    assert_eq!(recv(pair.server(), A, 99), Err(Errno::AGAIN));
}

#[test]
fn one_datagram_may_have_its_own_service_and_large_ones_are_cut() {
    let mut pair = Pair::default();
    open(pair.server(), A);
    pair.server().bind(A, at(v4(1), 53)).unwrap();
    let client = pair.client();
    open(client, B);
    client.set_option(B, 0, 1, &0x20i32.to_ne_bytes()).unwrap();
    let to = Some(at(v4(1), 53));
    let plain = Outgoing { to, source: Some(v4(0)), ..Outgoing::default() };
    for service in [None, Some(0xb9), None] {
        client.send(B, &[IoSlice::new(b"x")], Outgoing { service, ..plain }).unwrap();
    }
    client.set_option(B, 17, 103, &4i32.to_ne_bytes()).unwrap();
    client.send(B, &[IoSlice::new(b"abcdefghij")], plain).unwrap();
    pair.settle();
    let mut next = || {
        let mut bytes = [0; 9];
        let targets = &mut [IoSliceMut::new(&mut bytes)];
        let received = pair.server().recv(A, targets, Incoming::default()).unwrap();
        (received.shape.unwrap().service, bytes[..received.bytes].to_vec())
    };
    assert_eq!([next().0, next().0, next().0], [0x20, 0xb9, 0x20]);
    let cut = [b"abcd".to_vec(), b"efgh".to_vec(), b"ij".to_vec()];
    assert_eq!([next().1, next().1, next().1], cut);
}

#[test]
fn many_that_are_not_bound_connect_to_one_peer() {
    let mut pair = Pair::default();
    let client = pair.client();
    let mut ports = Vec::new();
    for number in 1..=64 {
        let id = Id(number);
        open(client, id);
        client.connect(id, 0, v4(0), at(v4(1), 53)).unwrap();
        ports.push(client.name(id).unwrap().port());
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 64, "each has a port of its own");
}
