//! Sockets that move to another stack: the application and the peer find them as they were.

use std::net::SocketAddr;

use millrace_host::{Errno, How, Id, Mask, Parts, Sessions};
use proptest::prelude::*;
use transport::{ImportError, Packet};

use super::pair::*;

const MOVED: Id = Id(9);
/// Every option that a stream can be asked for, but for what goes on by itself (`TCP_INFO`, `TCP_TIMESTAMP`) and `SO_ERROR`, which is
/// told once.
const OPTIONS: [(i32, std::ops::Range<i32>); 4] = [(1, 1..80), (6, 1..50), (0, 1..60), (41, 1..80)];

fn options(sessions: &mut Sessions, id: Id) -> Vec<(i32, i32, Result<Vec<u8>, Errno>)> {
    let all = OPTIONS.into_iter().flat_map(|(level, names)| names.map(move |name| (level, name)));
    let all = all.filter(|option| !matches!(option, (1, 4) | (6, 11 | 24)));
    all.map(|(level, name)| {
        let value = sessions.option(id, level, name, 64).map(|value| value.to_vec());
        (level, name, value)
    })
    .collect()
}

/// What an application can see of a socket without changing it.
#[derive(Debug, PartialEq)]
struct Seen {
    mask: Mask,
    names: [Result<SocketAddr, Errno>; 2],
    pending: Result<usize, Errno>,
    unsent: Result<(usize, usize), Errno>,
    timeouts: Result<(Option<u64>, Option<u64>), Errno>,
    options: Vec<(i32, i32, Result<Vec<u8>, Errno>)>,
}

fn seen(sessions: &mut Sessions, id: Id) -> Seen {
    Seen {
        mask: sessions.mask(id),
        names: [sessions.name(id), sessions.peer(id)],
        pending: sessions.pending(id),
        unsent: sessions.unsent(id),
        timeouts: sessions.timeouts(id),
        options: options(sessions, id),
    }
}

/// Moves a host's socket to a new stack, which the host has from then on.
fn move_on(pair: &mut Pair, host: usize, id: Id) {
    let now = pair.now;
    let parcel = pair.hosts[host].sessions.export(id, now).unwrap();
    let mut next = Pair::default().hosts.into_iter().nth(host).unwrap().sessions;
    let ends = next.import(MOVED, now, 0, &parcel.bytes).unwrap();
    assert_eq!(ends, parcel.ends);
    pair.hosts[host].sessions = next;
}

#[test]
fn a_flow_is_claimed_until_it_has_been_handed_over() {
    let mut pair = Pair::default();
    let claims = Claims::of(pair.server());
    pair.establish();
    let (now, server, client) = (pair.now, at(v4(1), 80), pair.client().name(CLIENT).unwrap());
    let parcel = pair.server().export(SERVER, now).unwrap();
    assert!(claims.has(server, client), "nobody else has it yet");
    pair.server().import(SERVER, now, 0, &parcel.bytes).unwrap();
    pair.settle();
    assert!(claims.has(server, client), "it has come back");
    pair.server().export(SERVER, now).unwrap();
    pair.settle();
    assert!(!claims.has(server, client));
}

#[test]
fn the_claim_of_a_moved_flow_ends_where_time_wait_begins() {
    let mut pair = Pair::connected();
    let (now, server, client) = (pair.now, at(v4(1), 80), pair.client().name(CLIENT).unwrap());
    let parcel = pair.server().export(SERVER, now).unwrap();
    // A stack whose time stamps differ.
    pair.hosts[1] = Host::new(3);
    let claims = Claims::of(pair.server());
    pair.server().import(SERVER, now, 0, &parcel.bytes).unwrap();
    assert!(claims.has(server, client));
    pair.server().close(SERVER);
    pair.settle();
    assert!(claims.has(server, client));
    pair.client().close(CLIENT);
    pair.settle();
    assert!(!claims.has(server, client));
}

#[derive(Debug, Clone)]
enum Act {
    Option(i32, i32, i32),
    Send(usize, usize),
    Recv(usize, usize),
    Shut(usize, How),
    Exchange,
    Settle,
}

fn act() -> impl Strategy<Value = Act> {
    let how = prop_oneof![Just(How::Read), Just(How::Write), Just(How::Both)];
    prop_oneof![
        (prop_oneof![Just(1), Just(6), Just(0)], 1..40, 0..200)
            .prop_map(|(level, name, value)| Act::Option(level, name, value)),
        (0..2usize, 1..40_000usize).prop_map(|(host, bytes)| Act::Send(host, bytes)),
        (0..2usize, 1..40_000usize).prop_map(|(host, bytes)| Act::Recv(host, bytes)),
        (0..2usize, how).prop_map(|(host, how)| Act::Shut(host, how)),
        Just(Act::Exchange),
        Just(Act::Settle),
    ]
}

/// A stream's bytes: each tells where it stands.
fn bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|at| (at % 251) as u8).collect()
}

/// What was written and read by each side.
#[derive(Default)]
struct Flow {
    written: [usize; 2],
    read: [usize; 2],
}

impl Flow {
    fn send(&mut self, pair: &mut Pair, (host, id): (usize, Id), count: usize) {
        let data = bytes(self.written[host], count);
        if let Ok(sent) = send(&mut pair.hosts[host].sessions, id, &data) {
            self.written[host] += sent;
        }
    }

    fn recv(&mut self, pair: &mut Pair, (host, id): (usize, Id), most: usize) -> usize {
        let Ok(got) = recv(&mut pair.hosts[host].sessions, id, most) else { return 0 };
        assert_eq!(got, bytes(self.read[host], got.len()), "host {host}");
        self.read[host] += got.len();
        got.len()
    }
}

fn perform(pair: &mut Pair, flow: &mut Flow, ids: [Id; 2], act: Act) {
    match act {
        Act::Option(level, name, value) => {
            let value = [value.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
            let _ = pair.server().set_option(ids[1], level, name, &value);
        }
        Act::Send(host, count) => flow.send(pair, (host, ids[host]), count),
        Act::Recv(host, most) => {
            flow.recv(pair, (host, ids[host]), most);
        }
        Act::Shut(host, how) => {
            let _ = pair.hosts[host].sessions.shutdown(ids[host], how);
        }
        Act::Exchange => pair.exchange(),
        Act::Settle => pair.settle(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn nobody_sees_the_difference(
        before in proptest::collection::vec(act(), 0..24),
        loses in prop_oneof![Just(0usize), 3..9usize],
    ) {
        let mut pair = Pair::connected();
        let mut flow = Flow::default();
        pair.loses = loses;
        let shut = before.iter().any(|act| matches!(act, Act::Shut(..)));
        for act in before {
            perform(&mut pair, &mut flow, [CLIENT, SERVER], act);
        }
        let was = seen(pair.server(), SERVER);
        move_on(&mut pair, 1, SERVER);
        let is = seen(pair.server(), MOVED);
        for (is, was) in is.options.iter().zip(&was.options) {
            prop_assert_eq!(is, was);
        }
        prop_assert!(is == was, "{:?} {:?} {:?}", is.mask, is.pending, is.unsent);
        // All that was written arrives, in both directions. Through a clamped window each segment waits for a delayed
        // acknowledgment, so it may take long.
        pair.loses = 0;
        let ids = [CLIENT, MOVED];
        for _ in 0..2000 {
            pair.run_for(50_000_000);
            let moved: usize =
                (0..2).map(|host| flow.recv(&mut pair, (host, ids[host]), 100_000)).sum();
            if moved == 0 && pair.hosts.iter().all(|host| host.sessions.next_deadline().is_none()) {
                break;
            }
        }
        let failed = (0..2).any(|host| error(&mut pair.hosts[host].sessions, ids[host]) != Errno(0));
        if !shut && !failed {
            prop_assert_eq!(flow.read, [flow.written[1], flow.written[0]]);
        }
    }

    #[test]
    fn bytes_of_anybody_are_refused_or_make_a_sane_socket(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut pair = Pair::connected();
        send(pair.server(), SERVER, &bytes(0, 3000)).unwrap();
        let now = pair.now;
        let mut parcel = pair.server().export(SERVER, now).unwrap().bytes;
        let head = parcel.len().min(600);
        for (place, value) in changes {
            parcel[place.index(head)] = value;
        }
        let server = pair.server();
        if server.import(MOVED, now, 0, &parcel).is_ok() {
            seen(server, MOVED);
            let _ = (send(server, MOVED, b"more"), recv(server, MOVED, 100));
            let _ = server.set_option(MOVED, 1, 9, &1_i32.to_ne_bytes());
            pair.run_for(1_000_000_000);
            pair.server().close(MOVED);
            pair.run_for(1_000_000_000);
        } else {
            prop_assert!(!server.has(MOVED));
        }
    }
}

#[test]
fn what_is_closed_or_not_accepted_goes_without_a_socket() {
    let mut pair = Pair::connected();
    assert_eq!(pair.connect(Id(20), at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    send(pair.client(), Id(20), b"hello").unwrap();
    pair.settle();
    assert_eq!(pair.connect(Id(21), at(v4(1), 80)), Err(Errno::INPROGRESS));
    // Its SYN arrives, and the answer is lost.
    pair.exchange();
    let (now, data) = (pair.now, bytes(0, 30_000));
    let server = pair.server();
    send(server, SERVER, &data).unwrap();
    server.close(SERVER);
    let (closed, waiting) = (server.export_closed(now), server.export_unaccepted(LISTENER, now));
    assert_eq!((closed.len(), waiting.len(), server.is_drained()), (1, 2, true));
    pair.hosts[1] = Pair::default().hosts.into_iter().nth(1).unwrap();
    let refused = pair.server().import_unheld(now, 0, &waiting[0].bytes);
    assert_eq!(refused, Err(ImportError::NoListener));
    assert_eq!(
        pair.server().import(MOVED, now, 0, &closed[0].bytes),
        Err(ImportError::Short("domain"))
    );
    pair.listen(LISTENER, at(v4(1), 80));
    for parcel in closed.iter().chain(&waiting) {
        assert_eq!(pair.server().import_unheld(now, 0, &parcel.bytes), Ok(parcel.ends));
    }
    assert!(!pair.server().is_drained());
    pair.run_for(5_000_000_000);
    assert_eq!(recv(pair.client(), CLIENT, 50_000).unwrap(), data);
    assert_eq!(recv(pair.client(), CLIENT, 50_000).unwrap(), b"");
    pair.server().accept(LISTENER, MOVED).unwrap();
    assert_eq!(recv(pair.server(), MOVED, 100).unwrap(), b"hello");
    pair.server().accept(LISTENER, Id(30)).unwrap();
    pair.client().close(CLIENT);
    pair.run_for(5_000_000_000);
    assert!(pair.server().is_drained());
}

#[test]
fn those_that_have_waited_longest_go_and_the_listener_admits_others() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    for client in 20..23 {
        assert_eq!(pair.connect(Id(client), at(v4(1), 80)), Err(Errno::INPROGRESS));
        pair.settle();
    }
    // The handshake of another goes on.
    assert_eq!(pair.connect(Id(23), at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.exchange();
    let now = pair.now;
    let gone = pair.server().export_waiting(LISTENER, now, 2);
    let first: Vec<_> = [20, 21].map(|id| pair.client().name(Id(id)).unwrap()).to_vec();
    let ends: Vec<_> = gone.iter().map(|parcel| parcel.ends.unwrap().remote).collect();
    assert_eq!(ends, first);
    assert!(pair.server().export_waiting(CLIENT, now, 2).is_empty(), "it does not listen");
    pair.settle();
    assert_eq!(pair.connect(Id(24), at(v4(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    for client in 22..25 {
        let accepted = pair.server().accept(LISTENER, Id(client + 20)).unwrap();
        assert_eq!(accepted.1, pair.client().name(Id(client)).unwrap());
    }
    assert_eq!(pair.server().accept(LISTENER, MOVED), Err(Errno::AGAIN));
    assert_eq!(pair.server().export_waiting(LISTENER, now, 9), []);
}

#[test]
fn who_comes_to_a_listener_whose_connections_leave_is_not_reset() {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v4(1), 80));
    assert_eq!(pair.connect(Id(20), at(v4(1), 80)), Err(Errno::INPROGRESS));
    let now = pair.now;
    // Its SYN is under way.
    assert!(pair.server().export_unaccepted(LISTENER, now).is_empty());
    pair.settle();
    pair.server().spare_resets(80, now + 500_000_000);
    pair.server().close(LISTENER);
    pair.settle();
    assert_eq!(error(pair.client(), Id(20)), Errno(0));
    // It comes again, to who listens then.
    pair.listen(LISTENER, at(v4(1), 80));
    pair.run_for(2_000_000_000);
    pair.server().accept(LISTENER, MOVED).unwrap();
}

#[test]
fn time_waits_leave_and_get_no_answer_for_a_while() {
    let mut pair = Pair::connected();
    pair.server().close(SERVER);
    pair.settle();
    pair.client().close(CLIENT);
    let now = pair.now;
    let Pair { hosts: [client, server], .. } = &mut pair;
    client.sessions.turn(now, &mut client.out);
    let fin = std::mem::take(&mut client.out.packets).remove(0);
    let answers = |server: &mut Host, now| {
        server.sessions.input(now, &[Packet::new(&fin)], &mut server.out);
        server.sessions.turn(now, &mut server.out);
        std::mem::take(&mut server.out.packets).len()
    };
    assert_eq!(answers(server, now), 1, "the last acknowledgment");
    let left = server.sessions.export_time_waits(now, now + 1_000_000_000);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].ends().local, at(v4(1), 80));
    assert!(server.sessions.export_time_waits(now, now).is_empty());
    assert_eq!(answers(server, now), 0);
    assert_eq!(answers(server, now + 1_000_000_000), 1, "a reset");
}

#[test]
fn a_socket_has_no_connection_that_was_closed_or_not_accepted() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let held = pair.server().export(SERVER, now).unwrap();
    let own = Parts::of(&held.bytes).unwrap().own;
    let unheld = Parts { own: &[], ..Parts::of(&held.bytes).unwrap() }.joined();
    assert_eq!(pair.server().import_unheld(now, 0, &unheld), Err(ImportError::Value("flags")));
    pair.server().import(SERVER, now, 0, &held.bytes).unwrap();
    send(pair.server(), SERVER, b"bye").unwrap();
    pair.server().close(SERVER);
    let closed = pair.server().export_closed(now).remove(0);
    let claimed = Parts { own, ..Parts::of(&closed.bytes).unwrap() }.joined();
    let refused = pair.server().import(MOVED, now, 0, &claimed);
    assert_eq!((refused, pair.server().has(MOVED)), (Err(ImportError::Value("flags")), false));
    pair.server().import_unheld(now, 0, &closed.bytes).unwrap();
}

#[test]
fn what_does_not_travel_stays() {
    let mut pair = Pair::connected();
    let now = pair.now;
    assert_eq!(pair.server().export(LISTENER, now), Err(Errno::OPNOTSUPP));
    assert_eq!(pair.server().export(Id(77), now), Err(Errno::BADF));
    let parcel = pair.server().export(SERVER, now).unwrap();
    assert!(!pair.server().has(SERVER));
    assert_eq!(pair.server().import(LISTENER, now, 0, &parcel.bytes), Err(ImportError::InUse));
    let mut other = parcel.bytes.clone();
    other[4] = 9;
    assert_eq!(pair.server().import(MOVED, now, 0, &other), Err(ImportError::Version(9)));
    assert_eq!(pair.server().import(MOVED, now, 0, b"GET / HTTP"), Err(ImportError::Format));
    pair.server().import(MOVED, now, 0, &parcel.bytes).unwrap();
}

#[test]
fn a_session_may_have_another_number() {
    let mut pair = Pair::connected();
    assert_eq!(send(pair.client(), CLIENT, b"before"), Ok(6));
    pair.settle();
    assert!(pair.server().rename(SERVER, MOVED));
    assert!(!pair.server().has(SERVER));
    let told = pair.server().next_ready().unwrap();
    assert_eq!((told.id, told.woken.has(Mask::IN)), (MOVED, true), "what was not told yet");
    assert_eq!(recv(pair.server(), MOVED, 9).unwrap(), b"before");
    pair.quiet();
    assert_eq!(send(pair.client(), CLIENT, b"after"), Ok(5));
    pair.settle();
    assert_eq!(pair.server().next_ready().map(|ready| ready.id), Some(MOVED));
    assert_eq!(recv(pair.server(), MOVED, 9).unwrap(), b"after");
    assert!(!pair.server().rename(MOVED, LISTENER), "another one has it");
    assert!(!pair.server().rename(SERVER, Id(41)), "there is none");
    assert_eq!(send(pair.server(), MOVED, b"answer"), Ok(6));
    pair.settle();
    assert_eq!(recv(pair.client(), CLIENT, 9).unwrap(), b"answer");
}
