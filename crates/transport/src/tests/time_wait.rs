//! TIME-WAIT: what it costs, and who comes after.

use proptest::prelude::*;

use super::pair::*;
use crate::options::SECOND;
use crate::*;

/// Opens a connection from `port` (0: any), exchanges a word, and closes it from `first`.
fn short(
    link: &mut Link,
    listener: ListenerId,
    port: u16,
    first: usize,
) -> Result<(), ConnectError> {
    let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
    let id = link.stacks[CLIENT].connect(link.now, from, port, to, &Options::default())?;
    link.run(20_000_000);
    let accepted = link.stacks[SERVER].accept(listener).unwrap();
    let ids = [id, accepted];
    assert_eq!(link.transfer(ids, CLIENT, b"word", SECOND), b"word");
    link.stacks[first].close(ids[first]);
    link.run(20_000_000);
    link.stacks[1 - first].close(ids[1 - first]);
    link.run(20_000_000);
    assert_eq!(link.stacks[1 - first].connections(), 0);
    Ok(())
}

fn link(server: Config) -> (Link, ListenerId) {
    let mut link = Link::new();
    link.stacks[SERVER] = Stack::new(server, Rings).unwrap();
    let address = (ADDRESSES[SERVER], 80).into();
    let listener = link.stacks[SERVER].listen(address, 10, &Options::default()).unwrap();
    (link, listener)
}

#[test]
fn it_costs_no_place_and_nobody_is_refused() {
    let config = Config { connections_v4: 3, time_waits: 50, ..Config::default() };
    let (mut link, listener) = link(config);
    for _ in 0..200 {
        short(&mut link, listener, 0, SERVER).unwrap();
    }
    let server = &link.stacks[SERVER];
    assert_eq!((server.connections(), server.counters().time_waits_evicted), (50, 150));
    assert_eq!(server.counters().dropped(Reason::NoSlot), 0);
    link.run(61 * SECOND);
    assert_eq!(link.stacks[SERVER].connections(), 0);
}

#[test]
fn without_room_of_their_own_they_count_as_others() {
    let config = Config { connections_v4: 3, time_waits: 0, ..Config::default() };
    let (mut link, listener) = link(config);
    for _ in 0..3 {
        short(&mut link, listener, 0, SERVER).unwrap();
    }
    let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
    link.stacks[CLIENT].connect(link.now, from, 0, to, &Options::default()).unwrap();
    link.run(20_000_000);
    assert_eq!(link.stacks[SERVER].counters().dropped(Reason::NoSlot), 1);
}

#[test]
fn a_port_of_ours_is_used_again_after_a_second() {
    let (mut link, listener) = link(Config::default());
    short(&mut link, listener, 4000, CLIENT).unwrap();
    assert_eq!(short(&mut link, listener, 4000, CLIENT), Err(ConnectError::InUse));
    link.run(SECOND);
    short(&mut link, listener, 4000, CLIENT).unwrap();
    // Without time stamps the peer could not tell them apart.
    link.run(2 * SECOND);
    let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
    let plain = Options { timestamps: false, ..Options::default() };
    let refused = link.stacks[CLIENT].connect(link.now, from, 4000, to, &plain);
    assert_eq!(refused, Err(ConnectError::InUse));
}

#[test]
fn more_short_connections_than_ports() {
    let (mut link, listener) = link(Config::default());
    let config = Config { ephemeral_ports: 40_000..=40_009, ..Config::default() };
    link.stacks[CLIENT] = Stack::new(config, Rings).unwrap();
    for round in 0..100 {
        short(&mut link, listener, 0, CLIENT).unwrap_or_else(|why| panic!("{round}: {why}"));
        link.run(100_000_000);
    }
    assert_eq!(link.stacks[CLIENT].connections(), 10);
}

/// The last FIN that the client sent.
fn last_fin(link: &Link) -> Vec<u8> {
    let mut sent = link.seen.iter();
    let fin = sent.rfind(|(from, packet)| *from == CLIENT && packet[20 + 13] & 1 != 0);
    fin.unwrap().1.clone()
}

/// What a stack answers to a packet.
fn answers(stack: &mut Stack<Rings>, now: u64, packet: &[u8]) -> Vec<Vec<u8>> {
    let mut list = PacketList::default();
    stack.input(now, &[Packet::new(packet)], &mut list);
    stack.flush(now, &mut list);
    list.packets
}

/// A stack with another secret.
fn stranger() -> Stack<Rings> {
    let config = Config { seed: [9, 9], connections_v4: 3, time_waits: 3, ..Config::default() };
    Stack::new(config, Rings).unwrap()
}

#[test]
fn another_stack_answers_as_the_first_one_did() {
    let (mut link, listener) = link(Config::default());
    short(&mut link, listener, 0, SERVER).unwrap();
    let (now, fin) = (link.now, last_fin(&link));
    let server = &mut link.stacks[SERVER];
    let answer = answers(server, now, &fin);
    assert_eq!(answer.len(), 1);
    let left = server.export_time_waits(now, 9);
    assert_eq!((left.len(), server.connections()), (1, 0));
    let bytes = TimeWait::write(&left, now);
    assert_eq!(bytes.len(), TimeWait::bytes(1));
    let arrived = TimeWait::read(&bytes, now, 0).unwrap();
    let mut other = stranger();
    // The second takes the place of the first.
    for _ in 0..2 {
        assert!(other.import_time_wait(now, &arrived[0]));
        assert_eq!(other.connections(), 1);
    }
    // Its time stamps go on, also when the wait has begun anew.
    for _ in 0..2 {
        assert_eq!(answers(&mut other, now, &fin), answer);
    }
    let ends = arrived[0].ends();
    assert_eq!(other.time_wait_left(&ends), Some(60 * SECOND));
    other.end_time_wait(&ends);
    assert_eq!((other.connections(), other.time_wait_left(&ends)), (0, None));
    // One that is over does not come back, and what is no list of them is refused.
    let late = TimeWait::read(&bytes, now, 60 * SECOND).unwrap();
    assert!(!other.import_time_wait(now, &late[0]));
    let read = |bytes: &[u8]| TimeWait::read(bytes, now, 0).err();
    assert_eq!(read(&bytes[..bytes.len() - 1]), Some(ImportError::Short("offset")));
    assert_eq!(read(&[99, 0]), Some(ImportError::Version(99)));
}

#[test]
fn they_leave_so_many_at_a_time_and_the_oldest_first() {
    let (mut link, listener) = link(Config::default());
    for port in [4000, 4001, 4002] {
        short(&mut link, listener, port, SERVER).unwrap();
    }
    let now = link.now;
    let mut leave = |most| {
        let left = link.stacks[SERVER].export_time_waits(now, most).into_iter();
        left.map(|one| one.ends().remote.port()).collect::<Vec<_>>()
    };
    assert_eq!((leave(2), leave(2), leave(2)), (vec![4000, 4001], vec![4002], vec![]));
}

#[test]
fn none_waits_for_long_elsewhere() {
    let mut link = Link::new();
    let patient = Options { time_wait: 600 * SECOND, ..Options::default() };
    let address = (ADDRESSES[SERVER], 80).into();
    let listener = link.stacks[SERVER].listen(address, 10, &patient).unwrap();
    short(&mut link, listener, 4000, SERVER).unwrap();
    let now = link.now;
    let left = link.stacks[SERVER].export_time_waits(now, 9);
    let left: Vec<u64> = left.iter().map(|one| one.left(now)).collect();
    assert_eq!(left, [60 * SECOND]);
}

#[test]
fn a_connection_that_goes_on_is_not_replaced() {
    let (mut link, listener) = link(Config::default());
    short(&mut link, listener, 4000, SERVER).unwrap();
    let now = link.now;
    let left = link.stacks[SERVER].export_time_waits(now, 9);
    let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
    link.stacks[CLIENT].connect(now, from, 4000, to, &Options::default()).unwrap();
    link.run(20_000_000);
    let now = link.now;
    let server = &mut link.stacks[SERVER];
    let id = server.accept(listener).unwrap();
    assert!(!server.import_time_wait(now, &left[0]));
    assert_eq!(server.state(id), Some(State::Established));
    // Nor does it end as one of those.
    server.end_time_wait(&left[0].ends());
    assert_eq!(server.time_wait_left(&left[0].ends()), None);
    assert_eq!(server.state(id), Some(State::Established));
}

#[test]
fn one_that_has_moved_keeps_its_time_stamps_in_the_short_form() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    let now = link.now;
    let exported = link.stacks[SERVER].export(now, ids[SERVER], Contents::Copied).unwrap();
    link.stacks[SERVER] = stranger();
    let id = link.stacks[SERVER].import(now, 0, &exported.bytes, &mut None).unwrap();
    link.stacks[SERVER].close(id);
    link.run(20_000_000);
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(20_000_000);
    assert_eq!((link.stacks[CLIENT].connections(), link.stacks[SERVER].time_waits()), (0, 1));
    // The last acknowledgment, which came from the long form, and what the short form says instead.
    let (_, last) = link.seen.iter().rfind(|(from, _)| *from == SERVER).unwrap().clone();
    let fin = last_fin(&link);
    let answer = answers(&mut link.stacks[SERVER], link.now, &fin).remove(0);
    // RFC 7323, appendix A: two bytes of padding, kind, length, value.
    let stamp = |packet: &[u8]| u32::from_be_bytes(packet[44..48].try_into().unwrap());
    let ahead = stamp(&answer).wrapping_sub(stamp(&last));
    assert!((1..=40).contains(&ahead), "{ahead} ms");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nobody_has_one_wait_longer_than_2_msl(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..9),
        age in prop_oneof![Just(0_u64), any::<u64>()],
    ) {
        let (mut link, listener) = link(Config::default());
        short(&mut link, listener, 0, SERVER).unwrap();
        let (now, fin) = (link.now, last_fin(&link));
        let mut bytes = TimeWait::write(&link.stacks[SERVER].export_time_waits(now, 9), now);
        let length = bytes.len();
        for (place, value) in changes {
            bytes[place.index(length)] = value;
        }
        let mut stack = stranger();
        for one in TimeWait::read(&bytes, now, age).unwrap_or_default() {
            prop_assert!(one.left(now) <= 60 * SECOND);
            stack.import_time_wait(now, &one);
        }
        answers(&mut stack, now, &fin);
        prop_assert!(stack.connections() <= 1);
        stack.expire(now + 60 * SECOND, &mut PacketList::default());
        prop_assert_eq!(stack.connections(), 0);
    }
}
