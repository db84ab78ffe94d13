//! Options of sockets on a stack worker.

use super::*;
use crate::options::Setting;

#[test]
fn options_come_in_one_record() {
    let mut bed = Bed::new(64);
    let second = [1_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
    let linger = [1_i32.to_ne_bytes(), 2_i32.to_ne_bytes()].concat();
    let on = 1_i32.to_ne_bytes().to_vec();
    // TCP_NODELAY, none, SO_RCVTIMEO, SO_LINGER.
    let all = [(6, 1, on.clone()), (6, 9999, on.clone()), (1, 20, second), (1, 13, linger.clone())];
    let all = all.map(|(level, name, value)| Setting { level, name, value });
    let template = bed.remote.open_with(SERVER, Domain::V4, &all).unwrap();
    bed.remote.open_like(CLIENT, &template).unwrap();
    for id in [SERVER, CLIENT] {
        assert_eq!(*bed.remote.option(id, 6, 1, 4).unwrap(), *on);
        assert_eq!(*bed.remote.option(id, 1, 13, 8).unwrap(), *linger);
        assert_eq!(bed.remote.timeouts(id), Ok((Some(1_000_000_000), None)));
        assert!(bed.remote.lingers(id));
    }
    assert_eq!(bed.remote.open_like(CLIENT, &template), Err(Errno::EXIST));
    assert_eq!(bed.remote.open_with(CLIENT, Domain::V4, &all).err(), Some(Errno::EXIST));
    // SO_BROADCAST, none, IP_RECVTTL.
    let (socket, all) = (Id(9), [(1, 6), (6, 1), (0, 12)]);
    let all = all.map(|(level, name)| Setting { level, name, value: on.clone() });
    bed.remote.open_datagrams(socket, Domain::V4, &all).unwrap();
    assert_eq!(bed.remote.mask(socket), Mask::WRITE | Mask::WRBAND);
    for (level, name) in [(1, 6), (0, 12)] {
        assert_eq!(*bed.remote.option(socket, level, name, 4).unwrap(), *on);
    }
    assert_eq!(bed.remote.open_datagrams(socket, Domain::V4, &all), Err(Errno::EXIST));
    assert!(!bed.is_broken());
}

#[test]
fn nobody_waits_for_a_switch() {
    let mut bed = Bed::connected(64);
    let (on, off) = (1_i32.to_ne_bytes(), 0_i32.to_ne_bytes());
    let host = Arc::clone(&bed.host);
    // TCP_CORK around what is sent, as servers do. Whoever asked the worker would wait for ever: it is held.
    let held = host.lock().unwrap();
    bed.remote.set_option(SERVER, 6, 3, &on).unwrap();
    for piece in [b"head", b"body"] {
        bed.remote.send(SERVER, &[IoSlice::new(piece)], Outgoing::default()).unwrap();
    }
    drop(held);
    bed.settle();
    assert_eq!(bed.peer_reads(10), Err(Errno::AGAIN), "held back by the cork");
    assert_eq!(&*bed.remote.option(SERVER, 6, 3, 4).unwrap(), on);
    bed.remote.set_option(SERVER, 6, 3, &off).unwrap();
    bed.settle();
    assert_eq!(bed.peer_reads(10).unwrap(), b"headbody");
    assert_eq!(&*bed.remote.option(SERVER, 6, 3, 4).unwrap(), off);
    // What may be wrong is asked about.
    assert_eq!(bed.remote.set_option(SERVER, 6, 3, &on[..2]), Err(Errno::INVAL));
    assert_eq!(bed.remote.set_option(Id(60), 6, 3, &on), Err(Errno::BADF));
    assert!(!bed.is_broken());
}

#[test]
fn nobody_waits_for_a_switch_of_a_connection_that_begins() {
    let mut bed = Bed::new(64);
    let on = 1_i32.to_ne_bytes();
    bed.remote.add_ports(20_000, 16);
    bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
    let begun = bed.remote.connect(SERVER, at(1, 0).ip(), at(2, 80));
    assert_eq!(begun, Err(Errno::INPROGRESS));
    let host = Arc::clone(&bed.host);
    let held = host.lock().unwrap();
    // TCP_NODELAY, as clients set it.
    bed.remote.set_option(SERVER, 6, 1, &on).unwrap();
    drop(held);
    assert_eq!(&*bed.remote.option(SERVER, 6, 1, 4).unwrap(), on);
    assert!(!bed.is_broken());
}
