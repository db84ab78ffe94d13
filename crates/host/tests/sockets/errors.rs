//! The error queue of datagrams. What is expected was read from Linux 6.18.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;

use millrace_host::{Domain, Errno, Id, Incoming, Kind, Mask, Outgoing, Report, Sessions, Shape};

use crate::pair::{Pair, at, error, poll, recv, v4, v6};

const A: Id = Id(1);

/// `IP_RECVERR`, `IPV6_RECVERR`, `IP_MTU_DISCOVER`.
const ERRORS: (i32, i32) = (0, 11);
const ERRORS_V6: (i32, i32) = (41, 25);
const MTU_DISCOVER: (i32, i32) = (0, 10);

fn set(sessions: &mut Sessions, (level, name): (i32, i32), value: i32) {
    sessions.set_option(A, level, name, &value.to_ne_bytes()).unwrap();
    let now = sessions.option(A, level, name, 4).unwrap();
    assert_eq!(now[..], value.to_ne_bytes());
}

fn open(sessions: &mut Sessions, domain: Domain) {
    sessions.open(A, domain, Kind::Datagram).unwrap();
}

fn send_to(sessions: &mut Sessions, bytes: &[u8], to: SocketAddr) -> Result<usize, Errno> {
    let source = if to.ip().to_canonical().is_ipv4() { v4(0) } else { v6(0) };
    let outgoing = Outgoing { to: Some(to), source: Some(source), ..Outgoing::default() };
    sessions.send(A, &[IoSlice::new(bytes)], outgoing)
}

/// `MSG_ERRQUEUE`: the bytes, and the rest.
fn next(sessions: &mut Sessions, room: usize) -> Result<(Vec<u8>, Shape), Errno> {
    let mut bytes = vec![0; room];
    let incoming = Incoming { errors: true, peek: true, ..Incoming::default() };
    let received = sessions.recv(A, &mut [IoSliceMut::new(&mut bytes)], incoming)?;
    bytes.truncate(received.bytes);
    Ok((bytes, received.shape.unwrap()))
}

#[test]
fn reports_say_what_was_said_about_which_datagram() {
    let mapped: SocketAddr = "[::ffff:10.0.0.2]:81".parse().unwrap();
    let any_mapped: SocketAddr = "[::ffff:10.0.0.2]:0".parse().unwrap();
    for (domain, to, offender, kind, code) in [
        (Domain::V4, at(v4(1), 81), at(v4(1), 0), 3, 3),
        (Domain::V6, at(v6(1), 81), at(v6(1), 0), 1, 4),
        (Domain::V6, mapped, any_mapped, 3, 3),
    ] {
        let mut pair = Pair::default();
        let client = pair.client();
        open(client, domain);
        assert_eq!(next(client, 10), Err(Errno::AGAIN));
        set(client, ERRORS, 1);
        if domain == Domain::V6 {
            set(client, ERRORS_V6, 1);
        }
        send_to(client, b"question", to).unwrap();
        pair.settle();
        let client = pair.client();
        let ready = client.next_ready().unwrap();
        assert!(ready.woken.has(Mask::ERR));
        assert_eq!(poll(client, A), Mask::OUT | Mask::ERR);
        // The pending error is told once, the report stays.
        assert_eq!(recv(client, A, 10), Err(Errno::CONNREFUSED));
        assert_eq!(poll(client, A), Mask::OUT | Mask::ERR);
        let (bytes, shape) = next(client, 5).unwrap();
        assert_eq!((&bytes[..], shape.length, shape.from), (&b"quest"[..], 8, to));
        let message = Some((offender, kind, code));
        let report = Report { errno: Errno::CONNREFUSED, message, info: 0 };
        assert_eq!((shape.report, shape.ttl), (Some(report), 64));
        assert_eq!(next(client, 5), Err(Errno::AGAIN), "it was taken");
        assert_eq!(poll(client, A), Mask::OUT);
    }
}

#[test]
fn the_pending_error_follows_the_queue() {
    let mut pair = Pair::default();
    open(pair.client(), Domain::V4);
    set(pair.client(), ERRORS, 1);
    for data in [&b"one"[..], b"two", b"three"] {
        send_to(pair.client(), data, at(v4(1), 81)).unwrap();
        pair.settle();
        assert_eq!(error(pair.client(), A), Errno::CONNREFUSED);
    }
    let client = pair.client();
    assert_eq!(next(client, 9).unwrap().0, b"one");
    assert_eq!(error(client, A), Errno::CONNREFUSED, "of the next");
    assert_eq!(next(client, 9).unwrap().0, b"two");
    assert_eq!(next(client, 9).unwrap().0, b"three");
    assert_eq!(error(client, A), Errno(0), "there is none left");
    // Without the option nothing is kept, and what was is forgotten.
    send_to(client, b"four", at(v4(1), 81)).unwrap();
    pair.settle();
    set(pair.client(), ERRORS, 0);
    assert_eq!(next(pair.client(), 9), Err(Errno::AGAIN));
}

#[test]
fn what_is_too_long_is_reported_here() {
    let mut pair = Pair::default();
    let client = pair.client();
    open(client, Domain::V4);
    set(client, MTU_DISCOVER, 2);
    assert_eq!(send_to(client, &[0; 1473], at(v4(1), 81)), Err(Errno::MSGSIZE));
    assert_eq!(next(client, 9), Err(Errno::AGAIN), "nobody wants to know");
    set(client, ERRORS, 1);
    assert_eq!(send_to(client, &[0; 1473], at(v4(1), 81)), Err(Errno::MSGSIZE));
    assert_eq!((poll(client, A), error(client, A)), (Mask::OUT | Mask::ERR, Errno(0)));
    let (bytes, shape) = next(client, 9).unwrap();
    let report = Report { errno: Errno::MSGSIZE, message: None, info: 1500 };
    assert_eq!((bytes.len(), shape.report), (0, Some(report)));
    assert_eq!(shape.from, at(v4(1), 0), "the port is that of a peer");
    client.connect(A, 0, v4(0), at(v4(1), 81)).unwrap();
    assert_eq!(
        client.send(A, &[IoSlice::new(&[0; 1473])], Outgoing::default()),
        Err(Errno::MSGSIZE)
    );
    assert_eq!(next(client, 9).unwrap().1.from, at(v4(1), 81));
    client.close(A);
    open(client, Domain::V6);
    set(client, ERRORS_V6, 1);
    assert_eq!(send_to(client, &[0; 65_480], at(v6(1), 81)), Err(Errno::MSGSIZE));
    assert_eq!(next(client, 9).unwrap().1.from, at(v6(1), 81));
}

#[test]
fn streams_have_no_error_queue() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(A, Domain::V6, Kind::Stream).unwrap();
    for (level, name) in [ERRORS, ERRORS_V6] {
        let on = client.set_option(A, level, name, &1i32.to_ne_bytes());
        assert_eq!(on, Err(Errno::NOPROTOOPT));
    }
}
