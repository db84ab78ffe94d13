//! Listening and accepting.

use std::net::SocketAddr;

use millrace_host::{Domain, Errno, How, Id, Kind, Mask};
use transport::{Departure, Packet, PacketList, Sink};

use crate::pair::{
    CLIENT, Claims, LISTENER, OVER, Pair, SERVER, at, poll, recv, reset, send, v4, v6,
};

#[test]
fn a_listener_is_no_connection() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    let now = pair.now;
    let server = pair.server();
    assert_eq!(poll(server, LISTENER), Mask::NONE);
    assert_eq!(recv(server, LISTENER, 1), Err(Errno::NOTCONN));
    assert_eq!(send(server, LISTENER, b"x"), Err(Errno::PIPE));
    assert_eq!(server.connect(LISTENER, now, v4(1), at(v4(0), 1)), Err(Errno::ISCONN));
    assert_eq!(server.accept(LISTENER, SERVER), Err(Errno::AGAIN));
    assert_eq!(server.pending(LISTENER), Err(Errno::INVAL));
    assert_eq!(server.listen(LISTENER, 3), Ok(()), "twice, as nginx does");
    assert_eq!(server.shutdown(LISTENER, How::Write), Ok(()));
    assert_eq!(poll(server, LISTENER), Mask::NONE);
    assert_eq!(server.shutdown(LISTENER, How::Read), Ok(()));
    assert_eq!(poll(server, LISTENER), Mask::OUT | Mask::HUP);
    assert_eq!(server.accept(LISTENER, SERVER), Err(Errno::INVAL));
    assert_eq!(server.name(LISTENER), Ok(at(v4(1), 80)), "still bound");
    assert_eq!(server.listen(LISTENER, 3), Ok(()));
    assert_eq!(server.bind(LISTENER, at(v4(1), 81)), Err(Errno::INVAL));
    server.open(Id(20), Domain::V4, Kind::Stream).unwrap();
    assert_eq!(server.bind(Id(20), at(v4(1), 80)), Err(Errno::ADDRINUSE));
    pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
    pair.settle();
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT, "it listens again");
}

#[test]
fn one_more_than_the_backlog_waits() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    pair.server().listen(LISTENER, 2).unwrap();
    pair.quiet();
    for number in 0..6 {
        pair.connect(Id(100 + number), at(v4(1), 80)).unwrap_err();
    }
    pair.settle();
    let ready = pair.server().next_ready().unwrap();
    assert_eq!((ready.id, ready.woken.has(Mask::IN)), (LISTENER, true));
    assert_eq!(poll(pair.server(), LISTENER), Mask::IN);
    let mut accepted = 0;
    while pair.server().accept(LISTENER, Id(200 + accepted)).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, 3);
    assert_eq!(pair.server().accept(LISTENER, Id(200)), Err(Errno::EXIST));
    assert_eq!(pair.server().accept(Id(200), Id(300)), Err(Errno::INVAL));
}

#[test]
fn what_was_reset_while_it_waited_is_accepted() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
    pair.settle();
    send(pair.client(), CLIENT, b"q").unwrap();
    pair.settle();
    reset(pair.client(), CLIENT);
    pair.settle();
    assert_eq!(poll(pair.server(), LISTENER), Mask::IN);
    pair.server().accept(LISTENER, SERVER).unwrap();
    let server = pair.server();
    assert_eq!(poll(server, SERVER), OVER | Mask::ERR);
    assert_eq!(recv(server, SERVER, 10).unwrap(), b"q");
    assert_eq!(recv(server, SERVER, 10), Err(Errno::CONNRESET));
    assert_eq!(recv(server, SERVER, 10).unwrap(), b"");
    assert_eq!(server.peer(SERVER), Err(Errno::NOTCONN));
}

#[test]
fn a_listener_of_both_versions_tells_mapped_addresses() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, "[::]:80".parse().unwrap());
    // Packets of each version say what was set for it.
    pair.server().set_option(LISTENER, 0, 1, &0x28i32.to_ne_bytes()).unwrap();
    pair.server().set_option(LISTENER, 41, 67, &0x48i32.to_ne_bytes()).unwrap();
    for (number, ip) in [(0, v4(1)), (1, v6(1))] {
        pair.connect(Id(100 + number), at(ip, 80)).unwrap_err();
        pair.settle();
        let (local, remote) = pair.server().accept(LISTENER, Id(200 + number)).unwrap();
        assert!(local.is_ipv6() && remote.is_ipv6());
        assert_eq!((local.ip().to_canonical(), local.port()), (ip, 80));
        assert_eq!(pair.server().peer(Id(200 + number)), Ok(remote));
        assert_eq!(pair.server().name(Id(200 + number)), Ok(local));
        send(pair.server(), Id(200 + number), b"x").unwrap();
        let now = pair.now;
        let host = &mut pair.hosts[1];
        host.sessions.turn(now, &mut host.out);
        let packet = host.out.packets.last().unwrap();
        let service = if ip.is_ipv4() { packet[1] } else { packet[0] << 4 | packet[1] >> 4 };
        assert_eq!(service, if ip.is_ipv4() { 0x28 } else { 0x48 });
    }
    let mut pair = Pair::default();
    let server = pair.server();
    server.open(LISTENER, Domain::V6, Kind::Stream).unwrap();
    server.set_option(LISTENER, 41, 26, &1i32.to_ne_bytes()).unwrap();
    server.bind(LISTENER, "[::]:80".parse().unwrap()).unwrap();
    server.listen(LISTENER, 5).unwrap();
    // Another may have IPv4 then.
    pair.listen(Id(30), "0.0.0.0:80".parse().unwrap());
    pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
    pair.settle();
    assert_eq!(pair.server().accept(LISTENER, SERVER), Err(Errno::AGAIN));
    assert!(pair.server().accept(Id(30), SERVER).is_ok());
}

/// Keeps what is sent, and sees whether the flow was claimed when the first packet came.
struct Watch<'a> {
    claims: &'a Claims,
    flow: [SocketAddr; 2],
    out: PacketList,
    claimed: Option<bool>,
}

impl Sink for Watch<'_> {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.out.buffer(length)
    }

    fn send(&mut self, departure: Departure) {
        let [local, remote] = self.flow;
        self.out.send(departure);
        self.claimed.get_or_insert_with(|| self.claims.has(local, remote));
    }
}

#[test]
fn a_flow_is_claimed_before_its_syn_is_answered() {
    let mut pair = Pair::default();
    let claims = Claims::of(pair.server());
    pair.listen(LISTENER, at(v4(1), 80));
    pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
    let (now, server, client) = (pair.now, at(v4(1), 80), pair.client().name(CLIENT).unwrap());
    let host = &mut pair.hosts[0];
    host.sessions.turn(now, &mut host.out);
    let syn = host.out.packets.pop().unwrap();
    let mut watch = Watch {
        claims: &claims,
        flow: [server, client],
        out: PacketList::default(),
        claimed: None,
    };
    pair.server().input(now, &[Packet::new(&syn)], &mut watch);
    pair.server().turn(now, &mut watch);
    let Watch { claimed, out, .. } = watch;
    assert_eq!(claimed, Some(true));
    pair.hosts[1].out = out;
    // The listener goes before the handshake is over: so does the flow.
    pair.server().close(LISTENER);
    assert!(claims.has(server, client));
    pair.settle();
    assert!(!claims.has(server, client));
    assert_eq!(poll(pair.client(), CLIENT), OVER | Mask::ERR);
}

#[test]
fn closing_a_listener_resets_who_waits() {
    let mut pair = Pair::default();
    let claims = Claims::of(pair.server());
    pair.listen(LISTENER, at(v4(1), 80));
    pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
    pair.settle();
    let client = pair.client().name(CLIENT).unwrap();
    assert!(claims.has(at(v4(1), 80), client));
    pair.server().close(LISTENER);
    pair.settle();
    assert_eq!(poll(pair.client(), CLIENT), OVER | Mask::ERR);
    assert!(!claims.has(at(v4(1), 80), client));
}
