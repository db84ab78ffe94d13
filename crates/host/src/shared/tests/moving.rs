//! Connections that leave a stack worker, or come to one, are whole.

use super::bed::LISTENER;
use super::*;

#[test]
fn connections_that_leave_are_whole() {
    let mut bed = Bed::connected(64);
    bed.peer(|peer, now| {
        peer.open(Id(9), Domain::V4, Kind::Stream).unwrap();
        let _ = peer.connect(Id(9), now, at(2, 0).ip(), at(1, 80));
    });
    bed.settle();
    bed.peer(|peer, _| {
        let data = bytes(40_000);
        peer.send(Id(9), &[IoSlice::new(&data)], Outgoing::default()).unwrap()
    });
    bed.settle();
    let parcels = bed.remote.export_unaccepted(LISTENER);
    assert_eq!(parcels.len(), 1);
    assert!(parcels[0].bytes.len() > 2 * PIECE, "in pieces");
    assert_eq!(bed.held_beside(), 0, "all of it was fetched");
    assert_eq!(bed.remote.accept(LISTENER, Id(7)), Err(Errno::AGAIN));
    bed.remote.import_unheld(0, &parcels[0].bytes).unwrap();
    assert!(bed.remote.accept(LISTENER, Id(7)).is_ok());
    assert_eq!(bed.remote.pending(Id(7)), Ok(40_000));
}

#[test]
fn so_many_of_those_that_wait_leave() {
    let mut bed = Bed::connected(64);
    for client in 9..12 {
        bed.peer(|peer, now| {
            peer.open(Id(client), Domain::V4, Kind::Stream).unwrap();
            let _ = peer.connect(Id(client), now, at(2, 0).ip(), at(1, 80));
        });
        bed.settle();
    }
    assert_eq!(bed.remote.export_waiting(LISTENER, 2).len(), 2);
    assert!(bed.remote.accept(LISTENER, Id(7)).is_ok(), "the listener goes on");
    assert_eq!(bed.remote.export_waiting(LISTENER, 2).len(), 0);
}

#[test]
fn a_connection_moves_with_all_that_was_not_read_or_sent() {
    for (ends, reads) in [(false, 0), (true, 70_000), (false, 90_000)] {
        let mut bed = Bed::connected(256);
        let (coming, going) = (bytes(180_000), bytes(700_000));
        let mut sent = bed.peer_writes(&coming).unwrap();
        bed.settle();
        // In the FIFO, and behind it in the stack.
        assert!(bed.remote.pending(SERVER).unwrap() > 100_000);
        let mut got = bed.read(reads).unwrap_or_default();
        let mut written = 0;
        while let Ok(some) = bed.write(&going[written..]) {
            written += some;
            bed.settle();
        }
        // SO_RCVTIMEO.
        let second = [1_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
        bed.remote.set_option(SERVER, 1, 20, &second).unwrap();
        if ends {
            bed.remote.shutdown(SERVER, How::Write).unwrap();
        }
        let parcel = bed.remote.export(SERVER).unwrap();
        assert_eq!(bed.remote.mask(SERVER), Mask::NONE);
        assert_eq!(bed.read(1), Err(Errno::BADF));
        // The place is used by another meanwhile.
        bed.remote.open(SERVER, Domain::V6, Kind::Stream).unwrap();
        bed.remote.close(SERVER);
        let moved = bed.remote.import(SERVER, 0, &parcel.bytes).unwrap();
        assert_eq!(moved, parcel.ends);
        assert_eq!(bed.remote.timeouts(SERVER), Ok((Some(1_000_000_000), None)));
        assert!(bed.remote.mask(SERVER).has(Mask::IN));
        // Behind all that was written before.
        let more = bed.write(&[7]);
        assert_eq!(more, if ends { Err(Errno::PIPE) } else { Ok(1) });
        let expected = [&going[..written], &[7][..more.unwrap_or(0)]].concat();
        let mut arrived = Vec::new();
        for _ in 0..10_000 {
            bed.settle();
            while let Ok(some) = bed.read(50_000) {
                got.extend(some);
            }
            while let Ok(some) = bed.peer_reads(50_000) {
                if some.is_empty() {
                    break;
                }
                arrived.extend(some);
            }
            sent += bed.peer_writes(&coming[sent..]).unwrap_or(0);
            if (got.len(), arrived.len()) == (coming.len(), expected.len()) {
                break;
            }
        }
        assert!(got == coming && arrived == expected, "{ends} {} {}", got.len(), arrived.len());
        bed.settle();
        let end = if ends { Ok(vec![]) } else { Err(Errno::AGAIN) };
        assert_eq!(bed.peer_reads(1), end);
        assert!(!bed.is_broken());
    }
    // What is no connection.
    let mut bed = Bed::connected(64);
    assert_eq!(bed.remote.export(LISTENER).unwrap_err(), Errno::OPNOTSUPP);
    assert!(bed.remote.has(LISTENER));
    assert_eq!(bed.remote.import(Id(9), 0, b"nonsense"), Err(Errno::INVAL));
    assert!(!bed.remote.has(Id(9)));
}

#[test]
fn what_comes_while_a_connection_is_away_is_not_answered() {
    let mut bed = Bed::connected(64);
    let parcel = bed.remote.export(SERVER).unwrap();
    bed.peer_writes(b"early").unwrap();
    bed.settle();
    assert_eq!(bed.peer_reads(1), Err(Errno::AGAIN), "no reset");
    bed.remote.import(SERVER, 0, &parcel.bytes).unwrap();
    bed.host.lock().unwrap().now += 1_000_000_000;
    bed.settle();
    assert_eq!(bed.read(10).unwrap(), b"early");
}

#[test]
fn what_comes_before_a_connection_is_there_waits_for_it() {
    let mut left = Bed::connected(64);
    let parcel = left.remote.export(SERVER).unwrap();
    // Another stack, which its packets come to from now on.
    let mut bed = Bed::new(64);
    bed.host.lock().unwrap().now = left.host.lock().unwrap().now;
    std::mem::swap(&mut bed.host.lock().unwrap().peer, &mut left.host.lock().unwrap().peer);
    bed.remote.fall_quiet();
    bed.peer_writes(b"early").unwrap();
    bed.host.lock().unwrap().receive();
    bed.settle();
    assert_eq!(bed.peer_reads(1), Err(Errno::AGAIN), "no reset");
    bed.remote.import(SERVER, 0, &parcel.bytes).unwrap();
    bed.remote.keep_quiet(0);
    bed.host.lock().unwrap().now += 1_000_000_000;
    bed.settle();
    assert_eq!(bed.read(10).unwrap(), b"early");
}

#[test]
fn what_a_process_that_ends_leaves_is_whole() {
    let mut bed = Bed::connected(64);
    let data = bytes(1_000_000);
    let mut sent = 0;
    while let Ok(some) = bed.write(&data[sent..]) {
        sent += some;
        bed.settle();
    }
    // More than the stack's own buffer takes: the rest waits in the FIFO. Nobody has heard yet that it is closed.
    bed.remote.close(SERVER);
    let parcels = bed.leave().closed;
    assert_eq!(parcels.len(), 1);
    // Somebody still has its memory, and writes there.
    bed.remote.close(LISTENER);
    assert!(!bed.has_commands());
    bed.come_back(&parcels[0]);
    let got = bed.peer_reads_to_its_end();
    assert!(got == data[..sent] && !bed.is_broken());
    assert_eq!(bed.remote.open(Id(9), Domain::V4, Kind::Stream), Err(Errno::NETDOWN));
}

#[test]
fn so_are_connections_in_time_wait() {
    let mut bed = Bed::connected(64);
    bed.remote.close(SERVER);
    bed.settle();
    bed.peer(|peer, _| peer.close(CLIENT));
    bed.settle();
    let left = bed.leave();
    assert_eq!((left.closed.len(), left.waits.len()), (0, 1));
    assert_eq!(left.waits[0].ends().local, at(1, 80));
    assert!(bed.leave().waits.is_empty());
}
