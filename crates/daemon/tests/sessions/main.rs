//! Processes with stacks of their own, at the sessions socket of a running daemon.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bounds;
mod handed;
mod harm;
#[path = "../instance/mod.rs"]
mod instance;
mod locked;
mod opening;
mod sockets;

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use instance::{Instance, PATIENCE, SMALL};
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use rustix::net::sockopt;
use serde_json::Value;
use shm::attach::{Channel, Refusal};
use shm::session::{
    Hello, Lease, Listen, Listening, OpenStack, PROTOCOL, Reply, Request, Route, TransportProtocol,
};

/// How long an answer may take on a busy machine: far less than that.
const ANSWER: Duration = Duration::from_secs(20);

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\naddresses = [\"192.0.2.1/24\"]\n";

fn lease(stack: u32) -> Request {
    Request::Lease(Lease { stack, first: None })
}

fn route(destination: (IpAddr, u16)) -> Request {
    Request::Route(Route { protocol: TransportProtocol::Tcp, destination: destination.into() })
}

fn config(sessions: &str) -> String {
    format!("{SMALL}[sessions]\n{sessions}\n{PORT}")
}

fn daemon(sessions: &str) -> Instance {
    Instance::start(&config(sessions))
}

fn connect(daemon: &Instance) -> Channel {
    let channel = Channel::connect(&daemon.path("sessions.sock")).unwrap();
    sockopt::set_socket_timeout(&channel, sockopt::Timeout::Recv, Some(ANSWER)).unwrap();
    channel
}

fn ask(channel: &Channel, request: &Request) -> (Reply, Vec<OwnedFd>) {
    ask_with(channel, request, &[])
}

fn ask_with(
    channel: &Channel,
    request: &Request,
    files: &[BorrowedFd<'_>],
) -> (Reply, Vec<OwnedFd>) {
    channel.send(request, files).unwrap();
    let received = channel.receive().unwrap();
    (received.message, received.files)
}

fn refused(reply: Reply) -> Refusal {
    match reply {
        Reply::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn hello(channel: &Channel) -> Reply {
    let hello = Hello { protocol: PROTOCOL, library: "test".into(), name: "server".into() };
    ask(channel, &Request::Hello(hello)).0
}

/// What a program in Python needs to make what no signal ends: a file that is never closed, and a page that never comes.
const ENDLESS: &str = include_str!("../../../../lab/client/endless.py");

/// A process that runs a program in Python, which begins with `process.py`.
fn python(daemon: &Instance, program: &str) -> Command {
    let program = [include_str!("process.py"), program].concat();
    let mut command = Command::new("python3");
    command.args(["-c", &program]).arg(daemon.path("sessions.sock")).arg(PROTOCOL.to_string());
    command
}

const ASKED: OpenStack = OpenStack { slots: 64, capacity: 1984, claims: 1024, connections: 64 };

/// A process with a stack that was started.
fn with_stack(daemon: &Instance) -> (Channel, u32) {
    let channel = connect(daemon);
    let reply = hello(&channel);
    assert!(matches!(reply, Reply::Welcome(_)), "{reply:?}");
    let stack = open(&channel);
    (channel, stack)
}

fn open(channel: &Channel) -> u32 {
    let (reply, files) = ask(channel, &Request::OpenStack(ASKED));
    let Reply::StackOpened(opened) = reply else { panic!("{reply:?}") };
    assert_eq!(files.len(), 2 + opened.rings.rings.len());
    let started = ask(channel, &Request::StartStack(opened.stack)).0;
    assert_eq!(started, Reply::StackStarted(opened.stack));
    // From now on a worker touches it: no page can be taken out, and none is lost.
    let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&files[0], holes, 0, 4096), Err(Errno::PERM));
    assert_eq!(ftruncate(&files[0], 0), Err(Errno::PERM));
    opened.stack
}

fn listen(channel: &Channel, stack: u32, weight: u8, socket: impl AsFd) -> Reply {
    ask_with(channel, &Request::Listen(Listen { stack, weight, busy: false }), &[socket.as_fd()]).0
}

fn listening(reply: Reply) -> Listening {
    match reply {
        Reply::Listening(listening) => listening,
        other => panic!("{other:?}"),
    }
}

fn stacks(daemon: &Instance) -> Vec<Value> {
    daemon.get("/v1/sessions/stacks").json().as_array().unwrap().clone()
}

fn listeners(daemon: &Instance) -> Vec<Value> {
    daemon.get("/v1/sessions/listeners").json().as_array().unwrap().clone()
}

/// How many serve at each listener.
fn serving(daemon: &Instance) -> Vec<usize> {
    let shown = listeners(daemon);
    shown.iter().map(|listener| listener["members"].as_array().unwrap().len()).collect()
}

/// Waits until there are so many.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
