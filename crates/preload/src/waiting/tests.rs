use host::{Domain, Id, Kind, Mask, Sessions};

use crate::real;
use crate::sockets::Sockets;
use libc::epoll_event;
use transport::Config;

use super::{EDGE, ONE_SHOT, Waiters};

/// Where a socket for datagrams is, which can always be written.
const AT: (Id, i32) = (Id(7), 7);

fn sessions() -> Sockets {
    let config =
        Config { connections_v4: 8, connections_v6: 8, time_waits: 8, ..Config::default() };
    let mut sessions = Sessions::new(config).unwrap();
    sessions.open(AT.0, Domain::V4, Kind::Datagram).unwrap();
    Sockets::Inline(Box::new(sessions))
}

fn event(events: u32, data: u64) -> epoll_event {
    epoll_event { events, u64: data }
}

/// What a waiter finds now: bits and data.
fn found(waiters: &mut Waiters, waiter: usize, sessions: &mut Sockets) -> Vec<(u32, u64)> {
    let mut events = [event(0, 0); 4];
    let count = waiters.collect(waiter, sessions, &mut events);
    events[..count].iter().map(|event| (event.events, event.u64)).collect()
}

#[test]
fn a_level_is_told_as_long_as_it_lasts() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let waiter = waiters.epoll(3);
    waiters.add(waiter, AT, event(Mask::OUT.0, 5), sessions.mask(AT.0)).unwrap();
    for _ in 0..3 {
        assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
    }
    // Nobody asks for that any more, and then for something else.
    waiters.change(waiter, AT, event(0, 5), sessions.mask(AT.0)).unwrap();
    assert_eq!(found(&mut waiters, waiter, &mut sessions), []);
    waiters.change(waiter, AT, event(Mask::IN.0, 5), sessions.mask(AT.0)).unwrap();
    assert_eq!(found(&mut waiters, waiter, &mut sessions), []);
    assert!(!waiters.may_be_ready(waiter));
}

#[test]
fn an_edge_is_told_once_each_time() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let waiter = waiters.epoll(3);
    waiters.add(waiter, AT, event(Mask::OUT.0 | EDGE, 5), sessions.mask(AT.0)).unwrap();
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
    assert_eq!(found(&mut waiters, waiter, &mut sessions), []);
    waiters.tell(AT.0, Mask::IN);
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [], "not what was asked for");
    waiters.tell(AT.0, Mask::OUT);
    waiters.tell(AT.0, Mask::OUT);
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
    assert_eq!(found(&mut waiters, waiter, &mut sessions), []);
}

#[test]
fn one_shot_is_over_until_it_is_asked_for_again() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let waiter = waiters.epoll(3);
    let wanted = Mask::OUT.0 | ONE_SHOT;
    waiters.add(waiter, AT, event(wanted, 5), sessions.mask(AT.0)).unwrap();
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
    waiters.tell(AT.0, Mask::ALL);
    assert_eq!(found(&mut waiters, waiter, &mut sessions), []);
    waiters.change(waiter, AT, event(wanted, 6), sessions.mask(AT.0)).unwrap();
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 6)]);
}

#[test]
fn two_instances_watch_one_session_by_two_descriptors() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let (one, other) = (waiters.epoll(3), waiters.epoll(4));
    let now = sessions.mask(AT.0);
    waiters.add(one, AT, event(Mask::OUT.0, 1), now).unwrap();
    assert_eq!(waiters.add(one, AT, event(Mask::OUT.0, 1), now), Err(host::Errno::EXIST));
    waiters.add(one, (AT.0, 8), event(Mask::OUT.0, 2), now).unwrap();
    waiters.add(other, AT, event(Mask::OUT.0 | EDGE, 3), now).unwrap();
    assert_eq!(found(&mut waiters, one, &mut sessions), [(Mask::OUT.0, 1), (Mask::OUT.0, 2)]);
    assert_eq!(found(&mut waiters, other, &mut sessions), [(Mask::OUT.0, 3)]);
    waiters.remove(one, AT).unwrap();
    assert_eq!(waiters.remove(one, AT), Err(host::Errno::NOENT));
    assert_eq!(found(&mut waiters, one, &mut sessions), [(Mask::OUT.0, 2)]);
    // Its place is for the next one, who finds nothing of it.
    waiters.close_epoll(3);
    let heir = waiters.epoll(5);
    assert_eq!(heir, one);
    assert_eq!(found(&mut waiters, heir, &mut sessions), []);
    waiters.forget_session(AT.0);
    waiters.tell(AT.0, Mask::ALL);
    assert_eq!(found(&mut waiters, other, &mut sessions), []);
}

/// The list of what may be ready is served in turns.
#[test]
fn nobody_is_passed_over_when_there_is_little_room() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let waiter = waiters.epoll(3);
    for fd in 10..13 {
        let id = Id(fd as u32);
        sessions.open_datagrams(id, Domain::V6, &[]).unwrap();
        let now = sessions.mask(id);
        waiters.add(waiter, (id, fd), event(Mask::OUT.0, fd as u64), now).unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..6 {
        let mut events = [event(0, 0); 1];
        assert_eq!(waiters.collect(waiter, &mut sessions, &mut events), 1);
        seen.push(events[0].u64);
    }
    assert_eq!(seen, [10, 11, 12, 10, 11, 12]);
}

/// What was told of a watch that is no more concerns none that has its place.
#[test]
fn what_is_removed_and_added_again_is_told_once() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let waiter = waiters.epoll(3);
    for data in 1..4 {
        waiters.add(waiter, AT, event(Mask::OUT.0, data), sessions.mask(AT.0)).unwrap();
        assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, data)]);
        waiters.remove(waiter, AT).unwrap();
    }
    waiters.add(waiter, AT, event(Mask::OUT.0, 4), sessions.mask(AT.0)).unwrap();
    waiters.forget_session(AT.0);
    waiters.add(waiter, AT, event(Mask::OUT.0, 5), sessions.mask(AT.0)).unwrap();
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
}

#[test]
fn who_leaves_something_wakes_another_thread() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let other = (Id(8), 8);
    sessions.open_datagrams(other.0, Domain::V4, &[]).unwrap();
    let waiter = waiters.epoll(3);
    for at in [AT, other] {
        waiters.add(waiter, at, event(Mask::OUT.0, 5), sessions.mask(at.0)).unwrap();
    }
    let is_kicked = |waiters: &Waiters| {
        let mut count = [0_u8; 8];
        // SAFETY: room for the count.
        unsafe { real::read(waiters.kick_of(waiter), count.as_mut_ptr().cast(), 8) == 8 }
    };
    waiters.fall_asleep(waiter, u64::MAX);
    assert!(!is_kicked(&waiters));
    for (room, kicks) in [(2, false), (1, true), (2, false)] {
        let mut events = [event(0, 0); 2];
        assert_eq!(waiters.collect(waiter, &mut sessions, &mut events[..room]), room);
        assert_eq!(is_kicked(&waiters), kicks, "room for {room} of 2");
    }
}

#[test]
fn who_sleeps_at_a_closed_instance_is_told_nothing_of_others() {
    let mut waiters = Waiters::default();
    let waiter = waiters.epoll(3);
    waiters.fall_asleep(waiter, u64::MAX);
    waiters.close_epoll(3);
    let other = waiters.epoll(3);
    assert_ne!(other, waiter);
    waiters.wake(waiter, false);
    waiters.close_epoll(3);
    assert_eq!(waiters.epoll(3), other, "nobody sleeps there");
}

#[test]
fn a_thread_that_is_no_more_leaves_nothing_behind() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let (own, epoll) = (waiters.take(), waiters.epoll(3));
    for waiter in [own, epoll] {
        waiters.add(waiter, AT, event(Mask::IN.0, 1), sessions.mask(AT.0)).unwrap();
        waiters.fall_asleep(waiter, u64::MAX);
    }
    waiters.abandon(own);
    assert!(waiters.is_awaited(AT.0), "it sleeps still");
    for waiter in [own, epoll] {
        waiters.wake(waiter, false);
        waiters.abandon(waiter);
    }
    assert!(!waiters.is_awaited(AT.0));
    assert!(waiters.is_watched(AT.0), "by the epoll instance");
    assert_eq!(waiters.take(), own);
}

#[test]
fn a_session_with_another_number_is_watched_there() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let (waiter, new) = (waiters.epoll(3), Id(9));
    waiters.add(waiter, AT, event(Mask::OUT.0, 5), sessions.mask(AT.0)).unwrap();
    assert!(sessions.rename(AT.0, new, 0));
    let now = sessions.mask(new);
    waiters.rename(AT.0, new, now);
    for _ in 0..2 {
        assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
    }
    assert!(waiters.remove(waiter, AT).is_err());
    assert_eq!(waiters.remove(waiter, (new, AT.1)), Ok(()));
}

#[test]
fn what_is_watched_by_one_descriptor_moves_alone() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let (waiter, new) = (waiters.epoll(3), (Id(8), 8));
    let now = sessions.mask(AT.0);
    for (fd, data) in [(AT.1, 5), (new.1, 6)] {
        waiters.add(waiter, (AT.0, fd), event(Mask::OUT.0, data), now).unwrap();
    }
    waiters.transfer((AT.0, new.1), new.0, Mask::ALL);
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)], "nothing is there");
    sessions.open_datagrams(new.0, Domain::V4, &[]).unwrap();
    let now = sessions.mask(new.0);
    waiters.transfer(new, new.0, now);
    let mut both = found(&mut waiters, waiter, &mut sessions);
    both.sort_unstable();
    assert_eq!(both, [(Mask::OUT.0, 5), (Mask::OUT.0, 6)]);
    waiters.transfer(new, AT.0, now);
    assert!(!waiters.is_watched(new.0));
    assert_eq!(waiters.remove(waiter, (AT.0, new.1)), Ok(()));
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
    waiters.transfer_all(AT.0, new.0, now);
    assert!(!waiters.is_watched(AT.0));
    assert_eq!(found(&mut waiters, waiter, &mut sessions), [(Mask::OUT.0, 5)]);
}

#[test]
fn calls_wait_otherwise_than_epoll_instances() {
    let (mut sessions, mut waiters) = (sessions(), Waiters::default());
    let (epoll, call) = (waiters.epoll(3), waiters.take());
    assert!(!waiters.is_awaited(AT.0));
    waiters.add(epoll, AT, event(Mask::IN.0, 5), sessions.mask(AT.0)).unwrap();
    assert!(!waiters.is_awaited(AT.0));
    waiters.add(call, AT, event(Mask::IN.0, 0), sessions.mask(AT.0)).unwrap();
    assert!(waiters.is_awaited(AT.0));
    waiters.remove(call, AT).unwrap();
    assert!(!waiters.is_awaited(AT.0));
}
