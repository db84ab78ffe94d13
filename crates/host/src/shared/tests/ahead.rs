//! Streams that begin in their process before the worker has heard of them.

use super::bed::LISTENER;
use super::*;
use crate::Template;

const FRESH: Mask = Mask(Mask::WRITE.0 | Mask::HUP.0);

/// What streams are opened like of which nothing was set, and ports for them.
fn prepare(bed: &mut Bed) -> Template {
    bed.remote.add_ports(20_000, 16);
    bed.remote.open_with(Id(60), Domain::V4, &[]).unwrap()
}

fn connect(bed: &mut Bed) -> Result<(), Errno> {
    bed.remote.connect(SERVER, at(1, 0).ip(), at(2, 80))
}

#[test]
fn nobody_waits_for_a_stream_like_others() {
    let mut bed = Bed::new(64);
    let template = prepare(&mut bed);
    let host = Arc::clone(&bed.host);
    // Whoever asked the worker would wait for ever: it is held.
    let held = host.lock().unwrap();
    bed.remote.touched = false;
    bed.remote.open_like(SERVER, &template).unwrap();
    assert!(bed.remote.mask(SERVER) == FRESH && !bed.remote.touched);
    assert_eq!(bed.remote.open_like(SERVER, &template), Err(Errno::EXIST));
    assert_eq!(bed.remote.open_like(Id(SESSIONS), &template), Err(Errno::MFILE));
    drop(held);
    assert_eq!(connect(&mut bed), Err(Errno::INPROGRESS));
    assert_eq!(bed.remote.mask(SERVER), Mask::NONE, "the record is its own by now");
    bed.remote.lose();
    assert_eq!(bed.remote.open_like(CLIENT, &template), Err(Errno::NETDOWN));
    assert!(!bed.is_broken());
}

#[test]
fn streams_come_and_go_at_one_number_while_the_worker_is_behind() {
    let mut bed = Bed::new(64);
    let template = prepare(&mut bed);
    bed.peer_listens();
    for round in 1..4_u8 {
        bed.remote.open_like(SERVER, &template).unwrap();
        assert_eq!((bed.remote.mask(SERVER), bed.remote.pending(SERVER)), (FRESH, Ok(0)));
        assert_eq!(connect(&mut bed), Err(Errno::INPROGRESS));
        bed.settle();
        assert!(bed.told(SERVER).has(Mask::OUT) && bed.remote.mask(SERVER) == Mask::WRITE);
        bed.peer(|peer, _| peer.accept(LISTENER, CLIENT).unwrap());
        bed.peer_writes(&[round; 5]).unwrap();
        bed.settle();
        assert_eq!(bed.read(10).unwrap(), [round; 5]);
        assert_eq!(bed.write(&[round; 9]), Ok(9));
        bed.remote.close(SERVER);
        if round == 2 {
            // Before anything is known of the next one, that is closed, too.
            bed.remote.open_like(SERVER, &template).unwrap();
            bed.remote.close(SERVER);
        }
        bed.remote.open_like(SERVER, &template).unwrap();
        assert_eq!((bed.remote.mask(SERVER), bed.remote.pending(SERVER)), (FRESH, Ok(0)));
        assert_eq!(bed.told(SERVER), Mask::NONE, "data came for the one before");
        bed.settle();
        assert_eq!(bed.peer_reads(10).unwrap(), [round; 9]);
        assert_eq!(bed.peer_reads(10), Ok(vec![]));
        bed.peer(|peer, _| peer.close(CLIENT));
        bed.remote.close(SERVER);
    }
    assert!(!bed.remote.is_lost() && !bed.is_broken());
}

#[test]
fn what_the_worker_could_not_open_fails_with_its_connect_and_begins_again() {
    let mut bed = Bed::new(64);
    let template = prepare(&mut bed);
    let epoch = bed.remote.next_epoch();
    bed.remote.begin_ahead(SERVER, own::Kept::default(), epoch);
    bed.remote.own(SERVER).unwrap().template = Some(template);
    assert_eq!(connect(&mut bed), Err(Errno::NOBUFS));
    assert_eq!((bed.remote.mask(SERVER), bed.write(b"x")), (FRESH, Err(Errno::PIPE)));
    assert_eq!(connect(&mut bed), Err(Errno::INPROGRESS));
    assert!(!bed.remote.is_lost() && !bed.is_broken());
}

#[test]
fn a_session_of_which_its_process_has_not_heard_gives_way() {
    let mut bed = Bed::new(64);
    let template = prepare(&mut bed);
    bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
    // Whoever has asked for it did not wait for the answer.
    bed.remote.end(SERVER);
    bed.remote.open_like(SERVER, &template).unwrap();
    assert_eq!(connect(&mut bed), Err(Errno::INPROGRESS));
    assert_eq!(bed.remote.mask(SERVER), Mask::NONE);
    assert!(!bed.is_broken());
}

#[test]
fn what_was_shut_down_before_it_was_connected_stays_so() {
    let deaf = Mask::READ | Mask::WRITE | Mask::RDHUP;
    let cases = [(How::Read, deaf), (How::Write, Mask::WRITE), (How::Both, deaf | Mask::HUP)];
    for (how, mask) in cases {
        let mut bed = Bed::new(64);
        let template = prepare(&mut bed);
        bed.peer_listens();
        bed.remote.open_like(SERVER, &template).unwrap();
        assert_eq!(bed.remote.shutdown(SERVER, how), Err(Errno::NOTCONN));
        assert_eq!(connect(&mut bed), Err(Errno::INPROGRESS));
        bed.settle();
        assert_eq!(bed.remote.mask(SERVER), mask);
        assert_eq!(connect(&mut bed), Ok(()));
        bed.peer(|peer, _| peer.accept(LISTENER, CLIENT).unwrap());
        let sent = if how == How::Read { Ok(5) } else { Err(Errno::PIPE) };
        assert_eq!(bed.write(b"GET /"), sent);
        bed.peer_writes(b"220").unwrap();
        bed.settle();
        assert_eq!(bed.read(9).unwrap(), b"220");
        let end = if how == How::Write { Err(Errno::AGAIN) } else { Ok(Vec::new()) };
        assert_eq!(bed.read(9), end);
        assert!(!bed.peer(|peer, _| peer.mask(CLIENT)).has(Mask::RDHUP), "nobody has told it");
        assert_eq!(bed.remote.shutdown(SERVER, How::Write), Ok(()));
        bed.settle();
        assert!(bed.peer(|peer, _| peer.mask(CLIENT)).has(Mask::RDHUP));
        assert!(!bed.is_broken());
    }
}
