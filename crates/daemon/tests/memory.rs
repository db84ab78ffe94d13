//! Memory that processes keep when the daemon has taken it back.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod instance;

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use instance::{Instance, PATIENCE, SMALL};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shm::attach::{self, Channel, FilterText, Open, Refusal, Spread, Take};
use shm::session::{self, OpenStack};

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\naddresses = [\"192.0.2.1/24\"]\n";

fn daemon(section: &str) -> Instance {
    Instance::start(&format!("{SMALL}[{section}]\nmemory = 1\n{PORT}"))
}

fn ask<Reply: DeserializeOwned>(
    channel: &Channel,
    request: &impl Serialize,
) -> (Reply, Vec<OwnedFd>) {
    channel.send(request, &[]).unwrap();
    let received = channel.receive().unwrap();
    (received.message, received.files)
}

/// Has memory given and taken back until no more is given, and keeps its files: then as little as keeps it, then nothing.
/// `open_and_close`: gives the file.
fn counts_until_nobody_holds_it(
    section: &str,
    open_and_close: impl Fn() -> Result<OwnedFd, Refusal>,
) {
    let mut kept = Vec::new();
    let refusal = loop {
        assert!(kept.len() < 100, "nobody counts it");
        match open_and_close() {
            Ok(memory) => kept.push(memory),
            Err(refusal) => break refusal,
        }
    };
    let wanted = format!("{section}.memory allows one user 1");
    assert!(refusal.message.contains(&wanted) && !kept.is_empty(), "{refusal}");
    // No open file, but it would lead to one.
    let reopened = |memory: OwnedFd| {
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    };
    let paths: Vec<OwnedFd> = kept.into_iter().map(reopened).collect();
    assert!(open_and_close().is_err());
    drop(paths);
    let start = Instant::now();
    while let Err(refusal) = open_and_close() {
        assert!(start.elapsed() < PATIENCE, "{refusal}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn memory_of_stacks_counts_until_nobody_holds_it() {
    let daemon = daemon("sessions");
    let channel = Channel::connect(&daemon.path("sessions.sock")).unwrap();
    let (protocol, library, name) = (session::PROTOCOL, "test".into(), "keeper".into());
    let hello = session::Request::Hello(session::Hello { protocol, library, name });
    let (welcome, _): (session::Reply, _) = ask(&channel, &hello);
    assert!(matches!(welcome, session::Reply::Welcome(_)), "{welcome:?}");
    counts_until_nobody_holds_it("sessions", || {
        let asked = OpenStack { slots: 64, capacity: 1984, claims: 1024, connections: 64 };
        let open = session::Request::OpenStack(asked);
        let (reply, files): (session::Reply, _) = ask(&channel, &open);
        let stack = match reply {
            session::Reply::StackOpened(opened) => opened.stack,
            session::Reply::Refused(refusal) => return Err(refusal),
            other => panic!("{other:?}"),
        };
        let (started, _): (session::Reply, _) = ask(&channel, &session::Request::StartStack(stack));
        assert_eq!(started, session::Reply::StackStarted(stack));
        let (closed, _): (session::Reply, _) = ask(&channel, &session::Request::CloseStack(stack));
        assert_eq!(closed, session::Reply::StackClosed(stack));
        Ok(files.into_iter().next().unwrap())
    });
}

#[test]
fn memory_of_clients_counts_until_nobody_holds_it() {
    let daemon = daemon("clients");
    let channel = Channel::connect(&daemon.path("attach.sock")).unwrap();
    let (protocol, library, name) = (attach::PROTOCOL, "test".into(), "keeper".into());
    let hello = attach::Request::Hello(attach::Hello { protocol, library, name });
    let (welcome, _): (attach::Reply, _) = ask(&channel, &hello);
    assert!(matches!(welcome, attach::Reply::Welcome(_)), "{welcome:?}");
    counts_until_nobody_holds_it("clients", || {
        let asked = Open {
            ports: Vec::new(),
            take: Take::Divert,
            spread: Spread::Flow,
            filter: FilterText::default(),
            channels: 1,
            slots: 64,
            capacity: 2048,
            queue: None,
        };
        let (reply, files): (attach::Reply, _) = ask(&channel, &attach::Request::Open(asked));
        let queues = match reply {
            attach::Reply::Opened(opened) => opened.queues,
            attach::Reply::Refused(refusal) => return Err(refusal),
            other => panic!("{other:?}"),
        };
        let (started, _): (attach::Reply, _) = ask(&channel, &attach::Request::Start(queues));
        assert!(matches!(started, attach::Reply::Started(_)), "{started:?}");
        let (closed, _): (attach::Reply, _) = ask(&channel, &attach::Request::Close(queues));
        assert!(matches!(closed, attach::Reply::Closed(_)), "{closed:?}");
        Ok(files.into_iter().next().unwrap())
    });
}
