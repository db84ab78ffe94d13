//! The table in which connections and UDP sockets are shown.

use std::sync::Arc;

use shm::Segment;
use shm::connections::{
    ConnectionsReader, ConnectionsWriter, Count, Record, SocketRecord, State, bytes,
};

use millrace_host::{Domain, Errno, Kind, Sessions};

use crate::pair::{CLIENT, LISTENER, Pair, SERVER, at, recv, send, v4};

const SECOND: u64 = 1_000_000_000;

/// Shows a host's connections, so many at most.
fn show(sessions: &mut Sessions, places: u32) -> ConnectionsReader {
    let length = bytes(places).unwrap();
    let segment = Arc::new(Segment::create("shown", length).unwrap());
    let region = segment.region(0, length).unwrap();
    sessions.show_in(ConnectionsWriter::new(region.clone(), places).unwrap());
    ConnectionsReader::new(region, places).unwrap()
}

fn all(table: &ConnectionsReader) -> Vec<Record> {
    table.records().collect()
}

#[test]
fn a_connection_is_shown_to_wait_until_it_is_accepted() {
    let mut pair = Pair::default();
    let server = show(pair.server(), 4);
    pair.listen(LISTENER, at(v4(1), 80));
    assert_eq!(pair.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    let waits = |table| all(table).iter().map(|one| one.waits).collect::<Vec<_>>();
    assert_eq!(waits(&server), [true]);
    pair.server().accept(LISTENER, SERVER).unwrap();
    let later = pair.now + SECOND;
    pair.server().look(later);
    assert_eq!(waits(&server), [false]);
}

#[test]
fn a_connection_is_shown_from_its_beginning_to_its_end() {
    let mut pair = Pair::default();
    let (server, client) = (show(pair.server(), 4), show(pair.client(), 4));
    pair.establish();
    let [one] = all(&server)[..] else { panic!("{:?}", all(&server)) };
    assert_eq!((one.local, one.remote.ip(), one.state), (at(v4(1), 80), v4(0), State::Established));
    assert!(!one.opened_here && one.sequences.timestamps.is_some() && one.mss > 1000);
    let [other] = all(&client)[..] else { panic!("{:?}", all(&client)) };
    assert_eq!((other.local, other.remote), (one.remote, one.local));
    assert!(other.opened_here && other.since <= one.since);
    pair.server().close(SERVER);
    pair.settle();
    let half = all(&server).iter().map(|one| one.state).collect::<Vec<_>>();
    assert_eq!(half, [State::FinWait2]);
    pair.client().close(CLIENT);
    pair.settle();
    // What is over without its application's doing is found by the next look.
    let now = pair.now;
    pair.server().look(now);
    pair.client().look(now);
    assert_eq!((all(&server), all(&client)), (vec![], vec![]));
    pair.server().close(LISTENER);
}

#[test]
fn a_look_writes_what_has_changed_ten_times_a_second() {
    let mut pair = Pair::default();
    let (server, client) = (show(pair.server(), 4), show(pair.client(), 4));
    pair.establish();
    let now = pair.now;
    pair.server().look(now);
    pair.client().look(now);
    assert_eq!(send(pair.client(), CLIENT, b"request"), Ok(7));
    pair.settle();
    assert_eq!(all(&server)[0].bytes_received, 0, "packets write nothing");
    pair.server().look(now + SECOND / 20);
    assert_eq!(all(&server)[0].bytes_received, 0, "nor does a look that comes too soon");
    pair.run_for(SECOND);
    let now = pair.now;
    pair.server().look(now);
    pair.client().look(now);
    let ([theirs], [ours]) = (&all(&server)[..], &all(&client)[..]) else { panic!("one each") };
    assert_eq!((theirs.bytes_received, theirs.queues.0), (7, 7));
    assert_eq!((ours.bytes_acknowledged, ours.queues.1), (7, 0));
    // A reset that the peer believes stands there.
    assert_eq!(ours.sequences.next, theirs.sequences.expected);
    assert_eq!(theirs.sequences.next, ours.sequences.expected);
    assert!(ours.rtt.0 >= 2000, "{} us", ours.rtt.0);
    assert_eq!((client.count(Count::Connections), client.count(Count::Established)), (1, 1));
    // What the application has read is told to who asks.
    assert_eq!(recv(pair.server(), SERVER, 7).unwrap(), b"request");
    let wish = server.ask();
    pair.server().look(now + SECOND);
    assert!(server.has_answered(wish));
    assert_eq!(all(&server)[0].queues.0, 0);
}

#[test]
fn a_table_that_comes_later_or_is_too_small_shows_what_it_can() {
    let mut pair = Pair::connected();
    let server = show(pair.server(), 1);
    assert_eq!(all(&server).len(), 1, "what there was already");
    let old = all(&server)[0];
    // The next table, of a daemon that was restarted.
    let next = show(pair.server(), 4);
    assert_eq!(all(&next).len(), 1);
    pair.server().close(SERVER);
    pair.settle();
    assert_eq!(all(&server), [old], "nobody writes the old one");
}

fn udp(table: &ConnectionsReader) -> Vec<SocketRecord> {
    table.sockets().collect()
}

#[test]
fn a_udp_socket_is_shown_with_what_waits_and_what_found_no_room() {
    let mut pair = Pair::default();
    // A quarter of the places are for UDP sockets.
    let (server, client) = (show(pair.server(), 4), show(pair.client(), 4));
    pair.server().open(SERVER, Domain::V4, Kind::Datagram).unwrap();
    pair.server().look(0);
    assert!(udp(&server).is_empty(), "without an address it is nowhere");
    // SO_RCVBUF: the least that there is, 2,304 bytes.
    pair.server().set_option(SERVER, 1, 8, &0_i32.to_ne_bytes()).unwrap();
    pair.server().bind(SERVER, at([0, 0, 0, 0].into(), 53)).unwrap();
    pair.client().open(CLIENT, Domain::V4, Kind::Datagram).unwrap();
    let now = pair.now;
    pair.client().connect(CLIENT, now, v4(0), at(v4(1), 53)).unwrap();
    for _ in 0..3 {
        send(pair.client(), CLIENT, &[7; 100]).unwrap();
    }
    pair.client().look(now);
    let [ours] = udp(&client)[..] else { panic!("{:?}", udp(&client)) };
    assert_eq!((ours.local.ip(), ours.remote), (v4(0), Some(at(v4(1), 53))));
    assert_eq!(ours.local, pair.client().name(CLIENT).unwrap());
    assert_eq!((ours.queues, ours.dropped, ours.at), ((0, 3 * (128 + 512)), 0, now));
    pair.settle();
    let now = pair.now + SECOND;
    pair.server().look(now);
    pair.client().look(now);
    let (theirs, ours) = (udp(&server), udp(&client));
    let ([theirs], [ours]) = (&theirs[..], &ours[..]) else { panic!("one each") };
    assert_eq!((theirs.local, theirs.remote), (at([0, 0, 0, 0].into(), 53), None));
    assert_eq!((theirs.queues, theirs.dropped), ((2 * (100 + 768), 0), 1));
    assert_eq!(ours.queues, (0, 0));
    // Who asks gets it anew, changed or not; what has not changed is left alone otherwise.
    let later = now + SECOND;
    pair.server().look(later);
    assert_eq!(udp(&server)[0].at, now);
    let wish = server.ask();
    pair.server().look(later + SECOND);
    assert!(server.has_answered(wish));
    assert_eq!(udp(&server)[0].at, later + SECOND);
    // One more is one more than there are places.
    pair.server().open(LISTENER, Domain::V6, Kind::Datagram).unwrap();
    pair.server().bind(LISTENER, "[::]:54".parse().unwrap()).unwrap();
    pair.server().look(later + 2 * SECOND);
    assert_eq!((udp(&server).len(), server.count(Count::UnlistedSockets)), (1, 1));
    pair.server().close(SERVER);
    pair.server().look(later + 3 * SECOND);
    assert!(udp(&server).is_empty());
}
