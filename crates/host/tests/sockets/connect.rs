//! Connecting, and what comes instead of a connection. What is expected was read from Linux 6.18.

use std::io::IoSlice;

use millrace_host::{Domain, Errno, How, Id, Kind, Mask, Outgoing};

use crate::pair::{
    CLIENT, LISTENER, OVER, Pair, SERVER, at, error, poll, recv, reset, send, v4, v6,
};

#[test]
fn a_fresh_socket_is_not_connected() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    assert_eq!(poll(client, CLIENT), Mask::OUT | Mask::HUP);
    assert_eq!(recv(client, CLIENT, 1), Err(Errno::NOTCONN));
    assert_eq!(send(client, CLIENT, b"x"), Err(Errno::PIPE));
    assert_eq!(client.peer(CLIENT), Err(Errno::NOTCONN));
    assert_eq!(client.name(CLIENT), Ok("0.0.0.0:0".parse().unwrap()));
    assert_eq!(client.accept(CLIENT, Id(9)), Err(Errno::INVAL));
    assert_eq!(client.listen(CLIENT, 1), Err(Errno::INVAL));
    assert_eq!(client.shutdown(CLIENT, How::Both), Err(Errno::NOTCONN));
    assert_eq!(poll(client, CLIENT), OVER);
    assert_eq!(recv(client, CLIENT, 1).unwrap(), b"");
    assert_eq!(client.open(CLIENT, Domain::V4, Kind::Stream), Err(Errno::EXIST));
    assert_eq!(recv(client, Id(77), 1), Err(Errno::BADF));
}

#[test]
fn connecting_is_told_step_by_step() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::ALREADY));
    assert_eq!(poll(pair.client(), CLIENT), Mask::NONE);
    assert_eq!(recv(pair.client(), CLIENT, 1), Err(Errno::AGAIN));
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::AGAIN));
    assert_eq!(pair.client().peer(CLIENT), Err(Errno::NOTCONN));
    pair.quiet();
    pair.settle();
    let ready = pair.client().next_ready().unwrap();
    assert_eq!((ready.id, ready.woken), (CLIENT, Mask::ALL));
    assert_eq!(pair.client().next_ready(), None);
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT);
    assert_eq!(error(pair.client(), CLIENT), Errno(0));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::ISCONN));
    let port = pair.client().name(CLIENT).unwrap().port();
    assert!((10_240..10_496).contains(&port));
}

/// A socket whose connect was refused.
fn refused() -> Pair {
    let mut pair = Pair::default();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 81)), Err(Errno::INPROGRESS));
    pair.settle();
    assert_eq!(poll(pair.client(), CLIENT), OVER | Mask::ERR);
    pair
}

#[test]
fn a_refusal_is_told_once_by_whoever_asks_first() {
    let mut pair = refused();
    assert_eq!(error(pair.client(), CLIENT), Errno::CONNREFUSED);
    assert_eq!(poll(pair.client(), CLIENT), OVER);
    assert_eq!(error(pair.client(), CLIENT), Errno(0));
    assert_eq!(recv(pair.client(), CLIENT, 1).unwrap(), b"");
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::PIPE));
    let port = pair.client().name(CLIENT).unwrap().port();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 81)), Err(Errno::CONNABORTED));
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT | Mask::HUP);
    assert_eq!(pair.client().name(CLIENT), Ok(at([0, 0, 0, 0].into(), port)));
    assert_eq!(recv(pair.client(), CLIENT, 1), Err(Errno::NOTCONN));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 81)), Err(Errno::INPROGRESS));

    let mut pair = refused();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 81)), Err(Errno::CONNREFUSED));
    assert_eq!(error(pair.client(), CLIENT), Errno(0));
    pair.listen(LISTENER, at(v4(1), 81));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 81)), Err(Errno::INPROGRESS));
    pair.settle();
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT, "it can be used again");

    let mut pair = refused();
    assert_eq!(recv(pair.client(), CLIENT, 1), Err(Errno::CONNREFUSED));
    assert_eq!(recv(pair.client(), CLIENT, 1).unwrap(), b"");
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::PIPE));
    assert_eq!(pair.client().shutdown(CLIENT, How::Both), Err(Errno::NOTCONN));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 81)), Err(Errno::INVAL));

    let mut pair = refused();
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::CONNREFUSED));
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::PIPE));
}

#[test]
fn a_reset_is_told_after_the_data_before_it() {
    let mut pair = Pair::connected();
    send(pair.server(), SERVER, b"abc").unwrap();
    pair.settle();
    reset(pair.server(), SERVER);
    pair.settle();
    let client = pair.client();
    assert_eq!(poll(client, CLIENT), OVER | Mask::ERR);
    assert_eq!(recv(client, CLIENT, 10).unwrap(), b"abc");
    assert_eq!(recv(client, CLIENT, 0), Err(Errno::CONNRESET), "even when nothing is asked for");
    assert_eq!(recv(client, CLIENT, 10).unwrap(), b"");
    assert_eq!(poll(client, CLIENT), OVER);
    assert_eq!(send(client, CLIENT, b"x"), Err(Errno::PIPE));
    assert_eq!(client.peer(CLIENT), Err(Errno::NOTCONN));
    assert_eq!(client.shutdown(CLIENT, How::Write), Err(Errno::NOTCONN));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INVAL));

    let mut pair = Pair::connected();
    send(pair.server(), SERVER, b"abc").unwrap();
    pair.settle();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
    reset(pair.server(), SERVER);
    pair.settle();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::ISCONN));
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::CONNRESET));
    assert_eq!(recv(pair.client(), CLIENT, 10).unwrap(), b"abc");
    assert_eq!(recv(pair.client(), CLIENT, 10).unwrap(), b"");
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::PIPE));
}

#[test]
fn disconnecting_resets_and_the_socket_connects_anew() {
    let mut pair = Pair::connected();
    let port = pair.client().name(CLIENT).unwrap().port();
    pair.client().disconnect(CLIENT).unwrap();
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT | Mask::HUP | Mask::ERR);
    assert_eq!(error(pair.client(), CLIENT), Errno::CONNRESET);
    assert_eq!(pair.client().name(CLIENT), Ok(at([0, 0, 0, 0].into(), port)));
    assert_eq!(recv(pair.client(), CLIENT, 1), Err(Errno::NOTCONN));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    assert_eq!(poll(pair.server(), SERVER), OVER | Mask::ERR);
    assert_eq!(error(pair.server(), SERVER), Errno::CONNRESET);
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT);
}

#[test]
fn addresses_must_fit_the_socket() {
    let mut pair = Pair::default();
    let now = pair.now;
    let client = pair.client();
    client.open(Id(0), Domain::V4, Kind::Stream).unwrap();
    client.open(Id(1), Domain::V6, Kind::Stream).unwrap();
    let mapped = "[::ffff:10.0.0.2]:80".parse().unwrap();
    assert_eq!(client.connect(Id(0), now, v6(0), at(v6(1), 80)), Err(Errno::AFNOSUPPORT));
    assert_eq!(client.connect(Id(1), now, v4(0), at(v4(1), 80)), Err(Errno::AFNOSUPPORT));
    assert_eq!(client.bind(Id(0), at(v6(0), 80)), Err(Errno::AFNOSUPPORT));
    client.set_option(Id(1), 41, 26, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(client.connect(Id(1), now, v4(0), mapped), Err(Errno::NETUNREACH));
    assert_eq!(client.bind(Id(1), mapped), Err(Errno::INVAL));
    let group = "224.0.0.1:80".parse().unwrap();
    assert_eq!(client.connect(Id(0), now, v4(0), group), Err(Errno::NETUNREACH));
    assert_eq!(client.connect(Id(0), now, v4(0), at(v4(1), 0)), Err(Errno::CONNREFUSED));
}

#[test]
fn a_bound_socket_connects_from_its_address() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    let client = pair.client();
    client.open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    client.bind(CLIENT, at(v4(0), 4000)).unwrap();
    assert_eq!(client.bind(CLIENT, at(v4(0), 4001)), Err(Errno::INVAL));
    assert_eq!(poll(client, CLIENT), Mask::OUT | Mask::HUP);
    pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
    pair.settle();
    let (local, remote) = pair.server().accept(LISTENER, SERVER).unwrap();
    assert_eq!((local, remote), (at(v4(1), 80), at(v4(0), 4000)));
    assert_eq!(pair.client().name(CLIENT), Ok(at(v4(0), 4000)));
    let client = pair.client();
    client.open(Id(9), Domain::V4, Kind::Stream).unwrap();
    assert_eq!(client.bind(Id(9), at(v4(0), 4000)), Err(Errno::ADDRINUSE));
    // Without a port it gets one when it connects.
    client.set_option(Id(9), 0, 24, &1i32.to_ne_bytes()).unwrap();
    client.bind(Id(9), at([10, 0, 0, 9].into(), 0)).unwrap();
    assert_eq!(client.name(Id(9)), Ok("10.0.0.9:0".parse().unwrap()));
    pair.connect(Id(9), at(v4(1), 80)).unwrap_err();
    assert_eq!(pair.client().name(Id(9)).unwrap().ip(), v4(8));
}

#[test]
fn leased_ports_serve_each_remote_once_and_then_run_out() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    let mut ports = std::collections::BTreeSet::new();
    for number in 0..256 {
        assert_eq!(pair.connect(Id(100 + number), at(v4(1), 80)), Err(Errno::INPROGRESS));
        ports.insert(pair.client().name(Id(100 + number)).unwrap().port());
    }
    assert_eq!(ports.len(), 256);
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::ADDRNOTAVAIL));
    assert_eq!(pair.connect(Id(400), at(v4(1), 81)), Err(Errno::INPROGRESS), "another remote");
    pair.client().add_ports(20_000, 256);
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
    assert!(pair.client().name(CLIENT).unwrap().port() >= 20_000);
}

#[test]
fn no_leased_port_is_its_own_peer() {
    let mut pair = Pair::default();
    for number in 0..255 {
        let connected = pair.connect(Id(100 + number), at(v4(0), 10_300));
        assert_eq!(connected, Err(Errno::INPROGRESS));
        assert_ne!(pair.client().name(Id(100 + number)).unwrap().port(), 10_300);
    }
    assert_eq!(pair.connect(CLIENT, at(v4(0), 10_300)), Err(Errno::ADDRNOTAVAIL));
}

#[test]
fn shutting_down_a_connect_ends_it() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
    assert_eq!(pair.client().shutdown(CLIENT, How::Write), Ok(()));
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT | Mask::HUP | Mask::ERR);
    assert_eq!(error(pair.client(), CLIENT), Errno::CONNRESET);
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
}

#[test]
fn what_was_shut_down_before_it_was_connected_stays_so() {
    let deaf = Mask::IN | Mask::RDHUP;
    let cases = [
        (How::Read, deaf, deaf | Mask::OUT),
        (How::Write, Mask::NONE, Mask::OUT),
        (How::Both, deaf | Mask::HUP, deaf | Mask::HUP | Mask::OUT),
    ];
    for (how, under_way, connected) in cases {
        let mut pair = Pair::default();
        pair.listen(LISTENER, at(v4(1), 80));
        pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
        assert_eq!(pair.client().shutdown(CLIENT, how), Err(Errno::NOTCONN));
        assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
        assert_eq!(poll(pair.client(), CLIENT), under_way);
        pair.settle();
        assert_eq!(poll(pair.client(), CLIENT), connected);
        assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
        pair.server().accept(LISTENER, SERVER).unwrap();
        let sent = if how == How::Read { Ok(1) } else { Err(Errno::PIPE) };
        assert_eq!(send(pair.client(), CLIENT, b"x"), sent);
        send(pair.server(), SERVER, b"abc").unwrap();
        pair.settle();
        assert!(!poll(pair.server(), SERVER).has(Mask::RDHUP), "nobody has told the peer");
        assert_eq!(recv(pair.client(), CLIENT, 9).unwrap(), b"abc");
        let end = if how == How::Write { Err(Errno::AGAIN) } else { Ok(Vec::new()) };
        assert_eq!(recv(pair.client(), CLIENT, 9), end);
        assert_eq!(pair.client().shutdown(CLIENT, How::Write), Ok(()));
        pair.settle();
        assert!(poll(pair.server(), SERVER).has(Mask::RDHUP));
    }
}

#[test]
fn who_disconnects_opens_what_was_shut_down() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    assert_eq!(pair.client().shutdown(CLIENT, How::Both), Err(Errno::NOTCONN));
    pair.client().disconnect(CLIENT).unwrap();
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT | Mask::HUP);
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT);
    assert_eq!(send(pair.client(), CLIENT, b"x"), Ok(1));
}

/// A client that knows the server's Fast Open cookie, and a server that takes data in a SYN.
fn fast() -> Pair {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    pair.server().set_option(LISTENER, 6, 23, &16i32.to_ne_bytes()).unwrap();
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    pair.client().set_option(CLIENT, 6, 30, &1i32.to_ne_bytes()).unwrap();
    // The first one asks for the cookie.
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    pair.server().accept(LISTENER, SERVER).unwrap();
    reset(pair.client(), CLIENT);
    pair.server().close(SERVER);
    pair.settle();
    pair
}

#[test]
fn a_connect_may_wait_for_the_first_data() {
    let mut pair = fast();
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    pair.client().set_option(CLIENT, 6, 30, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
    assert_eq!(poll(pair.client(), CLIENT), Mask::OUT);
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::ISCONN));
    assert!(!pair.client().wants_turn());
    assert_eq!(send(pair.client(), CLIENT, b"early"), Ok(5));
    // It is there with the first packet.
    pair.exchange();
    pair.server().accept(LISTENER, SERVER).unwrap();
    assert_eq!(recv(pair.server(), SERVER, 9).unwrap(), b"early");
    pair.settle();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
}

#[test]
fn a_connect_that_waits_for_data_keeps_what_was_shut_down() {
    let mut pair = fast();
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    pair.client().set_option(CLIENT, 6, 30, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(pair.client().shutdown(CLIENT, How::Both), Err(Errno::NOTCONN));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
    assert_eq!(poll(pair.client(), CLIENT), OVER);
    assert_eq!(recv(pair.client(), CLIENT, 1).unwrap(), b"");
    // tcp_sendmsg_fastopen: what the connect takes along.
    assert_eq!(send(pair.client(), CLIENT, b"early"), Ok(5));
    pair.settle();
    pair.server().accept(LISTENER, SERVER).unwrap();
    assert_eq!(recv(pair.server(), SERVER, 9).unwrap(), b"early");
    assert_eq!(poll(pair.client(), CLIENT), OVER);
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::PIPE));
}

#[test]
fn a_connect_that_waits_for_data_may_want_more_ports_then() {
    let mut pair = fast();
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    pair.client().set_option(CLIENT, 6, 30, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
    pair.client().remove_ports(10_240);
    assert_eq!(send(pair.client(), CLIENT, b"early"), Err(Errno::ADDRNOTAVAIL));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::ISCONN));
    pair.client().add_ports(20_480, 16);
    assert_eq!(send(pair.client(), CLIENT, b"early"), Ok(5));
    pair.exchange();
    pair.server().accept(LISTENER, SERVER).unwrap();
    assert_eq!(recv(pair.server(), SERVER, 9).unwrap(), b"early");
}

#[test]
fn a_bound_socket_connects_at_once() {
    let mut pair = fast();
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    pair.client().set_option(CLIENT, 6, 30, &1i32.to_ne_bytes()).unwrap();
    pair.client().bind(CLIENT, at(v4(0), 777)).unwrap();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Ok(()));
    assert_eq!(pair.client().name(CLIENT), Ok(at(v4(0), 777)));
}

#[test]
fn a_send_may_connect() {
    let mut pair = fast();
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    let outgoing = Outgoing {
        to: Some(at(v4(1), 80)),
        source: Some(v4(0)),
        fast_open: true,
        ..Outgoing::default()
    };
    let client = pair.client();
    assert_eq!(client.send(CLIENT, &[IoSlice::new(b"early")], outgoing), Ok(5));
    assert_eq!(client.send(CLIENT, &[IoSlice::new(b"x")], outgoing), Err(Errno::ALREADY));
    pair.exchange();
    pair.server().accept(LISTENER, SERVER).unwrap();
    assert_eq!(recv(pair.server(), SERVER, 9).unwrap(), b"early");
    // Without a cookie it is a connect.
    let mut pair = Pair::default();
    pair.client().open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    let sent = pair.client().send(CLIENT, &[IoSlice::new(b"early")], outgoing);
    assert_eq!(sent, Err(Errno::INPROGRESS));
}
