use super::*;

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// A process in place of a judge, and the other end of its orders.
fn running(uid: u32, program: &mut Command) -> (Running, OwnedFd) {
    let (judge, orders) = Judge::pair().unwrap();
    (Running { judge, process: Some(program.spawn().unwrap()), uid }, orders)
}

fn until_gone(uid: u32) {
    let begun = Instant::now();
    while has_to_wait(uid) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        sleep(BREATH / 100);
    }
}

#[test]
fn who_has_no_judge_is_not_held() {
    let judging = Arc::<Judging>::default();
    let (socket, _peer) = UnixStream::pair().unwrap();
    // There is none beside a test's program.
    assert!(Held::of(&judging, 1, socket.as_fd()).is_none());
}

#[test]
fn one_that_has_ended_is_replaced_and_knows_nothing_of_the_one_before() {
    let judging = Arc::<Judging>::default();
    let (socket, _peer) = UnixStream::pair().unwrap();
    let (first, orders) = running(1, Command::new("sleep").arg("100"));
    judging.state().running = Some(first);
    let held = Held::of(&judging, 1, socket.as_fd()).unwrap();
    drop(orders);
    assert!(matches!(held.take(1), Err(ChannelError::Unjudged)));
    assert!(judging.state().running.is_none());
    let (second, _orders) = running(1, Command::new("sleep").arg("100"));
    judging.state().running = Some(second);
    let next = Held::of(&judging, 1, socket.as_fd()).unwrap();
    assert_ne!(held.number, next.number);
}

#[test]
fn one_of_another_version_has_ended_for_that() {
    let exit = format!("exit {OTHER_ORDERS}");
    let (mut other, _orders) = running(1, Command::new("sh").args(["-c", exit.as_str()]));
    let ended = other.process.as_mut().unwrap().wait().unwrap();
    assert!(said(ended).contains("restart"), "{ended}");
    assert_eq!(other.end(), Some(ended));
}

#[test]
fn a_user_whose_judge_has_not_ended_gets_no_other() {
    let uid = u32::MAX - 7;
    assert!(!has_to_wait(uid));
    let sleeper = Command::new("sleep").arg("100").spawn().unwrap();
    left().users.push((uid, sleeper));
    assert!(has_to_wait(uid) && !has_to_wait(uid - 1));
    for (_, sleeper) in left().users.iter_mut().filter(|(user, _)| *user == uid) {
        sleeper.kill().unwrap();
    }
    until_gone(uid);
}

#[test]
fn those_that_end_late_are_reaped_though_no_other_starts() {
    let uid = u32::MAX - 9;
    let start = || Command::new("sleep").arg("0.1").spawn().unwrap();
    let (own, before) = (start(), start());
    let before = Pid::from_child(&before);
    left().users.push((uid, own));
    left().before.push(before);
    let begun = Instant::now();
    let is_left = || {
        let left = left();
        left.users.iter().any(|(user, _)| *user == uid) || left.before.contains(&before)
    };
    while is_left() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        sleep(BREATH / 100);
        reap_judges();
    }
    assert!(waitpid(Some(before), WaitOptions::NOHANG).is_err(), "it is a zombie");
}

#[test]
fn many_users_leave_so_many_and_root_gets_one_nevertheless() {
    let all: Vec<u32> = (1000..).take(MOST_LEFT).collect();
    let few = &all[1..];
    assert!(!keep_waiting(few, 5) && keep_waiting(few, 1001));
    assert!(keep_waiting(&all, 5) && !keep_waiting(&all, 0));
    let line = complaint(&all, 5).unwrap();
    assert!(line.contains("64 millrace-judge of others"), "{line}");
    assert_eq!((complaint(&all, 1001), complaint(&all, 0)), (None, None));
}

#[test]
fn one_is_ended_with_its_users_thread() {
    let (ended, orders) = running(u32::MAX - 8, Command::new("sleep").arg("100"));
    drop(ended);
    until_gone(u32::MAX - 8);
    drop(orders);
}
