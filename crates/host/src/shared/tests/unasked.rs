//! What a process knows without asking its worker.

use super::bed::LISTENER;
use super::*;

#[test]
fn nobody_is_asked_about_the_end_of_data() {
    let mut bed = Bed::connected(64);
    bed.peer_writes(b"bye").unwrap();
    bed.peer(|peer, _| peer.shutdown(CLIENT, How::Write).unwrap());
    bed.settle();
    unasked(&mut bed, |bed| {
        assert_eq!(bed.read(9).unwrap(), b"bye");
        assert_eq!((bed.read(9), bed.read(9)), (Ok(vec![]), Ok(vec![])));
    });
    assert!(!bed.is_broken());
}

#[test]
fn the_end_of_data_comes_behind_what_waits_in_the_stack() {
    let mut bed = Bed::connected(16);
    // More than there are chunks for.
    let (data, mut got) = (bytes(100_000), Vec::new());
    let sent = bed.peer_writes(&data).unwrap();
    bed.settle();
    bed.peer(|peer, _| peer.shutdown(CLIENT, How::Write).unwrap());
    bed.settle();
    assert!(bed.remote.mask(SERVER).has(Mask::RDHUP) && bed.remote.pending(SERVER).unwrap() < sent);
    for _ in 0..1000 {
        match bed.read(50_000) {
            Ok(some) if some.is_empty() => break,
            Ok(some) => got.extend(some),
            Err(error) => assert_eq!(error, Errno::AGAIN),
        }
    }
    assert!(got == data[..sent] && !bed.is_broken());
}

#[test]
fn nobody_is_asked_for_an_error_where_none_is() {
    // SO_ERROR.
    let error = |bed: &mut Bed| bed.remote.option(SERVER, 1, 4, 4).map(|value| value.to_vec());
    let none = 0_i32.to_ne_bytes();
    let mut bed = Bed::connected(64);
    assert_eq!(unasked(&mut bed, error).unwrap(), none);
    bed.peer(|peer, _| peer.abort(CLIENT));
    bed.settle();
    assert_eq!(error(&mut bed).unwrap(), Errno::CONNRESET.0.to_ne_bytes());
    assert_eq!(error(&mut bed).unwrap(), none);
    let mut bed = Bed::new(64);
    bed.remote.add_ports(20_000, 16);
    bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
    let begun = bed.remote.connect(SERVER, at(1, 0).ip(), at(2, 80));
    assert_eq!(begun, Err(Errno::INPROGRESS));
    assert_eq!(unasked(&mut bed, error).unwrap(), none);
    // Nobody listens there.
    bed.settle();
    assert_eq!(error(&mut bed).unwrap(), Errno::CONNREFUSED.0.to_ne_bytes());
    assert!(!bed.is_broken());
}

#[test]
fn nobody_is_asked_to_send_no_more() {
    let shut = |bed: &mut Bed| bed.remote.shutdown(SERVER, How::Write);
    let mut bed = Bed::connected(64);
    let data = bytes(100_000);
    assert_eq!(bed.write(&data), Ok(data.len()));
    assert_eq!(unasked(&mut bed, shut), Ok(()));
    assert_eq!(bed.write(b"more"), Err(Errno::PIPE));
    assert_eq!(bed.peer_reads_to_its_end(), data);
    assert!(!bed.remote.mask(SERVER).has(Mask::HUP), "the peer may send");
    let mut bed = Bed::connected(64);
    bed.peer(|peer, _| peer.shutdown(CLIENT, How::Write).unwrap());
    bed.settle();
    assert_eq!(unasked(&mut bed, shut), Ok(()));
    assert!(bed.remote.mask(SERVER).has(Mask::HUP), "at once");
    bed.settle();
    assert_eq!(bed.peer_reads(9), Ok(vec![]));
    // Where it may fail, it is asked.
    bed.peer(|peer, _| peer.close(CLIENT));
    bed.remote.close(SERVER);
    bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
    assert_eq!(shut(&mut bed), Err(Errno::NOTCONN));
    assert!(!bed.is_broken());
}

#[test]
fn nobody_is_asked_whether_a_connection_is_established() {
    let connect = |bed: &mut Bed| bed.remote.connect(SERVER, at(1, 0).ip(), at(2, 80));
    for is_shut in [false, true] {
        let mut bed = Bed::new(64);
        bed.peer_listens();
        bed.remote.add_ports(20_000, 16);
        bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
        assert_eq!(connect(&mut bed), Err(Errno::INPROGRESS));
        assert_eq!(connect(&mut bed), Err(Errno::ALREADY));
        bed.settle();
        if is_shut {
            bed.remote.shutdown(SERVER, How::Write).unwrap();
        } else {
            assert_eq!(unasked(&mut bed, connect), Ok(()));
        }
        assert_eq!(connect(&mut bed), Err(Errno::ISCONN));
        assert!(!bed.is_broken());
    }
}

#[test]
fn nobody_is_asked_for_the_addresses_of_a_connection() {
    let ends = |bed: &mut Bed| (bed.remote.name(SERVER), bed.remote.peer(SERVER));
    let mut bed = Bed::new(64);
    bed.peer_listens();
    bed.remote.add_ports(20_000, 16);
    bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
    let begun = bed.remote.connect(SERVER, at(1, 0).ip(), at(2, 80));
    assert_eq!((begun, ends(&mut bed).1), (Err(Errno::INPROGRESS), Err(Errno::NOTCONN)));
    bed.settle();
    let (local, remote) = unasked(&mut bed, ends);
    let accepted = bed.peer(|peer, _| peer.accept(LISTENER, CLIENT)).unwrap();
    assert_eq!((local, remote), (Ok(accepted.1), Ok(at(2, 80))));
    // Of one that is accepted.
    let mut bed = Bed::connected(64);
    let (local, remote) = unasked(&mut bed, ends);
    assert_eq!((local, remote.unwrap().ip()), (Ok(at(1, 80)), at(2, 0).ip()));
    let from = bed.peer(|peer, _| peer.name(CLIENT));
    assert_eq!(remote, from);
    bed.peer(|peer, _| peer.abort(CLIENT));
    bed.settle();
    assert_eq!(bed.remote.peer(SERVER), Err(Errno::NOTCONN));
    assert!(!bed.is_broken());
}

#[test]
fn nobody_is_asked_for_keepalive() {
    let mut bed = Bed::connected(64);
    let set = |bed: &mut Bed, level, name, value: i32| {
        bed.remote.set_option(SERVER, level, name, &value.to_ne_bytes())
    };
    // SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT.
    for (level, name, value) in [(1, 9, 1), (6, 4, 300), (6, 5, 60), (6, 6, 3)] {
        assert_eq!(unasked(&mut bed, |bed| set(bed, level, name, value)), Ok(()));
        let is = bed.remote.option(SERVER, level, name, 4).unwrap();
        assert_eq!(&*is, value.to_ne_bytes());
    }
    // What may be wrong is asked about.
    for (name, value) in [(4, 0), (5, 32_768), (6, 128)] {
        assert_eq!(set(&mut bed, 6, name, value), Err(Errno::INVAL));
    }
    assert!(!bed.is_broken());
}
