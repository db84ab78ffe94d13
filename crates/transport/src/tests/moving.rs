//! Connections as bytes: what is refused, what is held quiet. That the peer does not notice is netsim's to see.

use proptest::prelude::*;

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

/// Another stack for a side, with a clock of its own.
fn other(connections: usize) -> Stack<Rings> {
    let config = Config {
        seed: [9, 9],
        connections_v4: connections,
        connections_v6: connections,
        ..Config::default()
    };
    Stack::new(config, Rings).unwrap()
}

/// A connection with data in both directions: out of order here, lost there.
fn busy(options: &Options) -> (Link, [ConnectionId; 2]) {
    let mut link = Link::new();
    let ids = link.connect(options, options);
    link.fate = Box::new(|number, _| (number % 7 != 0).then_some(0));
    for side in [CLIENT, SERVER] {
        link.stacks[side].send(ids[side], &pattern(100_000)).unwrap();
    }
    link.run(SECOND / 20);
    (link, ids)
}

fn exported(congestion: Algorithm, contents: Contents) -> (Link, Exported<Ring>) {
    let options = Options { congestion, ecn: Ecn::Accurate, ..Options::default() };
    let (mut link, ids) = busy(&options);
    let now = link.now;
    let exported = link.stacks[CLIENT].export(now, ids[CLIENT], contents).unwrap();
    (link, exported)
}

#[test]
fn nothing_is_left_behind() {
    for contents in [Contents::Copied, Contents::InPlace] {
        let (mut link, exported) = exported(Algorithm::Cubic, contents);
        let stack = &mut link.stacks[CLIENT];
        assert_eq!((stack.connections(), stack.next_deadline()), (0, None));
        assert_eq!(stack.poll_event(), None);
        assert_eq!(exported.fifos.is_some(), contents == Contents::InPlace);
    }
}

#[test]
fn what_comes_meanwhile_is_dropped_without_a_word() {
    let (mut link, exported) = exported(Algorithm::Cubic, Contents::Copied);
    let until = link.now + SECOND / 2;
    link.stacks[CLIENT].hold(&exported.ends, until);
    link.run(SECOND / 4);
    let counters = link.stacks[CLIENT].counters();
    assert!(counters.dropped(Reason::Moving) > 0 && counters.resets_out == 0);
    // Nor may another connection have these ends.
    let Ends { local, remote } = exported.ends;
    let connect = |link: &mut Link| {
        let options = Options::default();
        link.stacks[CLIENT].connect(link.now, local.ip(), local.port(), remote, &options)
    };
    assert_eq!(connect(&mut link), Err(ConnectError::InUse));
    link.run(20 * SECOND);
    assert!(link.stacks[CLIENT].counters().resets_out > 0, "the hold is over");
}

#[test]
fn a_stack_that_is_about_to_import_resets_nobody() {
    let (mut link, exported) = exported(Algorithm::Cubic, Contents::Copied);
    let (left, mut fifos) = (link.now, None);
    link.stacks[CLIENT] = other(100);
    link.stacks[CLIENT].keep_quiet(link.now + 10 * SECOND);
    link.run(SECOND);
    let age = link.now - left;
    let now = link.now;
    let id = link.stacks[CLIENT].import(now, age, &exported.bytes, &mut fifos).unwrap();
    link.fate = Box::new(|_, _| Some(0));
    link.run(60 * SECOND);
    let info = link.stacks[CLIENT].info(id).unwrap();
    assert_eq!((info.state, info.queued, info.failure), (State::Established, 0, None));
    assert_eq!(link.stacks[CLIENT].counters().resets_out, 0);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let (_, exported) = exported(Algorithm::Bbr, Contents::InPlace);
    let Exported { bytes, mut fifos, .. } = exported;
    let mut stack = other(1);
    let import = |stack: &mut Stack<Rings>, bytes: &[u8], fifos: &mut Option<Pair<Ring>>| {
        stack.import(5, 0, bytes, fifos).unwrap_err()
    };
    let mut changed = bytes.clone();
    changed[4] = 77;
    assert_eq!(import(&mut stack, &changed, &mut fifos), ImportError::Version(77));
    assert_eq!(import(&mut stack, b"GET / HTTP/1.1", &mut fifos), ImportError::Format);
    assert_eq!(import(&mut stack, &bytes, &mut None), ImportError::Fifos);
    let more = [&bytes[..], &[0; 3]].concat();
    assert_eq!(import(&mut stack, &more, &mut fifos), ImportError::Surplus(3));
    for length in 0..bytes.len() {
        let error = import(&mut stack, &bytes[..length], &mut fifos);
        assert!(matches!(error, ImportError::Short(_)), "{length}: {error}");
    }
    assert_eq!((stack.connections(), stack.next_deadline()), (0, None));
    assert!(fifos.is_some(), "the FIFOs are the caller's still");
    let now = 5 * SECOND;
    let first = stack.import(now, 0, &bytes, &mut fifos).unwrap();
    let mut again = Some(Pair { receive: Ring::new(9), transmit: Ring::new(9) });
    assert_eq!(import(&mut stack, &bytes, &mut again), ImportError::Value("data_start"));
    let whole = stack.export(now, first, Contents::Copied).unwrap();
    stack.import(now, 0, &whole.bytes, &mut None).unwrap();
    assert_eq!(import(&mut stack, &whole.bytes, &mut None), ImportError::InUse);
    assert_eq!(stack.connections(), 1);
}

#[test]
fn a_message_of_a_connection_that_has_moved_is_paced_as_before() {
    let mut link = Link::new();
    link.delay = MILLISECOND;
    // A message of 1,000 bytes in 10 ms.
    let options = Options { pacing_limit: 100_000, ..Options::default() };
    let ids = link.connect(&options, &Options::default());
    let messages = |link: &Link| {
        link.seen.iter().filter(|(from, packet)| *from == CLIENT && packet.len() > 1000).count()
    };
    link.stacks[CLIENT].send(ids[CLIENT], &pattern(1000)).unwrap();
    link.run(4 * MILLISECOND);
    let now = link.now;
    let exported = link.stacks[CLIENT].export(now, ids[CLIENT], Contents::Copied).unwrap();
    link.stacks[CLIENT] = other(10);
    let id = link.stacks[CLIENT].import(now, 0, &exported.bytes, &mut None).unwrap();
    assert_eq!(link.stacks[CLIENT].info(id).unwrap().in_flight, 0);
    link.stacks[CLIENT].send(id, &pattern(1000)).unwrap();
    link.run(4 * MILLISECOND);
    assert_eq!(messages(&link), 1);
    link.run(4 * MILLISECOND);
    assert_eq!(messages(&link), 2);
}

#[test]
fn who_waits_to_be_accepted_waits_for_the_same_address() {
    let mut link = Link::new();
    let address = (ADDRESSES[SERVER], 80).into();
    link.stacks[SERVER].listen(address, 5, &Options::default()).unwrap();
    let local = ADDRESSES[CLIENT].into();
    link.stacks[CLIENT].connect(link.now, local, 0, address, &Options::default()).unwrap();
    link.run(SECOND);
    let (now, id) = (link.now, link.stacks[SERVER].all_connections()[0]);
    let exported = link.stacks[SERVER].export(now, id, Contents::Copied).unwrap();
    let mut next = other(10);
    let refused = next.import(now, 0, &exported.bytes, &mut None);
    assert_eq!(refused, Err(ImportError::NoListener));
    let listener = next.listen(address, 5, &Options::default()).unwrap();
    let id = next.import(now, 0, &exported.bytes, &mut None).unwrap();
    assert_eq!(next.poll_event(), Some(Event::Incoming(listener)));
    assert_eq!((next.accept(listener), next.accept(listener)), (Some(id), None));
}

#[test]
fn who_waits_to_be_accepted_can_be_kept_for_another_stack() {
    let mut link = Link::new();
    let address = (ADDRESSES[SERVER], 80).into();
    link.stacks[SERVER].listen(address, 5, &Options::default()).unwrap();
    let local = ADDRESSES[CLIENT].into();
    let options = Options::default();
    let client = link.stacks[CLIENT].connect(link.now, local, 0, address, &options).unwrap();
    link.run(SECOND);
    let id = link.stacks[SERVER].all_connections()[0];
    let sequences = link.stacks[SERVER].info(id).unwrap().sequences;
    let exported = link.stacks[SERVER].export(link.now, id, Contents::Copied).unwrap();
    let summary = Summary::of(&exported.bytes).unwrap();
    assert_eq!(summary.sequences, sequences);
    assert!(summary.is_waiting && !summary.is_half_open && summary.ends == exported.ends);
    let mut stacks = [true, false].map(|custody| {
        let config = Config { custody, ..Config::default() };
        Stack::new(config, Rings).unwrap()
    });
    let [keeper, heir] = &mut stacks;
    let kept = keeper.import(link.now, 0, &exported.bytes, &mut None).unwrap();
    // Its peer sends meanwhile.
    std::mem::swap(&mut link.stacks[SERVER], keeper);
    link.stacks[CLIENT].send(client, b"request").unwrap();
    link.run(SECOND);
    let keeper = &mut link.stacks[SERVER];
    assert_eq!(keeper.accept(ListenerId::new(0, 0)), None);
    let exported = keeper.export(link.now, kept, Contents::Copied).unwrap();
    assert_eq!(keeper.connections(), 0);
    let listener = heir.listen(address, 5, &options).unwrap();
    heir.import(link.now, 0, &exported.bytes, &mut None).unwrap();
    let id = heir.accept(listener).unwrap();
    let mut request = [0; 10];
    assert_eq!(heir.recv(id, &mut request), Ok(7));
    assert_eq!(link.stacks[CLIENT].info(client).unwrap().queued, 0, "all was acknowledged");
}

#[test]
fn a_handshake_can_be_kept_for_another_stack() {
    let mut link = Link::new();
    let address = (ADDRESSES[SERVER], 80).into();
    link.stacks[SERVER].listen(address, 5, &Options::default()).unwrap();
    let local = ADDRESSES[CLIENT].into();
    let options = Options::default();
    let client = link.stacks[CLIENT].connect(link.now, local, 0, address, &options).unwrap();
    let mut list = PacketList::default();
    link.stacks[CLIENT].flush(link.now, &mut list);
    let syn = list.packets.remove(0);
    link.stacks[SERVER].input(link.now, &[Packet::new(&syn)], &mut PacketList::default());
    let id = link.stacks[SERVER].all_connections()[0];
    let exported = link.stacks[SERVER].export(link.now, id, Contents::Copied).unwrap();
    assert!(Summary::of(&exported.bytes).unwrap().is_half_open);
    let [mut keeper, mut heir] = [true, false].map(|custody| {
        let config = Config { custody, ..Config::default() };
        Stack::new(config, Rings).unwrap()
    });
    let kept = keeper.import(link.now, 0, &exported.bytes, &mut None).unwrap();
    // Its answer to the SYN is sent again; what the peer says to that waits.
    std::mem::swap(&mut link.stacks[SERVER], &mut keeper);
    link.stacks[CLIENT].send(client, b"request").unwrap();
    link.run(2 * SECOND);
    assert!(link.events[CLIENT].contains(&Event::Connected(client)));
    let keeper = &mut link.stacks[SERVER];
    assert!(keeper.is_unaccepted(kept));
    let exported = keeper.export(link.now, kept, Contents::Copied).unwrap();
    let listener = heir.listen(address, 5, &options).unwrap();
    heir.import(link.now, 0, &exported.bytes, &mut None).unwrap();
    link.stacks[SERVER] = heir;
    link.run(5 * SECOND);
    let heir = &mut link.stacks[SERVER];
    let id = heir.accept(listener).unwrap();
    let mut request = [0; 10];
    assert_eq!(heir.recv(id, &mut request), Ok(7));
}

#[test]
fn a_connection_can_be_looked_at_before_it_is_imported() {
    let (_, exported) = exported(Algorithm::Cubic, Contents::Copied);
    let summary = Summary::of(&exported.bytes).unwrap();
    assert_eq!((summary.ends, summary.state), (exported.ends, State::Established));
    assert!(!summary.is_waiting && !summary.is_half_open);
    assert!(summary.transmit > 10_000 && summary.receive >= 10_000, "{summary:?}");
    let mut changed = exported.bytes.clone();
    for length in 0..changed.len() {
        assert!(Summary::of(&changed[..length]).is_err(), "{length}");
    }
    changed.push(0);
    assert_eq!(Summary::of(&changed), Err(ImportError::Surplus(1)));
}

#[test]
fn data_in_place_cannot_be_looked_at() {
    let (_, exported) = exported(Algorithm::Cubic, Contents::InPlace);
    assert_eq!(Summary::of(&exported.bytes), Err(ImportError::Fifos));
}

/// Lets a stack go on with whatever it has imported.
fn exercise(stack: &mut Stack<Rings>, id: ConnectionId, mut now: u64) {
    let mut list = PacketList::default();
    let _ = stack.send(id, &[7; 5000]);
    let mut sent = 0;
    for step in 0..200u64 {
        stack.flush(now, &mut list);
        stack.expire(now, &mut list);
        let _ = stack.recv(id, &mut [0; 3000]);
        sent += list.packets.len();
        // Its own segments come back, as what a peer might send.
        for mut packet in std::mem::take(&mut list.packets) {
            let (source, rest) = packet[12..].split_at_mut(4);
            source.swap_with_slice(&mut rest[..4]);
            stack.input(now, &[Packet::new(&packet)], &mut list);
        }
        now += 1 << (10 + step % 28);
        while stack.poll_event().is_some() {}
    }
    assert!(sent < 20_000, "{sent} packets");
    stack.abort(id);
    stack.flush(now, &mut list);
    // Time-outs, keepalive, TIME-WAIT: all of it ends.
    while let Some(next) = stack.next_deadline().filter(|next| *next < now + 5000 * SECOND) {
        stack.expire(next, &mut list);
        stack.flush(next, &mut list);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn changed_bytes_are_refused_or_make_a_sane_connection(
        algorithm in 0..3usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..4),
    ) {
        let algorithm = [Algorithm::Bbr, Algorithm::Cubic, Algorithm::NewReno][algorithm];
        let (link, exported) = exported(algorithm, Contents::Copied);
        let mut bytes = exported.bytes;
        // Most of it is data, which may be anything.
        let head = bytes.len().min(1500);
        for (place, value, flip) in changes {
            let byte = &mut bytes[place.index(head)];
            *byte = if flip { *byte ^ 1 << (value % 8) } else { value };
        }
        let mut stack = other(4);
        let now = link.now + 77 * SECOND;
        if let Ok(id) = stack.import(now, 0, &bytes, &mut None) {
            prop_assert!(Summary::of(&bytes).is_ok());
            exercise(&mut stack, id, now);
        }
    }
}
