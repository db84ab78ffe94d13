//! Data of streams, and their ends.

use millrace_host::{Errno, How, Mask};

use crate::pair::{CLIENT, LISTENER, Pair, SERVER, at, poll, recv, send, v4};

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
fn time_wait_ends_and_with_it_the_claim() {
    let mut pair = Pair::connected();
    let claim = pair.server().next_claim().unwrap();
    let millrace_host::Claim::Made(ends) = claim else { panic!("{claim:?}") };
    assert_eq!((ends.local, ends.remote.ip()), (at(v4(1), 80), v4(0)));
    pair.server().close(SERVER);
    pair.settle();
    pair.client().close(CLIENT);
    pair.run_for(59_000_000_000);
    assert_eq!(pair.server().next_claim(), None);
    pair.run_for(2_000_000_000);
    assert_eq!(pair.server().next_claim(), Some(millrace_host::Claim::Gone(ends)));
    assert_eq!(pair.client().next_claim(), None, "it was opened from there");
}
