//! What the daemon says while it is asked something else: no file tells of it, and it is heeded nevertheless.

use std::process::Command;

use host::Mask;
use shm::session::{CarrierId, Event, Listen, Offered, Reply, Request};

use super::daemon::Daemon;
use super::mute::{listening, open, open_listener};
use super::{Other, PATIENCE};
use crate::clock::{Alarm, SECOND};
use crate::process;
use crate::sleeping::wait_ready;

/// The other process is to sleep.
const SLEEPS: &str = "MILLRACE_TEST_SLEEPS";
const ID: CarrierId = CarrierId([7, 8]);

#[test]
fn what_the_daemon_says_ahead_of_an_answer_is_heeded_by_who_sleeps_then() {
    let path = std::env::temp_dir().join(format!("millrace-news-{}", std::process::id()));
    let daemon = Daemon::listen(&path);
    let mut sleeper = Command::new(std::env::current_exe().unwrap());
    sleeper.args(["--exact", "sleeping::tests::news::sleeper", "--ignored", "--nocapture"]);
    sleeper.env("MILLRACE_SESSIONS", &path).env("MILLRACE_PLACEMENT", "inline").env(SLEEPS, "");
    let _sleeper = Other(sleeper.spawn().unwrap());
    let worker = daemon.serve();
    let say = |reply: &Reply| worker.session.send(reply, &[]).unwrap();
    let hear = || worker.session.receive::<Request>().unwrap().message;
    let Request::Listen(Listen { weight: 0, .. }) = hear() else { panic!() };
    let offered = Offered { stack: 1, listener: 8, id: ID };
    for event in [Event::Offered(offered), Event::Recall(ID)] {
        say(&Reply::Event(event));
    }
    say(&listening());
    std::fs::remove_file(&path).unwrap();
    // It has no such listener to take the connection for, and no such connection to give.
    let heard = hear();
    assert!(matches!(heard, Request::Decline(ID)), "{heard:?}");
}

/// The other process.
#[test]
#[ignore = "started by the test above"]
fn sleeper() {
    // Nothing to do for who runs all ignored tests.
    if std::env::var_os(SLEEPS).is_none() {
        return;
    }
    let shared = process::attached().expect("the daemon's place is taken");
    let fd = open(shared);
    open_listener();
    let alarm = Alarm::after(PATIENCE * SECOND);
    assert!(wait_ready(shared, shared.lock(), fd, Mask::IN, alarm).is_ok());
}
