//! A stack worker and a daemon that do not answer for a while: the thread that asks waits for it, and no other does.

use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use host::{Domain, Errno, Incoming, Outgoing, Plan, Served, Sessions};
use shm::attach::{Channel, Received, Refusal, RefusalKind};
use shm::session::{
    Listen, Listening, OpenShared, Placement, PortRange, Reply, Request, Routed, SharedOpened,
    TransportProtocol,
};
use shm::{Doorbell, Segment};
use transport::{Config, PacketList};

use super::daemon::Daemon;
use super::{Other, PATIENCE};
use crate::address::{self, id};
use crate::hooks::{descriptors, options};
use crate::process::{self, Shared};
use crate::state::Place;
use crate::{clock, routes};

mod bound;
mod datagrams;
mod listener;
mod numbers;

const FOLDER: &str = "MILLRACE_TEST_FOLDER";
/// What is asked while the worker does not answer.
const CALL: &str = "MILLRACE_TEST_CALL";

/// What the daemon says when it is asked the way.
const ROUTED: Routed =
    Routed::Millrace { source: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), mtu: 1500 };

/// What both processes have come to, as files.
#[derive(Clone)]
struct Steps(PathBuf);

impl Steps {
    fn come_to(&self, step: &str) {
        fs::write(self.0.join(step), "").unwrap();
    }

    fn have_come_to(&self, step: &str) -> bool {
        self.0.join(step).exists()
    }

    fn wait_for(&self, step: &str) {
        let end = Instant::now() + Duration::from_secs(PATIENCE);
        while !self.have_come_to(step) {
            assert!(Instant::now() < end, "nobody comes to '{step}'");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn while_a_worker_does_not_answer_other_threads_send_and_receive() {
    ask("option");
}

#[test]
fn while_one_thread_closes_what_lingers_other_threads_send_and_receive() {
    ask("close");
}

#[test]
fn while_the_daemon_does_not_say_the_way_other_threads_send_and_receive() {
    ask("route");
}

#[test]
fn while_the_daemon_does_not_say_who_serves_other_threads_send_and_receive() {
    ask("meet");
}

#[test]
fn while_the_daemon_is_told_that_a_listener_serves_other_threads_send_and_receive() {
    ask("tell");
}

fn ask(call: &str) {
    let folder = std::env::temp_dir().join(format!("millrace-mute-{}-{call}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let socket = folder.join("daemon");
    let daemon = Daemon::listen(&socket);
    let mut asker = Command::new(std::env::current_exe().unwrap());
    asker.args(["--exact", "sleeping::tests::mute::asker", "--ignored", "--nocapture"]);
    let placement = if matches!(call, "meet" | "share" | "tell") { "inline" } else { "shared" };
    asker.env("MILLRACE_SESSIONS", &socket).env("MILLRACE_PLACEMENT", placement);
    let mut asker = Other(asker.env(FOLDER, &folder).env(CALL, call).spawn().unwrap());
    let steps = Steps(folder.clone());
    if call == "share" {
        listener::answer(&daemon.serve().session, &steps);
    } else if placement == "inline" {
        keep_waiting(&daemon.serve().session, &steps, call);
    } else {
        Worker::open(daemon.meet(Placement::Shared)).work(&steps, call == "leave");
    }
    assert!(asker.0.wait().unwrap().success());
    fs::remove_dir_all(&folder).unwrap();
}

/// Says nothing of who serves, or of the process's listener, until the process has sent.
fn keep_waiting(session: &Channel, steps: &Steps, call: &str) {
    let say = |reply: &Reply| session.send(reply, &[]).unwrap();
    let hear = || session.receive::<Request>().unwrap().message;
    if call == "tell" {
        let Request::Listen(Listen { weight: 0, .. }) = hear() else { panic!() };
        say(&listening());
    }
    steps.wait_for("ready");
    steps.come_to("mute");
    let reply = match hear() {
        Request::Introduce(_) => {
            Reply::Refused(Refusal::new(RefusalKind::Unknown, "nobody serves there"))
        }
        Request::Listen(Listen { weight: 1, .. }) => listening(),
        other => panic!("{other:?}"),
    };
    steps.come_to("asked");
    steps.wait_for("sent");
    say(&reply);
    let end = Instant::now() + Duration::from_secs(PATIENCE);
    while !session.is_closed() {
        assert!(Instant::now() < end, "the process does not end");
        let heard = session.receive_now::<Request>();
        if let Ok(Some(Received { message: Request::Unlisten(stack, listener), .. })) = heard {
            say(&Reply::Unlistened(stack, listener));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn listening() -> Reply {
    let address = (Ipv4Addr::LOCALHOST, 80).into();
    Reply::Listening(Listening {
        listener: 7,
        protocol: TransportProtocol::Tcp,
        address,
        only_v6: false,
        taken: false,
    })
}

/// The other process.
#[test]
#[ignore = "started by the tests above"]
fn asker() {
    // Nothing to do for who runs all ignored tests.
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let steps = Steps(folder.into());
    let shared = process::attached().expect("the daemon's place is taken");
    let fd = open(shared);
    numbers::files_are_made_in_turn(shared);
    let asks: Box<dyn FnOnce() + Send> = match std::env::var(CALL).unwrap().as_str() {
        "close" => {
            let fd = open_lingering(shared);
            Box::new(move || close(shared, fd))
        }
        call @ ("name" | "port") => {
            let fd = bound::open(shared, call == "port");
            Box::new(move || bound::keep(shared, fd))
        }
        "end" => {
            let fd = listener::open_two();
            Box::new(move || listener::end(shared, fd))
        }
        "leave" => Box::new(listener::listen_at_last),
        "listen" => {
            let steps = steps.clone();
            Box::new(move || listener::listen_and_close(shared, &steps))
        }
        "meet" => Box::new(move || meet(shared)),
        "share" => Box::new(listener::share),
        "tell" => {
            let (fd, steps) = (open_listener(), steps.clone());
            Box::new(move || accept_and_close(shared, fd, &steps))
        }
        "route" => Box::new(move || assert_eq!(way(shared), ROUTED)),
        call if call.starts_with("udp") => datagrams::act(shared, call, &steps),
        _ => Box::new(move || assert_eq!(kind_of(fd), Ok(libc::SOCK_DGRAM))),
    };
    steps.come_to("ready");
    steps.wait_for("mute");
    let asks = thread::spawn(asks);
    steps.wait_for("asked");
    for number in 0..100 {
        send_and_receive(shared, fd, number);
    }
    steps.come_to("sent");
    asks.join().unwrap();
}

/// A UDP socket on the worker's stack.
pub(super) fn open(shared: &Shared) -> c_int {
    let mut state = shared.lock();
    let fd = state.placeholder().unwrap();
    state.sessions.open_datagrams(id(fd), Domain::V4, &[]).unwrap();
    let local = "192.0.2.1:1000".parse().unwrap();
    state.sessions.bind(id(fd), local).unwrap();
    // Nobody is asked for it again.
    assert_eq!(state.sessions.name(id(fd)), Ok(local));
    state.occupy(fd, Place { flags: libc::O_NONBLOCK, ..Place::default() });
    fd
}

/// A stream on the worker's stack whose close may have to wait.
fn open_lingering(shared: &Shared) -> c_int {
    let mut state = shared.lock();
    let fd = state.placeholder().unwrap();
    state.sessions.open_with(id(fd), Domain::V4, &[]).unwrap();
    let linger = [1_i32, 1].map(i32::to_ne_bytes).concat();
    state.sessions.set_option(id(fd), libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
    state.occupy(fd, Place::default());
    fd
}

/// Closes it, for which the worker is asked.
fn close(shared: &Shared, fd: c_int) {
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { descriptors::close(fd) }, 0);
    assert!(!shared.lock().sessions.has(id(fd)));
}

/// The way to another host, about which the daemon is asked.
fn way(shared: &Shared) -> Routed {
    let to = "192.0.2.9:9".parse().unwrap();
    routes::of_datagrams(shared, shared.lock(), to).1
}

/// Who serves at one of the router's addresses, about which the daemon is asked.
fn meet(shared: &Shared) {
    let Routed::Millrace { source, .. } = ROUTED else { panic!() };
    let (own, to) = (SocketAddr::new(source, 0), SocketAddr::new(source, 80));
    let mut state = shared.lock();
    state.learn_route((TransportProtocol::Udp, own), clock::now(), Some(ROUTED));
    assert!(state.is_to_meet(to));
    let state = routes::meet(shared, state, to);
    assert!(!state.is_to_meet(to));
    assert!(state.attachment.link.next_event().is_ok(), "the daemon's answer came too late");
}

/// A listener that serves nobody yet.
pub(super) fn open_listener() -> c_int {
    let (name, length) = address::encode("127.0.0.1:0".parse().unwrap());
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
    // SAFETY: an address, with its length.
    unsafe {
        let fd = libc::socket(libc::AF_INET, kind, 0);
        assert_eq!(libc::bind(fd, (&raw const name).cast(), length), 0);
        assert_eq!(libc::listen(fd, 8), 0);
        fd
    }
}

/// Looks for a connection at it, of which the daemon is told; meanwhile another thread closes it.
fn accept_and_close(shared: &Shared, fd: c_int, steps: &Steps) {
    thread::scope(|scope| {
        scope.spawn(|| {
            steps.wait_for("asked");
            // SAFETY: no memory is involved.
            assert_eq!(unsafe { descriptors::close(fd) }, 0);
        });
        let nowhere = std::ptr::null_mut();
        // SAFETY: nobody asks for the peer's address.
        let accepted = unsafe { libc::accept4(fd, nowhere, std::ptr::null_mut(), 0) };
        assert_eq!(accepted, -1);
    });
    let state = shared.lock();
    assert!(state.attachment.link.next_event().is_ok(), "the daemon's answer came too late");
}

/// `SO_TYPE`, about which the worker is asked.
fn kind_of(fd: c_int) -> Result<c_int, Errno> {
    let (mut value, mut length): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
    let (level, name) = (libc::SOL_SOCKET, libc::SO_TYPE);
    let target = (&raw mut value).cast();
    // SAFETY: a word, and its length.
    let done = unsafe { options::getsockopt(fd, level, name, target, &raw mut length) };
    if done == 0 { Ok(value) } else { Err(crate::errno::get()) }
}

fn send_and_receive(shared: &Shared, fd: c_int, number: u8) {
    let mut state = shared.lock();
    let to = Some("192.0.2.9:9".parse().unwrap());
    let source = Some([192, 0, 2, 1].into());
    let outgoing = Outgoing { to, source, ..Outgoing::default() };
    let sent = state.sessions.send(id(fd), &[IoSlice::new(&[number])], outgoing);
    assert_eq!(sent, Ok(1));
    let mut byte = [0];
    let targets = &mut [IoSliceMut::new(&mut byte)];
    let received = state.sessions.recv(id(fd), targets, Incoming::default());
    assert_eq!(received.err(), Some(Errno::AGAIN));
    state.run();
}

/// What a stack worker of the daemon has of a process.
struct Worker {
    served: Served,
    answers: Doorbell,
    events: Doorbell,
    _commands: Doorbell,
    session: Channel,
}

impl Worker {
    fn open(session: Channel) -> Self {
        let hear = || session.receive::<Request>().unwrap().message;
        let Request::OpenShared(OpenShared { sessions, chunks }) = hear() else { panic!() };
        let plan = Plan::new(sessions, chunks).unwrap();
        let segment = Arc::new(Segment::create("millrace-test", plan.bytes()).unwrap());
        let bell = || Doorbell::pair().unwrap();
        let [(answers, theirs), (events, other), (_commands, third)] = [bell(), bell(), bell()];
        let files = [segment.as_fd(), theirs.as_fd(), other.as_fd(), third.as_fd()];
        let opened = SharedOpened { stack: 1, sessions, chunks };
        session.send(&Reply::SharedOpened(opened), &files).unwrap();
        let Request::StartStack(1) = hear() else { panic!() };
        session.send(&Reply::StackStarted(1), &[]).unwrap();
        let sessions = Sessions::new(Config::default()).unwrap();
        let served = Served::new(plan.worker(&segment).unwrap(), sessions);
        Self { served, answers, events, _commands, session }
    }

    /// What the daemon answers, if it is asked something.
    fn answer(&self) -> Option<Reply> {
        match self.session.receive_now::<Request>().ok()??.message {
            Request::Route(_) => Some(Reply::Routed(ROUTED)),
            Request::Listen(_) => Some(listening()),
            Request::Unlisten(stack, listener) => Some(Reply::Unlistened(stack, listener)),
            Request::Lease(_) => Some(Reply::Leased(PortRange { first: 40_000, count: 16 })),
            _ => None,
        }
    }

    /// Does what it is asked until the process ends, but nothing from the moment at which that is ready until it has sent. Then it may
    /// leave, with its daemon.
    fn work(mut self, steps: &Steps, leaves: bool) {
        let (begin, mut sink) = (Instant::now(), PacketList::default());
        let mut owed = None;
        while !self.session.is_closed() {
            assert!(begin.elapsed() < Duration::from_secs(PATIENCE), "the process does not end");
            thread::sleep(Duration::from_millis(1));
            if steps.have_come_to("ready") && !steps.have_come_to("sent") {
                steps.come_to("mute");
                owed = owed.or_else(|| self.answer());
                if owed.is_some() || self.served.has_commands() {
                    steps.come_to("asked");
                }
                continue;
            }
            if leaves && steps.have_come_to("sent") {
                return;
            }
            if let Some(reply) = owed.take().or_else(|| self.answer()) {
                self.session.send(&reply, &[]).unwrap();
            }
            let now = begin.elapsed().as_nanos() as u64;
            self.served.serve(now);
            self.served.turn(now, &mut sink);
            let Self { served, answers, events, .. } = &mut self;
            served.ring(
                |sleeps| {
                    answers.ring(sleeps);
                },
                |sleeps| {
                    events.ring(sleeps);
                },
            );
        }
    }
}
