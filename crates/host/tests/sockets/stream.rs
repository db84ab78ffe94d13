//! Data of streams, and their ends.

use std::io::{IoSlice, IoSliceMut};

use millrace_host::{Errno, How, Incoming, Mask, Outgoing};

use crate::pair::{
    CLIENT, Claims, LISTENER, OVER, Pair, SERVER, at, error, poll, recv, recv_with, reset, send, v4,
};

#[test]
fn data_goes_both_ways_and_ends() {
    let mut pair = Pair::connected();
    assert_eq!(recv(pair.server(), SERVER, 10), Err(Errno::AGAIN));
    assert_eq!(send(pair.client(), CLIENT, b"request"), Ok(7));
    pair.settle();
    let ready = pair.server().next_ready().unwrap();
    assert_eq!((ready.id, ready.woken.has(Mask::IN)), (SERVER, true));
    assert_eq!(poll(pair.server(), SERVER), Mask::IN | Mask::OUT);
    assert_eq!(recv(pair.server(), SERVER, 3).unwrap(), b"req");
    assert_eq!(recv(pair.server(), SERVER, 30).unwrap(), b"uest");
    pair.server().shutdown(SERVER, How::Write).unwrap();
    assert_eq!(send(pair.server(), SERVER, b"x"), Err(Errno::PIPE));
    pair.settle();
    assert_eq!(recv(pair.client(), CLIENT, 10).unwrap(), b"");
    assert_eq!(poll(pair.client(), CLIENT), Mask::IN | Mask::OUT | Mask::RDHUP);
    assert_eq!(pair.client().peer(CLIENT), Ok(at(v4(1), 80)));
    assert_eq!(pair.server().accept(LISTENER, CLIENT), Err(Errno::AGAIN));
}

#[test]
fn the_claim_ends_where_time_wait_begins() {
    let mut pair = Pair::default();
    let claims = [0, 1].map(|host| Claims::of(&mut pair.hosts[host].sessions));
    pair.establish();
    let (server, client) = (at(v4(1), 80), pair.client().name(CLIENT).unwrap());
    assert!(claims[1].has(server, client));
    pair.server().close(SERVER);
    pair.settle();
    pair.client().close(CLIENT);
    assert!(claims[1].has(server, client));
    pair.settle();
    assert!(!claims[1].has(server, client), "the next connection may be another stack's");
    assert!(!claims[0].has(client, server), "it was opened from there");
}

#[test]
fn flows_that_there_are_already_are_claimed() {
    let mut pair = Pair::connected();
    let (server, client) = (at(v4(1), 80), pair.client().name(CLIENT).unwrap());
    let claims = [0, 1].map(|host| Claims::of(&mut pair.hosts[host].sessions));
    assert!(claims[1].has(server, client) && claims[0].has(client, server));
    pair.client().abort(CLIENT);
    pair.settle();
    assert!(!claims[1].has(server, client) && !claims[0].has(client, server));
}

#[test]
fn half_closed_both_ways() {
    let mut pair = Pair::connected();
    let client = pair.client();
    client.shutdown(CLIENT, How::Write).unwrap();
    let ready = client.next_ready().unwrap();
    assert_eq!((ready.id, ready.woken), (CLIENT, Mask::ALL), "sk_state_change");
    assert_eq!(poll(client, CLIENT), Mask::OUT);
    assert_eq!(client.shutdown(CLIENT, How::Write), Ok(()));
    pair.settle();
    let ready = pair.server().next_ready().unwrap();
    assert_eq!((ready.id, ready.woken), (SERVER, Mask::ALL));
    assert_eq!(poll(pair.server(), SERVER), Mask::IN | Mask::OUT | Mask::RDHUP);
    assert_eq!(recv(pair.server(), SERVER, 1).unwrap(), b"");
    assert_eq!(send(pair.server(), SERVER, b"yy"), Ok(2));
    pair.settle();
    assert_eq!(poll(pair.client(), CLIENT), Mask::IN | Mask::OUT);
    assert_eq!(recv(pair.client(), CLIENT, 5).unwrap(), b"yy");
    pair.server().close(SERVER);
    pair.settle();
    let client = pair.client();
    assert_eq!(poll(client, CLIENT), OVER);
    assert_eq!(recv(client, CLIENT, 5).unwrap(), b"");
    assert_eq!(client.peer(CLIENT), Err(Errno::NOTCONN));
    assert_eq!(client.shutdown(CLIENT, How::Both), Err(Errno::NOTCONN));
    assert_eq!(client.option(CLIENT, 6, 11, 8).unwrap()[0], 7, "TIME-WAIT is TCP_CLOSE");
    assert_eq!(send(client, CLIENT, b"x"), Err(Errno::PIPE));
    assert_eq!(error(client, CLIENT), Errno(0));
    assert_eq!(client.name(CLIENT).unwrap().ip(), v4(0));
}

#[test]
fn a_reset_behind_a_fin_is_told_to_writers_only() {
    let ended = || {
        let mut pair = Pair::connected();
        pair.server().shutdown(SERVER, How::Write).unwrap();
        pair.settle();
        assert_eq!(poll(pair.client(), CLIENT), Mask::IN | Mask::OUT | Mask::RDHUP);
        reset(pair.server(), SERVER);
        pair.settle();
        assert_eq!(poll(pair.client(), CLIENT), OVER | Mask::ERR);
        pair
    };
    let mut pair = ended();
    assert_eq!(recv(pair.client(), CLIENT, 10).unwrap(), b"");
    assert_eq!(send(pair.client(), CLIENT, b"x"), Err(Errno::PIPE));
    assert_eq!(error(pair.client(), CLIENT), Errno(0));
    let mut pair = ended();
    assert_eq!(error(pair.client(), CLIENT), Errno::PIPE);
}

#[test]
fn reading_shut_down_ends_with_what_came() {
    let mut pair = Pair::connected();
    pair.client().shutdown(CLIENT, How::Read).unwrap();
    assert_eq!(poll(pair.client(), CLIENT), Mask::IN | Mask::OUT | Mask::RDHUP);
    assert_eq!(recv(pair.client(), CLIENT, 1).unwrap(), b"");
    send(pair.server(), SERVER, b"late").unwrap();
    pair.settle();
    assert_eq!(recv(pair.client(), CLIENT, 10).unwrap(), b"late");
    assert_eq!(recv(pair.client(), CLIENT, 10).unwrap(), b"");
    assert_eq!(pair.client().shutdown(CLIENT, How::Both), Ok(()));
    assert_eq!(poll(pair.client(), CLIENT), OVER);
    pair.settle();
    send(pair.server(), SERVER, b"z").unwrap();
    pair.settle();
    assert_eq!(poll(pair.server(), SERVER), OVER | Mask::ERR);
    assert_eq!(error(pair.server(), SERVER), Errno::PIPE);
    assert_eq!(poll(pair.client(), CLIENT), OVER | Mask::ERR);
    assert_eq!(recv(pair.client(), CLIENT, 10), Err(Errno::CONNRESET));
    assert_eq!(error(pair.client(), CLIENT), Errno(0));
}

#[test]
fn closing_with_unread_data_resets() {
    let mut pair = Pair::connected();
    send(pair.client(), CLIENT, b"unread").unwrap();
    pair.settle();
    pair.server().close(SERVER);
    pair.settle();
    assert_eq!(recv(pair.client(), CLIENT, 1), Err(Errno::CONNRESET));
    assert_eq!(recv(pair.client(), CLIENT, 1).unwrap(), b"");
}

#[test]
fn flags_of_receiving() {
    let mut pair = Pair::connected();
    assert_eq!(recv(pair.client(), CLIENT, 0), Err(Errno::AGAIN));
    send(pair.server(), SERVER, b"hello").unwrap();
    pair.settle();
    let client = pair.client();
    let peek = Incoming { peek: true, ..Incoming::default() };
    let discard = Incoming { discard: true, ..Incoming::default() };
    assert_eq!(client.pending(CLIENT), Ok(5));
    assert_eq!(recv_with(client, CLIENT, 3, peek).unwrap(), b"hel");
    assert_eq!(recv_with(client, CLIENT, 3, Incoming { offset: 3, ..peek }).unwrap(), b"lo");
    assert_eq!(recv(client, CLIENT, 0).unwrap(), b"");
    let urgent = Incoming { urgent: true, ..Incoming::default() };
    assert_eq!(recv_with(client, CLIENT, 1, urgent), Err(Errno::INVAL));
    let errors = Incoming { errors: true, ..Incoming::default() };
    assert_eq!(recv_with(client, CLIENT, 1, errors), Err(Errno::AGAIN));
    assert_eq!(recv_with(client, CLIENT, 2, discard).unwrap(), [0, 0]);
    let (mut first, mut second) = ([0; 2], [0; 9]);
    let targets = &mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    assert_eq!(client.recv(CLIENT, targets, Incoming::default()).unwrap().bytes, 3);
    assert_eq!((&first, second[0]), (b"ll", b'o'));
    assert_eq!(recv(client, CLIENT, 5), Err(Errno::AGAIN));
    assert_eq!(send(client, CLIENT, b""), Ok(0));
}

#[test]
fn urgent_data_is_read_ahead_of_the_stream() {
    let mut pair = Pair::connected();
    let (urgent, peek) = (Incoming { urgent: true, ..Incoming::default() }, true);
    send(pair.server(), SERVER, b"hello").unwrap();
    let out = Outgoing { urgent: true, ..Outgoing::default() };
    assert_eq!(pair.server().send(SERVER, &[IoSlice::new(b"!")], out), Ok(1));
    send(pair.server(), SERVER, b"later").unwrap();
    pair.settle();
    let client = pair.client();
    assert!(client.mask(CLIENT).has(Mask::PRI));
    // SIOCINQ ends at the mark, and so does a read.
    assert_eq!((client.pending(CLIENT), client.is_at_mark(CLIENT)), (Ok(5), Ok(false)));
    assert_eq!(recv_with(client, CLIENT, 1, Incoming { peek, ..urgent }).unwrap(), b"!");
    assert_eq!(recv_with(client, CLIENT, 1, urgent).unwrap(), b"!");
    assert_eq!(recv_with(client, CLIENT, 1, urgent), Err(Errno::INVAL));
    assert!(!client.mask(CLIENT).has(Mask::PRI));
    assert_eq!(recv(client, CLIENT, 100).unwrap(), b"hello");
    assert_eq!(client.is_at_mark(CLIENT), Ok(true));
    assert_eq!(recv(client, CLIENT, 100).unwrap(), b"later");
    assert_eq!(client.is_at_mark(CLIENT), Ok(false));
    // SO_OOBINLINE
    client.set_option(CLIENT, 1, 10, &1_i32.to_ne_bytes()).unwrap();
    assert_eq!(pair.server().send(SERVER, &[IoSlice::new(b"ab")], out), Ok(2));
    pair.settle();
    let client = pair.client();
    assert_eq!(recv_with(client, CLIENT, 1, urgent), Err(Errno::INVAL));
    assert_eq!(recv(client, CLIENT, 100).unwrap(), b"a");
    assert_eq!(recv(client, CLIENT, 100).unwrap(), b"b");
}

#[test]
fn a_peek_goes_on_where_the_last_one_ended() {
    let mut pair = Pair::connected();
    send(pair.server(), SERVER, b"0123456789").unwrap();
    pair.settle();
    let client = pair.client();
    let peek = Incoming { peek: true, ..Incoming::default() };
    client.set_option(CLIENT, 1, 42, &2_i32.to_ne_bytes()).unwrap();
    assert_eq!(recv_with(client, CLIENT, 3, peek).unwrap(), b"234");
    assert_eq!(recv_with(client, CLIENT, 3, peek).unwrap(), b"567");
    assert_eq!(recv(client, CLIENT, 4).unwrap(), b"0123");
    assert_eq!(&*client.option(CLIENT, 1, 42, 4).unwrap(), 4_i32.to_ne_bytes());
    assert_eq!(recv_with(client, CLIENT, 9, peek).unwrap(), b"89");
    assert_eq!(recv_with(client, CLIENT, 9, peek), Err(Errno::AGAIN));
    client.set_option(CLIENT, 1, 42, &(-1_i32).to_ne_bytes()).unwrap();
    assert_eq!(recv_with(client, CLIENT, 9, peek).unwrap(), b"456789");
}

#[test]
fn low_water_holds_readiness_back() {
    let mut pair = Pair::connected();
    pair.server().set_option(SERVER, 1, 18, &10i32.to_ne_bytes()).unwrap();
    send(pair.client(), CLIENT, b"12345").unwrap();
    pair.settle();
    assert_eq!(pair.server().next_ready(), None);
    assert_eq!(poll(pair.server(), SERVER), Mask::OUT);
    send(pair.client(), CLIENT, b"67890").unwrap();
    pair.settle();
    assert_eq!(pair.server().next_ready().unwrap().id, SERVER);
    assert_eq!(poll(pair.server(), SERVER), Mask::IN | Mask::OUT);
    pair.server().set_option(SERVER, 1, 18, &11i32.to_ne_bytes()).unwrap();
    assert_eq!(poll(pair.server(), SERVER), Mask::OUT);
    assert_eq!(recv(pair.server(), SERVER, 3).unwrap(), b"123");
}

#[test]
fn every_arrival_is_an_edge() {
    let mut pair = Pair::connected();
    for byte in [b"a", b"b"] {
        send(pair.client(), CLIENT, byte).unwrap();
        pair.settle();
        let ready = pair.server().next_ready().unwrap();
        assert!(ready.woken.has(Mask::IN) && !ready.woken.has(Mask::OUT), "{ready:?}");
        assert_eq!(poll(pair.server(), SERVER), Mask::IN | Mask::OUT);
        assert_eq!(pair.server().next_ready(), None);
    }
}

#[test]
fn a_full_buffer_says_so_and_when_there_is_room_again() {
    let mut pair = Pair::connected();
    pair.client().set_option(CLIENT, 1, 7, &20_000i32.to_ne_bytes()).unwrap();
    pair.server().set_option(SERVER, 1, 8, &4_000i32.to_ne_bytes()).unwrap();
    let mut sent = Vec::new();
    loop {
        let bytes: Vec<u8> = (0..5000).map(|i| (sent.len() + i) as u8).collect();
        match send(pair.client(), CLIENT, &bytes) {
            Ok(count) => sent.extend_from_slice(&bytes[..count]),
            Err(errno) => break assert_eq!(errno, Errno::AGAIN),
        }
        pair.settle();
    }
    assert_eq!(poll(pair.client(), CLIENT), Mask::NONE);
    pair.quiet();
    let (unacked, unsent) = pair.client().unsent(CLIENT).unwrap();
    assert!(unacked >= 20_000 && unsent > 0, "{unacked} {unsent}");
    let mut got = Vec::new();
    let mut woken = false;
    for _ in 0..1000 {
        pair.run_for(5_000_000);
        got.extend(recv(pair.server(), SERVER, 3000).unwrap_or_default());
        woken |= pair
            .client()
            .next_ready()
            .is_some_and(|ready| ready.id == CLIENT && ready.woken.has(Mask::OUT));
    }
    assert!(woken && got == sent, "{} of {}", got.len(), sent.len());
}

#[test]
fn lingering_is_waited_for() {
    let mut pair = Pair::connected();
    pair.client().set_option(CLIENT, 1, 13, &[1, 0, 0, 0, 5, 0, 0, 0]).unwrap();
    send(pair.client(), CLIENT, b"last words").unwrap();
    let lingering = pair.client().close(CLIENT).unwrap();
    assert_eq!(lingering.timeout, 5_000_000_000);
    assert!(pair.client().is_lingering(&lingering) && !pair.client().has(CLIENT));
    assert!(!pair.client().is_drained());
    pair.settle();
    assert!(!pair.client().is_lingering(&lingering));
    assert!(pair.client().is_drained());
    assert_eq!(recv(pair.server(), SERVER, 20).unwrap(), b"last words");
    // Without it nobody waits.
    assert_eq!(pair.server().close(SERVER), None);
}

#[test]
fn everything_arrives_over_a_link_that_loses_packets() {
    let mut pair = Pair::connected();
    pair.loses = 9;
    let data: Vec<u8> = (0..200_000u32).map(|i| (i / 7) as u8).collect();
    let (mut sent, mut got) = (0, Vec::new());
    for _ in 0..100_000 {
        if sent < data.len() {
            sent += send(pair.client(), CLIENT, &data[sent..]).unwrap_or(0);
        }
        pair.run_for(10_000_000);
        got.extend(recv(pair.server(), SERVER, 100_000).unwrap_or_default());
        if got.len() == data.len() {
            break;
        }
    }
    assert!(got == data, "{} of {}", got.len(), data.len());
}

#[test]
fn nothing_is_left_when_every_session_has_ended() {
    let mut pair = Pair::connected();
    let finish: [fn(&mut Pair); 3] = [
        |pair| {
            pair.client().close(CLIENT);
        },
        |pair| pair.client().abort(CLIENT),
        |pair| pair.client().disconnect(CLIENT).unwrap(),
    ];
    for (round, finish) in finish.into_iter().enumerate() {
        finish(&mut pair);
        assert!(!pair.client().is_drained(), "{round}: a FIN or a reset is due");
        pair.settle();
        assert!(pair.client().is_drained(), "{round}");
        pair.server().close(SERVER);
        pair.settle();
        assert!(pair.server().is_drained(), "{round}");
        pair.connect(CLIENT, at(v4(1), 80)).unwrap_err();
        pair.settle();
        pair.server().accept(LISTENER, SERVER).unwrap();
    }
}
