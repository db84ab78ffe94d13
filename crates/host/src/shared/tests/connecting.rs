//! Connections that fail, and what follows them at the same session.

use super::bed::LISTENER;
use super::*;

/// The second connection, at the peer.
const NEXT: Id = Id(9);

/// A stream of the process's, and a peer that listens at port 80.
fn prepare() -> Bed {
    let mut bed = Bed::new(64);
    bed.peer_listens();
    bed.remote.add_ports(20_000, 16);
    bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
    bed
}

fn connect(bed: &mut Bed, port: u16) -> Result<(), Errno> {
    bed.remote.connect(SERVER, at(1, 0).ip(), at(2, port))
}

#[test]
fn a_connection_is_not_taken_for_the_one_before_that_was_reset() {
    let mut bed = prepare();
    assert_eq!(connect(&mut bed, 80), Err(Errno::INPROGRESS));
    bed.settle();
    bed.peer(|peer, _| peer.accept(LISTENER, CLIENT).unwrap());
    bed.peer_writes(b"old").unwrap();
    bed.settle();
    assert_eq!(bed.remote.pending(SERVER), Ok(3));
    bed.peer(|peer, _| peer.abort(CLIENT));
    bed.settle();
    assert_eq!(connect(&mut bed, 80), Err(Errno::CONNRESET));
    assert_eq!(bed.remote.mask(SERVER), Mask::WRITE | Mask::HUP);
    assert_eq!(connect(&mut bed, 80), Err(Errno::INPROGRESS));
    assert_eq!(bed.remote.mask(SERVER), Mask::NONE, "nobody has answered");
    assert_eq!(connect(&mut bed, 80), Err(Errno::ALREADY));
    bed.told(SERVER);
    bed.settle();
    assert!(bed.told(SERVER).has(Mask::OUT));
    assert_eq!(connect(&mut bed, 80), Ok(()));
    bed.peer(|peer, _| {
        peer.accept(LISTENER, NEXT).unwrap();
        peer.send(NEXT, &[IoSlice::new(b"new")], Outgoing::default()).unwrap()
    });
    bed.settle();
    assert_eq!(bed.read(10).unwrap(), b"new");
    assert!(!bed.remote.is_lost() && !bed.is_broken());
}

#[test]
fn what_is_known_of_a_connection_that_did_not_come_about_is_not_of_the_next() {
    let mut bed = prepare();
    assert_eq!(connect(&mut bed, 81), Err(Errno::INPROGRESS));
    assert_eq!(bed.remote.shutdown(SERVER, How::Both), Ok(()));
    // MSG_FASTOPEN, without a cookie.
    let source = Some(at(1, 0).ip());
    let outgoing = Outgoing { to: Some(at(2, 80)), source, fast_open: true, ..Outgoing::default() };
    let sent = bed.remote.send(SERVER, &[IoSlice::new(b"GET /")], outgoing);
    assert_eq!(sent, Err(Errno::INPROGRESS));
    bed.settle();
    assert_eq!(bed.remote.mask(SERVER), Mask::WRITE);
    assert_eq!(bed.remote.peer(SERVER), Ok(at(2, 80)));
    assert!(!bed.is_broken());
}
