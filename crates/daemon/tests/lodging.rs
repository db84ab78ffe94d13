//! Processes whose stacks run on a stack worker, at the sessions socket of a running daemon.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod instance;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use instance::{Instance, PATIENCE, SMALL};
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use shm::attach::Channel;
use shm::session::{Hello, OpenShared, PROTOCOL, Reply, Request};

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\naddresses = [\"192.0.2.1/24\"]\n";
/// Much longer than a stack worker takes to begin, and to say in the memory that it sleeps.
const LONG: Duration = Duration::from_millis(500);

fn ask(channel: &Channel, request: &Request) -> (Reply, Vec<OwnedFd>) {
    channel.send(request, &[]).unwrap();
    let received = channel.receive().unwrap();
    (received.message, received.files)
}

/// Whether anything was written into a segment since it was made.
fn is_touched(segment: &File) -> bool {
    let mut bytes = vec![0; usize::try_from(segment.metadata().unwrap().len()).unwrap()];
    segment.read_exact_at(&mut bytes, 0).unwrap();
    bytes.iter().any(|byte| *byte != 0)
}

/// A process that has come.
fn process(daemon: &Instance) -> Channel {
    let channel = Channel::connect(&daemon.path("sessions.sock")).unwrap();
    let hello = Hello { protocol: PROTOCOL, library: "test".into(), name: "server".into() };
    let welcome = ask(&channel, &Request::Hello(hello)).0;
    assert!(matches!(welcome, Reply::Welcome(_)), "{welcome:?}");
    channel
}

/// A process with a stack on a stack worker, not started yet.
struct Lodger {
    channel: Channel,
    stack: u32,
    segment: File,
    /// They stay open.
    _bells: Vec<OwnedFd>,
}

impl Lodger {
    fn of(daemon: &Instance) -> Self {
        let channel = process(daemon);
        let asked = OpenShared { sessions: 64, chunks: 16 };
        let (reply, files) = ask(&channel, &Request::OpenShared(asked));
        let Reply::SharedOpened(opened) = reply else { panic!("{reply:?}") };
        let mut files = files.into_iter();
        let segment = File::from(files.next().unwrap());
        Self { channel, stack: opened.stack, segment, _bells: files.collect() }
    }

    fn start(&self) {
        let started = ask(&self.channel, &Request::StartStack(self.stack)).0;
        assert_eq!(started, Reply::StackStarted(self.stack));
    }
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_sessions_take_on_the_worker_counts_for_their_user() {
    let daemon = Instance::start(&format!("{SMALL}[sessions]\nmemory = 64\n{PORT}"));
    let (one, other) = (process(&daemon), process(&daemon));
    // Memory that is shared for some 40 MiB, and places of sessions and connections for twice as much.
    let asked = OpenShared { sessions: 1 << 16, chunks: 16 };
    let Reply::Refused(refusal) = ask(&one, &Request::OpenShared(asked)).0 else { panic!() };
    assert!(refusal.message.contains("sessions.memory"), "{}", refusal.message);
    let asked = OpenShared { sessions: 1 << 14, chunks: 16 };
    let reply = ask(&one, &Request::OpenShared(asked)).0;
    assert!(matches!(reply, Reply::SharedOpened(_)), "{reply:?}");
    let reply = ask(&other, &Request::OpenShared(asked)).0;
    assert!(matches!(reply, Reply::Refused(_)), "{reply:?}");
}

#[test]
fn a_stack_worker_touches_no_memory_that_pages_can_be_taken_out_of() {
    let daemon = Instance::start(&format!("{SMALL}{PORT}"));
    let lodger = Lodger::of(&daemon);
    sleep(LONG);
    assert!(!is_touched(&lodger.segment), "the worker comes before the process has mapped it");
    lodger.start();
    let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&lodger.segment, holes, 0, 4096), Err(Errno::PERM));
    assert_eq!(ftruncate(&lodger.segment, 0), Err(Errno::PERM));
    wait("the worker does not come", || is_touched(&lodger.segment));
}

#[test]
fn who_breaks_the_protocol_is_sent_away_for_that() {
    let daemon = Instance::start(&format!("{SMALL}{PORT}"));
    let lodger = Lodger::of(&daemon);
    // Commands without a byte: every mark says that there is one, and that it is empty.
    lodger.segment.write_all_at(&1_u32.to_le_bytes().repeat(1024), 0).unwrap();
    lodger.start();
    let why = "server is gone: it breaks the protocol of its stack worker";
    wait("the log does not say why", || daemon.log().contains(why));
    assert!(lodger.channel.receive::<Reply>().is_err(), "it stays");
}
