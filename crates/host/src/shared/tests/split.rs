//! Calls in two parts, and those that never wait.

use super::bed::LISTENER;
use super::*;

/// TCP_NODELAY.
fn nodelay(bed: &mut Bed) -> Result<Vec<u8>, Errno> {
    bed.remote.option(SERVER, 6, 1, 4).map(|value| value.to_vec())
}

#[test]
fn while_one_call_waits_others_go_on() {
    let mut bed = Bed::connected(64);
    bed.remote.begin_call();
    assert_eq!(nodelay(&mut bed), Err(Errno::IOCBQUEUED));
    let question = bed.remote.end_call().unwrap();
    bed.peer_writes(b"GET /").unwrap();
    bed.settle();
    assert_eq!(bed.read(10).unwrap(), b"GET /");
    assert_eq!(bed.write(b"200 OK"), Ok(6));
    assert_eq!(bed.remote.name(LISTENER), Ok(at(1, 80)), "another question");
    bed.remote.resume_call(question.wait());
    assert_eq!(nodelay(&mut bed).unwrap(), 0_i32.to_ne_bytes());
    assert!(bed.remote.end_call().is_none() && !bed.is_broken());
}

#[test]
fn an_error_that_was_answered_is_told_whatever_came_meanwhile() {
    let mut bed = Bed::connected(64);
    bed.peer(|peer, _| peer.abort(CLIENT));
    bed.settle();
    bed.remote.begin_call();
    assert_eq!(bed.read(10), Err(Errno::IOCBQUEUED));
    let question = bed.remote.end_call().unwrap();
    bed.settle();
    bed.remote.resume_call(question.wait());
    assert_eq!(bed.read(10), Err(Errno::CONNRESET));
    assert!(bed.remote.end_call().is_none());
    assert_eq!(bed.read(10), Ok(vec![]));
}

#[test]
fn a_connection_is_accepted_though_its_listener_is_closed_meanwhile() {
    let mut bed = Bed::connected(64);
    let (client, server) = (Id(7), Id(8));
    bed.peer(|peer, now| {
        peer.open(client, Domain::V4, Kind::Stream).unwrap();
        let begun = peer.connect(client, now, at(2, 0).ip(), at(1, 80));
        assert_eq!(begun, Err(Errno::INPROGRESS));
    });
    bed.settle();
    bed.remote.begin_call();
    assert_eq!(bed.remote.accept(LISTENER, server), Err(Errno::IOCBQUEUED));
    let question = bed.remote.end_call().unwrap();
    bed.remote.close(LISTENER);
    bed.remote.resume_call(question.wait());
    assert_eq!(bed.remote.accept(LISTENER, server).map(|ends| ends.0), Ok(at(1, 80)));
    assert!(bed.remote.end_call().is_none() && bed.remote.has(server));
    assert!(bed.remote.mask(server).has(Mask::WRITE));
}

#[test]
fn who_closes_in_two_parts_hears_what_lingers_and_nobody_else_waits() {
    let linger = [1_i32, 2].map(i32::to_ne_bytes).concat();
    let lingers = || {
        let mut bed = Bed::connected(64);
        bed.remote.set_option(SERVER, 1, 13, &linger).unwrap();
        assert!(bed.remote.lingers(SERVER));
        bed
    };
    let mut bed = lingers();
    bed.remote.begin_call();
    assert_eq!(bed.remote.close(SERVER), None);
    let question = bed.remote.end_call().unwrap();
    assert!(bed.remote.has(SERVER), "until it is answered");
    bed.remote.resume_call(question.wait());
    let lingering = bed.remote.close(SERVER).unwrap();
    assert!(bed.remote.end_call().is_none() && !bed.remote.has(SERVER));
    assert!(lingering.timeout == 2_000_000_000 && bed.remote.is_lingering(&lingering));
    bed.settle();
    assert!(!bed.remote.is_lingering(&lingering));
    let mut bed = lingers();
    let host = Arc::clone(&bed.host);
    // Whoever asked the worker would wait for ever: it is held.
    let held = host.lock().unwrap();
    assert_eq!(bed.remote.close(SERVER), None);
    drop(held);
    bed.settle();
    assert_eq!(bed.peer_reads(10), Ok(vec![]));
}

#[test]
fn who_closes_waits_for_what_the_stack_has_not_taken_yet_too() {
    let linger = [1_i32, 2].map(i32::to_ne_bytes).concat();
    let mut bed = Bed::connected(64);
    bed.remote.set_option(SERVER, 1, 13, &linger).unwrap();
    // The peer reads nothing: more than the stack's own buffer takes.
    let (data, mut sent) = (bytes(120_000), 0);
    for _ in 0..100 {
        let Ok(some) = bed.write(&data) else { break };
        sent += some;
        bed.settle();
    }
    bed.remote.begin_call();
    assert_eq!(bed.remote.close(SERVER), None);
    let question = bed.remote.end_call().unwrap();
    bed.remote.resume_call(question.wait());
    let lingering = bed.remote.close(SERVER).unwrap();
    assert!(bed.remote.end_call().is_none() && lingering.timeout == 2_000_000_000);
    bed.settle();
    assert!(bed.held_beside() > 0 && bed.remote.is_lingering(&lingering));
    let got = bed.peer_reads_to_its_end().len();
    bed.settle();
    assert!(got == sent && !bed.remote.is_lingering(&lingering) && !bed.is_broken());
}

#[test]
fn a_call_whose_worker_goes_fails_and_asks_the_next_one_anew() {
    let mut bed = Bed::connected(64);
    let mut ask = || {
        bed.remote.begin_call();
        assert_eq!(nodelay(&mut bed), Err(Errno::IOCBQUEUED));
        bed.remote.end_call().unwrap()
    };
    let (first, second) = (ask(), ask());
    bed.remote.lose();
    bed.remote.resume_call(first.wait());
    assert_eq!(nodelay(&mut bed), Err(Errno::NETDOWN));
    assert!(bed.remote.end_call().is_none());
    let mut next = Bed::connected(64);
    next.remote.resume_call(second.wait());
    assert_eq!(nodelay(&mut next), Err(Errno::IOCBQUEUED));
    let question = next.remote.end_call().unwrap();
    next.remote.resume_call(question.wait());
    assert_eq!(nodelay(&mut next).unwrap(), 0_i32.to_ne_bytes());
}

#[test]
fn who_sends_and_closes_does_not_wait_for_room_in_the_ring() {
    let mut bed = Bed::connected(64);
    let look = call::command(call::Verb::Look, LISTENER, |_| {});
    while bed.remote.end.commands.push(&look, shm::Meta::default()).is_ok() {}
    let host = Arc::clone(&bed.host);
    // Whoever waited for the worker would do so for ever: it is held.
    let held = host.lock().unwrap();
    assert_eq!(bed.write(b"late"), Ok(4));
    bed.remote.close(SERVER);
    assert!(bed.remote.is_starving());
    drop(held);
    bed.settle();
    bed.remote.hear();
    bed.settle();
    assert_eq!((bed.peer_reads(10), bed.peer_reads(10)), (Ok(b"late".to_vec()), Ok(vec![])));
    assert!(!bed.remote.is_starving() && !bed.is_broken());
}

#[test]
fn who_asks_while_the_ring_is_full_does_not_wait_for_room_in_the_call() {
    let mut bed = Bed::connected(64);
    let look = call::command(call::Verb::Look, LISTENER, |_| {});
    while bed.remote.end.commands.push(&look, shm::Meta::default()).is_ok() {}
    let host = Arc::clone(&bed.host);
    // Whoever waited for the worker would do so for ever: it is held.
    let held = host.lock().unwrap();
    bed.remote.begin_call();
    assert_eq!(nodelay(&mut bed), Err(Errno::IOCBQUEUED));
    let question = bed.remote.end_call().unwrap();
    drop(held);
    bed.remote.resume_call(question.wait());
    assert_eq!(nodelay(&mut bed), Err(Errno::IOCBQUEUED), "now it is asked");
    let question = bed.remote.end_call().unwrap();
    bed.remote.resume_call(question.wait());
    assert_eq!(nodelay(&mut bed).unwrap(), 0_i32.to_ne_bytes());
    assert!(bed.remote.end_call().is_none() && !bed.is_broken());
}

#[test]
fn what_one_call_disconnects_is_not_connected_for_others() {
    let mut bed = Bed::connected(64);
    bed.peer_writes(b"GET /").unwrap();
    bed.settle();
    assert_eq!(bed.read(3).unwrap(), b"GET");
    assert_eq!(bed.write(b"200"), Ok(3));
    bed.remote.begin_call();
    assert_eq!(bed.remote.disconnect(SERVER), Err(Errno::IOCBQUEUED));
    let question = bed.remote.end_call().unwrap();
    // Before the worker has come to it, and afterwards.
    for _ in 0..2 {
        assert_eq!(bed.remote.mask(SERVER) & !Mask::ERR, Mask::WRITE | Mask::HUP);
        assert_eq!(bed.remote.pending(SERVER), Ok(0));
        bed.settle();
    }
    assert_eq!((bed.read(9), bed.read(9)), (Err(Errno::CONNRESET), Err(Errno::NOTCONN)));
    assert_eq!(bed.write(b"x"), Err(Errno::PIPE));
    bed.remote.add_ports(20_000, 16);
    let begun = bed.remote.connect(SERVER, at(1, 0).ip(), at(2, 80));
    assert_eq!(begun, Err(Errno::INPROGRESS));
    bed.remote.resume_call(question.wait());
    assert_eq!(bed.remote.disconnect(SERVER), Ok(()));
    assert!(bed.remote.end_call().is_none());
    assert_eq!(bed.remote.mask(SERVER), Mask::NONE, "that was before the connect");
    assert!(!bed.remote.is_lost() && !bed.is_broken());
}

#[test]
fn what_the_worker_was_not_asked_to_disconnect_yet_is_connected() {
    let mut bed = Bed::connected(64);
    bed.peer_writes(b"GET /").unwrap();
    bed.settle();
    let look = call::command(call::Verb::Look, LISTENER, |_| {});
    while bed.remote.end.commands.push(&look, shm::Meta::default()).is_ok() {}
    let disconnect = |bed: &mut Bed| {
        assert_eq!(bed.remote.disconnect(SERVER), Err(Errno::IOCBQUEUED));
        bed.remote.end_call().unwrap()
    };
    bed.remote.begin_call();
    let question = disconnect(&mut bed);
    assert_eq!(bed.read(9).unwrap(), b"GET /");
    bed.remote.resume_call(question.wait());
    let question = disconnect(&mut bed);
    assert_eq!(bed.remote.mask(SERVER), Mask::WRITE | Mask::HUP, "now it is asked");
    bed.remote.resume_call(question.wait());
    assert_eq!(bed.remote.disconnect(SERVER), Ok(()));
    assert!(bed.remote.end_call().is_none() && !bed.is_broken());
}

#[test]
fn who_leaves_new_connections_to_others_waits_for_nobody() {
    let mut bed = Bed::connected(64);
    let host = Arc::clone(&bed.host);
    // Whoever waited for the worker would do so for ever: it is held.
    let held = host.lock().unwrap();
    bed.remote.spare_resets(81, u64::MAX);
    drop(held);
    let connect = |bed: &mut Bed, id: Id, port: u16| {
        bed.peer(|peer, now| {
            peer.open(id, Domain::V4, Kind::Stream).unwrap();
            let begun = peer.connect(id, now, at(2, 0).ip(), at(1, port));
            assert_eq!(begun, Err(Errno::INPROGRESS));
        });
        bed.settle();
        bed.peer(|peer, _| peer.mask(id).has(Mask::ERR))
    };
    assert!(!connect(&mut bed, Id(7), 81) && connect(&mut bed, Id(8), 82));
    let held = host.lock().unwrap();
    bed.remote.keep_quiet(u64::MAX);
    drop(held);
    assert!(!connect(&mut bed, Id(9), 82) && !bed.is_broken());
}
