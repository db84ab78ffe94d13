//! Descriptors from outside whose closing blocks: neither the control thread nor a worker may be the one who closes them.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod instance;

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use instance::{Instance, SMALL};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use shm::attach::{Channel, Hello, Open, PROTOCOL, Reply, Request, Spread, Take};

/// How long whoever closes such a descriptor sleeps.
const LINGER: Duration = Duration::from_secs(40);
/// How long an answer may take on a busy machine: far less than that.
const ANSWER: Duration = Duration::from_secs(15);

/// A TCP connection with unsent data and a reader that never reads: closing its last descriptor blocks for [`LINGER`].
struct Lingering {
    sender: TcpStream,
    _deaf: (TcpListener, TcpStream),
}

fn lingering() -> Lingering {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (deaf, _) = listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    let full = [0; 1 << 16];
    while sender.write(&full).is_ok() {}
    sockopt::set_socket_linger(&sender, Some(LINGER)).unwrap();
    Lingering { sender, _deaf: (listener, deaf) }
}

/// Sends it along with a message and gives up its own descriptor. The kernel may forbid it, which is as good.
fn hand_over(socket: BorrowedFd<'_>, message: &[u8]) -> (TcpListener, TcpStream) {
    let Lingering { sender, _deaf } = lingering();
    let files = [sender.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if sendmsg(socket, &[IoSlice::new(message)], &mut ancillary, flags).is_err() {
        // Nobody else has it: its closing must not keep this test.
        sockopt::set_socket_linger(&sender, None).unwrap();
    }
    _deaf
}

fn config() -> String {
    format!(
        "{SMALL}[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\naddresses = [\"10.0.1.1/24\"]\n"
    )
}

/// Whether it ends in time; it goes on by itself if not.
fn in_time<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(act()));
    wait.recv_timeout(ANSWER).unwrap_or_else(|_| panic!("{what}: no answer in {ANSWER:?}"))
}

fn answers(daemon: &std::sync::Arc<Instance>) {
    let asked = std::sync::Arc::clone(daemon);
    assert_eq!(in_time("the API", move || asked.get("/v1/ports").status), 200);
}

fn ask(channel: &Channel, request: &Request) -> (Reply, Vec<OwnedFd>) {
    channel.send(request, &[]).unwrap();
    let received = channel.receive().unwrap();
    (received.message, received.files)
}

fn open(channel: &Channel) -> Vec<OwnedFd> {
    let hello = Hello { protocol: PROTOCOL, library: "test".into(), name: "test".into() };
    assert!(matches!(ask(channel, &Request::Hello(hello)).0, Reply::Welcome(_)));
    let open = Open {
        ports: Vec::new(),
        take: Take::Divert,
        spread: Spread::Flow,
        filter: shm::attach::FilterText::default(),
        channels: 1,
        slots: 64,
        capacity: 2048,
        queue: None,
    };
    let (reply, files) = ask(channel, &Request::Open(open));
    let Reply::Opened(opened) = reply else { panic!("{reply:?}") };
    assert!(matches!(ask(channel, &Request::Start(opened.queues)).0, Reply::Started(_)));
    files
}

/// A whole client, to its end.
fn attaches(daemon: &Instance) {
    let path = daemon.path("attach.sock");
    in_time("attaching", move || drop(open(&Channel::connect(&path).unwrap())));
}

fn descriptors_in_messages(daemon: Instance) {
    let daemon = std::sync::Arc::new(daemon);
    let (mut deaf, mut staying) = (Vec::new(), Vec::new());
    for message in [&b"\"ports\""[..], b"nonsense", b"{\"hello\":{}}"] {
        for stays in [false, true] {
            let stranger = Channel::connect(&daemon.path("attach.sock")).unwrap();
            deaf.push(hand_over(stranger.as_fd(), message));
            staying.extend(stays.then_some(stranger));
        }
    }
    answers(&daemon);
    answers(&daemon);
}

#[test]
fn descriptors_in_messages_stop_nobody() {
    descriptors_in_messages(Instance::start(&config()));
}

#[test]
fn nor_where_the_kernel_cannot_forbid_them() {
    descriptors_in_messages(Instance::start_before_6_16(&config()));
}

/// Who sends them to the API keeps the answers to one user waiting: the control thread goes on.
#[test]
fn descriptors_to_the_api_stop_nobody() {
    for before in [false, true] {
        let start = if before { Instance::start_before_6_16 } else { Instance::start };
        let daemon = start(&config());
        let (mut deaf, mut staying) = (Vec::new(), Vec::new());
        for message in
            [&b"GET /v1/ports HTTP/1.1\r\n"[..], b"\0", b"GET /v1/version HTTP/1.1\r\n\r\n"]
        {
            for stays in [false, true] {
                let member = UnixStream::connect(daemon.socket()).unwrap();
                deaf.push(hand_over(member.as_fd(), message));
                staying.extend(stays.then_some(member));
            }
        }
        // The control thread welcomes it, and opens its queues.
        attaches(&daemon);
        attaches(&daemon);
    }
}

#[test]
fn descriptors_over_bells_stop_nobody() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root attaches");
        return;
    }
    let daemon = std::sync::Arc::new(Instance::start(&config()));
    let path = daemon.path("attach.sock");
    let mut deaf = Vec::new();
    for _ in 0..3 {
        let channel = Channel::connect(&path).unwrap();
        let files = open(&channel);
        // The segment, the channel's bell, the worker's.
        for bell in &files[1..] {
            deaf.push(hand_over(bell.as_fd(), b"1"));
        }
        // The worker is asked something by every client that comes.
        attaches(&daemon);
        drop((files, channel));
        answers(&daemon);
        attaches(&daemon);
    }
}
