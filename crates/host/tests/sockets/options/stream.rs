//! Options of streams, and TCP_INFO.

use millrace_host::{Domain, Errno, Id, Kind};

use super::{SOCKET, TCP, get, set};
use crate::pair::{CLIENT, LISTENER, Pair, SERVER, at, send, v4};

#[test]
fn what_a_stream_is_told_is_kept_within_bounds() {
    let mut pair = Pair::connected();
    let client = pair.client();
    for (name, good, told) in [
        (1, 1, 1),
        (3, 7, 1),
        (4, 30, 30),
        (5, 32_767, 32_767),
        (6, 127, 127),
        (7, 1, 1),
        (8, -5, -1),
        (8, 1000, 120),
        (8, 0, 60),
        (9, 10, 15),
        (10, 5, 1152),
        (10, 50_000, 50_000),
        (18, 5000, 5000),
        (25, 16_384, 16_384),
        (45, 100_000, 100_000),
        (46, 100_000, 100_000),
        (12, 0, 0),
        (17, 1, 0),
    ] {
        assert_eq!(set(client, CLIENT, (TCP, name), good), Ok(()), "{name}");
        assert_eq!(get(client, CLIENT, TCP, name), Ok(told), "{name}");
    }
    for (name, bad, errno) in [
        (2, 87, Errno::INVAL),
        (4, 0, Errno::INVAL),
        (4, 32_768, Errno::INVAL),
        (6, 128, Errno::INVAL),
        (7, 0, Errno::INVAL),
        (10, 0, Errno::INVAL),
        (17, 2, Errno::INVAL),
        (18, -1, Errno::INVAL),
        (19, 1, Errno::PERM),
        (23, 5, Errno::INVAL),
        (27, 1, Errno::NOPROTOOPT),
        (30, 1, Errno::INVAL),
        (31, 1, Errno::NOENT),
        (44, 5, Errno::NOPROTOOPT),
    ] {
        assert_eq!(set(client, CLIENT, (TCP, name), bad), Err(errno), "{name}");
    }
    // What an accepted one starts with is its listener's.
    let server = pair.server();
    set(server, LISTENER, (TCP, 4), 77).unwrap();
    assert_eq!(get(server, SERVER, TCP, 4), Ok(7200));
    pair.connect(Id(9), at(v4(1), 80)).unwrap_err();
    pair.settle();
    let server = pair.server();
    server.accept(LISTENER, Id(10)).unwrap();
    assert_eq!(get(server, Id(10), TCP, 4), Ok(77));
    assert_eq!(get(server, LISTENER, SOCKET, 30), Ok(1));
    assert_eq!(get(server, Id(10), SOCKET, 30), Ok(0));
}

#[test]
fn the_longest_delay_of_an_acknowledgment_only_shortens_it() {
    const MILLISECOND: u64 = 1_000_000;
    let mut pair = Pair::connected();
    for (longest, delay) in [(200_000, 40), (10_000, 10), (100_000, 40)] {
        set(pair.server(), SERVER, (TCP, 46), longest).unwrap();
        let unacknowledged = |pair: &mut Pair| pair.client().unsent(CLIENT).unwrap().0;
        // The first ones of a connection are acknowledged at once.
        for _ in 0..40 {
            if unacknowledged(&mut pair) == 0 {
                send(pair.client(), CLIENT, b"a").unwrap();
                pair.settle();
            }
        }
        assert_eq!(unacknowledged(&mut pair), 1, "{longest}");
        pair.run_for((delay - 2) * MILLISECOND);
        assert_eq!(unacknowledged(&mut pair), 1, "{longest}");
        pair.run_for(4 * MILLISECOND);
        assert_eq!(unacknowledged(&mut pair), 0, "{longest}");
    }
}

#[test]
fn a_priority_is_kept_by_its_socket_alone() {
    let mut pair = Pair::connected();
    let server = pair.server();
    for (priority, set_to, told) in [(6, Ok(()), 6), (7, Err(Errno::PERM), 6), (3, Ok(()), 3)] {
        assert_eq!(set(server, LISTENER, (SOCKET, 12), priority), set_to, "{priority}");
        assert_eq!(get(server, LISTENER, SOCKET, 12), Ok(told), "{priority}");
    }
    assert_eq!(set(server, LISTENER, (SOCKET, 12), -1), Err(Errno::PERM));
    pair.connect(Id(9), at(v4(1), 80)).unwrap_err();
    pair.settle();
    let server = pair.server();
    server.accept(LISTENER, Id(10)).unwrap();
    assert_eq!(get(server, Id(10), SOCKET, 12), Ok(0), "as sk_clone_lock leaves it");
}

#[test]
fn congestion_control_has_linux_names() {
    let mut pair = Pair::connected();
    let client = pair.client();
    let name = |text: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text);
        bytes
    };
    assert_eq!(*client.option(CLIENT, TCP, 13, 64).unwrap(), name(b"cubic"));
    assert_eq!(client.set_option(CLIENT, TCP, 13, b"reno\0junk"), Ok(()));
    assert_eq!(*client.option(CLIENT, TCP, 13, 64).unwrap(), name(b"reno"));
    assert_eq!(client.set_option(CLIENT, TCP, 13, b"vegas"), Err(Errno::NOENT));
    assert_eq!(client.set_option(CLIENT, TCP, 13, b"bbr"), Ok(()));
    assert_eq!(*client.option(CLIENT, TCP, 13, 4).unwrap(), *b"bbr\0");
}

#[test]
fn tcp_info_is_linux_struct() {
    let mut pair = Pair::connected();
    let info = pair.client().option(CLIENT, TCP, 11, 256).unwrap();
    let word = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().unwrap());
    assert_eq!(
        (info.len(), info[0], info[5]),
        (248, 1, 7),
        "established; time stamps, SACK, scale"
    );
    assert_eq!((word(16), word(60)), (1448, 1500), "segment size, path MTU");
    assert_eq!(word(84), 1448, "announced, less the time stamps");
    assert!((1900..2200).contains(&word(68)), "round-trip time: us, {}", word(68));
    assert_eq!(pair.client().option(CLIENT, TCP, 11, 104).unwrap().len(), 104);
    pair.connect(Id(9), at(v4(1), 80)).unwrap_err();
    pair.settle();
    let info = pair.server().option(LISTENER, TCP, 11, 256).unwrap();
    assert_eq!((info[0], info[24], info[28]), (10, 1, 16), "listening; one waits; backlog");
    pair.client().open(Id(11), Domain::V4, Kind::Stream).unwrap();
    assert_eq!(pair.client().option(Id(11), TCP, 11, 256).unwrap()[0], 7);
    assert_eq!(pair.connect(Id(12), at(v4(1), 80)), Err(Errno::INPROGRESS));
    let info = pair.client().option(Id(12), TCP, 11, 256).unwrap();
    assert_eq!((info[0], &info[84..88]), (2, &1460_u32.to_ne_bytes()[..]), "no time stamps yet");
}

#[test]
fn a_stream_begins_with_the_options_of_another() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(CLIENT, Domain::V6, Kind::Stream).unwrap();
    set(client, CLIENT, (TCP, 4), 77).unwrap();
    let template = client.template(CLIENT).unwrap();
    // What is set later is that one's own.
    set(client, CLIENT, (TCP, 4), 78).unwrap();
    let other = Id(40);
    client.open_like(other, &template).unwrap();
    assert_eq!(client.kind(other), Ok((Domain::V6, Kind::Stream)));
    assert_eq!(get(client, other, TCP, 4), Ok(77));
    assert_eq!(client.open_like(other, &template), Err(Errno::EXIST));
    client.open(Id(41), Domain::V4, Kind::Datagram).unwrap();
    assert_eq!(client.template(Id(41)).err(), Some(Errno::INVAL));
    assert_eq!(client.template(Id(42)).err(), Some(Errno::BADF));
}
