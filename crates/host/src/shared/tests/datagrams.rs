//! Sockets for datagrams of a process on a stack worker.

use super::*;

const SOCKET: Id = Id(8);

/// The process has a socket at port 53, the peer one at 10.0.0.2:9000.
fn bed(domain: Domain) -> Bed {
    let mut bed = Bed::new(64);
    bed.remote.open(SOCKET, domain, Kind::Datagram).unwrap();
    let any: std::net::IpAddr =
        if domain == Domain::V4 { "0.0.0.0".parse().unwrap() } else { "::".parse().unwrap() };
    bed.remote.bind(SOCKET, (any, 53).into()).unwrap();
    bed.peer(|peer, _| {
        peer.open(CLIENT, Domain::V4, Kind::Datagram).unwrap();
        peer.bind(CLIENT, at(2, 9000)).unwrap();
    });
    bed
}

fn peer_sends(bed: &mut Bed, data: &[u8]) {
    let outgoing = Outgoing { to: Some(at(1, 53)), ..Outgoing::default() };
    let sent = bed.peer(|peer, _| peer.send(CLIENT, &[IoSlice::new(data)], outgoing));
    assert_eq!(sent, Ok(data.len()));
    bed.settle();
}

fn peer_gets(bed: &mut Bed) -> Result<Vec<u8>, Errno> {
    bed.peer_reads(70_000)
}

fn get(bed: &mut Bed, room: usize, incoming: Incoming) -> Result<(Vec<u8>, crate::Shape), Errno> {
    let mut bytes = vec![0; room];
    let mut targets = [IoSliceMut::new(&mut bytes)];
    let got = bed.remote.recv(SOCKET, &mut targets, incoming)?;
    bytes.truncate(got.bytes);
    Ok((bytes, got.shape.unwrap()))
}

fn send(bed: &mut Bed, data: &[u8], outgoing: Outgoing) -> Result<usize, Errno> {
    let (front, back) = data.split_at(data.len() / 2);
    bed.remote.send(SOCKET, &[IoSlice::new(front), IoSlice::new(back)], outgoing)
}

fn to_peer() -> Outgoing {
    Outgoing { to: Some(at(2, 9000)), source: Some(at(1, 0).ip()), ..Outgoing::default() }
}

#[test]
fn datagrams_go_both_ways_whole_and_unasked() {
    let mut bed = bed(Domain::V4);
    assert_eq!(bed.remote.mask(SOCKET), Mask::WRITE | Mask::WRBAND);
    assert_eq!(get(&mut bed, 10, Incoming::default()), Err(Errno::AGAIN));
    for data in [&b"one"[..], b"", b"three"] {
        peer_sends(&mut bed, data);
    }
    assert!(bed.told(SOCKET).has(Mask::IN));
    assert!(bed.remote.mask(SOCKET).has(Mask::IN) && bed.remote.pending(SOCKET) == Ok(3));
    let peek = Incoming { peek: true, ..Incoming::default() };
    unasked(&mut bed, |bed| {
        assert_eq!(get(bed, 10, peek).unwrap().0, b"one");
        let (data, shape) = get(bed, 2, Incoming::default()).unwrap();
        assert_eq!((&data[..], shape.length), (&b"on"[..], 3), "the rest is lost");
        assert_eq!((shape.from, shape.to.ip()), (at(2, 9000), at(1, 0).ip()));
        assert!(shape.at > 0 && shape.ttl > 0);
        assert_eq!(get(bed, 10, Incoming::default()).unwrap().0, b"");
        assert_eq!(get(bed, 10, Incoming::default()).unwrap().0, b"three");
    });
    assert!(!bed.remote.mask(SOCKET).has(Mask::IN));
    unasked(&mut bed, |bed| {
        assert!(bed.remote.has_port(SOCKET));
        assert_eq!(bed.remote.name(SOCKET).unwrap().port(), 53);
        assert_eq!(send(bed, b"answer", to_peer()), Ok(6));
        assert_eq!(send(bed, b"", to_peer()), Ok(0));
    });
    bed.settle();
    assert_eq!(
        (peer_gets(&mut bed).unwrap(), peer_gets(&mut bed).unwrap()),
        (b"answer".to_vec(), vec![])
    );
    assert_eq!(peer_gets(&mut bed), Err(Errno::AGAIN));
    assert!(!bed.is_broken());
}

#[test]
fn what_waits_in_the_fifos_is_shown() {
    let mut bed = bed(Domain::V4);
    let table = bed.show();
    let queues = |bed: &mut Bed| {
        bed.look();
        let all: Vec<_> = table.sockets().collect();
        let [one] = all[..] else { panic!("{all:?}") };
        assert_eq!((one.local, one.remote), ("0.0.0.0:53".parse().unwrap(), None));
        one.queues
    };
    assert_eq!(queues(&mut bed), (0, 0));
    peer_sends(&mut bed, &bytes(1000));
    let (unread, unsent) = queues(&mut bed);
    assert!((1000..1200).contains(&unread) && unsent == 0, "{unread} {unsent}");
    assert_eq!(get(&mut bed, 2000, Incoming::default()).unwrap().0, bytes(1000));
    bed.remote.name(SOCKET).unwrap();
    unasked(&mut bed, |bed| send(bed, &bytes(500), to_peer())).unwrap();
    let (unread, unsent) = queues(&mut bed);
    assert!((500..700).contains(&unsent) && unread == 0, "{unread} {unsent}");
    bed.settle();
    assert_eq!(queues(&mut bed), (0, 0));
    assert!(!bed.is_broken());
}

#[test]
fn what_waits_in_the_stack_counts() {
    let mut bed = bed(Domain::V4);
    assert_eq!(bed.held_beside(), 0);
    // More than the memory takes that both have.
    (0..200).for_each(|_| peer_sends(&mut bed, &bytes(1400)));
    assert!(bed.held_beside() > 50_000, "{}", bed.held_beside());
    while get(&mut bed, 2000, Incoming::default()).is_ok() {
        bed.settle();
    }
    assert_eq!(bed.held_beside(), 0);
    // One that is written in pieces.
    let more = Outgoing { more: true, ..to_peer() };
    assert_eq!(send(&mut bed, &bytes(1000), more), Ok(1000));
    assert!(bed.held_beside() >= 1000);
    assert_eq!(send(&mut bed, b"end", to_peer()), Ok(3));
    assert_eq!(bed.held_beside(), 0);
    assert_eq!(send(&mut bed, &bytes(1000), more), Ok(1000));
    bed.remote.close(SOCKET);
    bed.settle();
    assert_eq!(bed.held_beside(), 0);
    assert!(!bed.is_broken());
}

#[test]
fn what_may_be_refused_is_asked_about() {
    let mut bed = bed(Domain::V6);
    let mapped = Outgoing { to: Some("[::ffff:10.0.0.2]:9000".parse().unwrap()), ..to_peer() };
    assert_eq!(send(&mut bed, b"x", Outgoing::default()), Err(Errno::DESTADDRREQ));
    let nowhere = Outgoing { to: Some("[::ffff:10.0.0.2]:0".parse().unwrap()), ..to_peer() };
    assert_eq!(send(&mut bed, b"x", nowhere), Err(Errno::INVAL));
    assert_eq!(send(&mut bed, &bytes(65_536), mapped), Err(Errno::MSGSIZE));
    bed.remote.name(SOCKET).unwrap();
    assert_eq!(unasked(&mut bed, |bed| send(bed, b"mapped", mapped)), Ok(6));
    // In pieces, and behind what was written before.
    assert_eq!(send(&mut bed, b"in ", Outgoing { more: true, ..mapped }), Ok(3));
    assert_eq!(send(&mut bed, b"pieces", mapped), Ok(6));
    // UDP_SEGMENT, for one call and as an option.
    assert_eq!(send(&mut bed, b"aabb", Outgoing { segment_size: 2, ..mapped }), Ok(4));
    bed.remote.set_option(SOCKET, 17, 103, &3_i32.to_ne_bytes()).unwrap();
    assert_eq!(send(&mut bed, b"cccddd", mapped), Ok(6));
    bed.settle();
    for expected in [&b"mapped"[..], b"in pieces", b"aa", b"bb", b"ccc", b"ddd"] {
        assert_eq!(peer_gets(&mut bed).unwrap(), expected);
    }
    // IPV6_V6ONLY.
    bed.remote.set_option(SOCKET, 17, 103, &0_i32.to_ne_bytes()).unwrap();
    let mut other = Bed::new(64);
    other.remote.open(SOCKET, Domain::V6, Kind::Datagram).unwrap();
    other.remote.set_option(SOCKET, 41, 26, &1_i32.to_ne_bytes()).unwrap();
    other.remote.bind(SOCKET, "[::]:53".parse().unwrap()).unwrap();
    other.remote.name(SOCKET).unwrap();
    assert_eq!(send(&mut other, b"x", mapped), Err(Errno::NETUNREACH));
    // IPV6_RECVPKTINFO is known without asking.
    bed.remote.set_option(SOCKET, 41, 49, &1_i32.to_ne_bytes()).unwrap();
    assert!(unasked(&mut bed, |bed| bed.remote.wanted(SOCKET)).unwrap().packet_info.1);
    assert!(!bed.is_broken());
}

#[test]
fn a_connected_one_is_told_of_its_peer() {
    let mut bed = bed(Domain::V4);
    bed.remote.connect(SOCKET, at(1, 0).ip(), at(2, 9001)).unwrap();
    assert!(!bed.remote.has_port(SOCKET), "nobody has asked");
    assert_eq!(bed.remote.name(SOCKET), Ok(at(1, 53)));
    assert!(bed.remote.has_port(SOCKET));
    // IP_RECVERR.
    bed.remote.set_option(SOCKET, 0, 11, &1_i32.to_ne_bytes()).unwrap();
    let sent = unasked(&mut bed, |bed| send(bed, b"nobody", Outgoing::default()));
    assert_eq!(sent, Ok(6));
    bed.settle();
    assert!(bed.told(SOCKET).has(Mask::ERR) && bed.remote.mask(SOCKET).has(Mask::ERR));
    assert_eq!(send(&mut bed, b"x", Outgoing::default()), Err(Errno::CONNREFUSED));
    let errors = Incoming { errors: true, ..Incoming::default() };
    let (data, shape) = get(&mut bed, 100, errors).unwrap();
    assert_eq!((&data[..], shape.report.unwrap().errno), (&b"nobody"[..], Errno::CONNREFUSED));
    assert_eq!(shape.from, at(2, 9001));
    assert_eq!(get(&mut bed, 100, errors), Err(Errno::AGAIN));
    assert!(!bed.remote.mask(SOCKET).has(Mask::ERR));
    assert_eq!(send(&mut bed, b"again", Outgoing::default()), Ok(5));
    bed.remote.disconnect(SOCKET).unwrap();
    assert_eq!(send(&mut bed, b"x", Outgoing::default()), Err(Errno::DESTADDRREQ));
    assert!(!bed.is_broken());
}

#[test]
fn an_error_that_comes_while_a_datagram_waits_is_for_the_next_call() {
    let mut bed = bed(Domain::V4);
    bed.remote.connect(SOCKET, at(1, 0).ip(), at(2, 9001)).unwrap();
    bed.remote.name(SOCKET).unwrap();
    assert_eq!(unasked(&mut bed, |bed| send(bed, b"nobody", Outgoing::default())), Ok(6));
    let host = Arc::clone(&bed.host);
    (0..2).for_each(|_| assert!(host.lock().unwrap().step()));
    // The peer's answer has reached the stack, and the process does not know of it.
    assert!(!bed.remote.mask(SOCKET).has(Mask::ERR));
    assert_eq!(unasked(&mut bed, |bed| send(bed, b"again", to_peer())), Ok(5));
    bed.settle();
    assert_eq!(peer_gets(&mut bed).unwrap(), b"again");
    assert!(bed.remote.mask(SOCKET).has(Mask::ERR));
    assert_eq!(get(&mut bed, 10, Incoming::default()), Err(Errno::CONNREFUSED));
    assert!(!bed.is_broken());
}

#[test]
fn a_full_fifo_loses_nothing_that_has_come() {
    // Chunks for one long datagram, but not for two.
    let mut bed = Bed::new(20);
    bed.remote.open(SOCKET, Domain::V4, Kind::Datagram).unwrap();
    bed.remote.bind(SOCKET, at(1, 53)).unwrap();
    bed.peer(|peer, _| {
        peer.open(CLIENT, Domain::V4, Kind::Datagram).unwrap();
        peer.bind(CLIENT, at(2, 9000)).unwrap();
    });
    for length in [1_000, 1_400, 0, 1_200] {
        (0..50).for_each(|_| peer_sends(&mut bed, &bytes(length)));
    }
    for length in [1_000, 1_400, 0, 1_200] {
        for number in 0..50 {
            bed.settle();
            assert!(bed.remote.mask(SOCKET).has(Mask::IN), "{length} {number}");
            assert_eq!(get(&mut bed, 2_000, Incoming::default()).unwrap().0, bytes(length));
        }
    }
    // The worker takes nothing out meanwhile.
    bed.remote.name(SOCKET).unwrap();
    let sent = unasked(&mut bed, |bed| {
        (0..1_000).take_while(|_| send(bed, &bytes(1_200), to_peer()).is_ok()).count()
    });
    assert!((20..200).contains(&sent), "{sent}");
    assert!(!bed.remote.mask(SOCKET).has(Mask::OUT) || bed.remote.is_starving());
    let mut came = 0;
    bed.settle();
    while let Ok(data) = peer_gets(&mut bed) {
        assert_eq!(data, bytes(1_200));
        came += 1;
        bed.settle();
    }
    assert_eq!(came, sent);
    assert!(bed.told(SOCKET).has(Mask::OUT) && bed.remote.mask(SOCKET).has(Mask::OUT));
    assert!(!bed.is_broken());
}

#[test]
fn its_end_and_a_lost_worker() {
    let mut bed = bed(Domain::V4);
    assert_eq!(bed.remote.shutdown(SOCKET, How::Read), Err(Errno::NOTCONN));
    assert!(bed.remote.mask(SOCKET).has(Mask::IN | Mask::RDHUP));
    bed.remote.name(SOCKET).unwrap();
    assert_eq!(send(&mut bed, b"last", to_peer()), Ok(4));
    bed.remote.close(SOCKET);
    bed.settle();
    assert_eq!(peer_gets(&mut bed).unwrap(), b"last");
    assert!(bed.remote.is_drained());
    bed.remote.open(SOCKET, Domain::V4, Kind::Datagram).unwrap();
    assert_eq!(bed.remote.mask(SOCKET), Mask::WRITE | Mask::WRBAND);
    bed.remote.bind(SOCKET, at(1, 53)).unwrap();
    peer_sends(&mut bed, b"kept");
    bed.remote.lose();
    assert!(!bed.remote.mask(SOCKET).has(Mask::ERR), "the kernel serves it still");
    assert_eq!(get(&mut bed, 10, Incoming::default()).unwrap().0, b"kept");
    assert_eq!(get(&mut bed, 10, Incoming::default()), Err(Errno::AGAIN));
    assert_eq!(send(&mut bed, b"lost", to_peer()), Ok(4));
    let mut next = Bed::new(64);
    next.remote.bury(&bed.remote);
    assert_eq!(next.remote.mask(SOCKET), Mask::NONE, "it is opened anew");
}
