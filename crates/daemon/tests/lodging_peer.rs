//! What a process leaves on its stack worker, while a peer on the kernel's stack, behind a tap, is still there.
//!
//! Each test runs in a [network namespace](namespace) of its own.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod instance;
mod namespace;

use std::io::{IoSlice, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use client::session::{Knocker, Link, Shared};
use host::{Domain, Errno, Id, Kind, Outgoing, Plan, Remote, Wire};
use instance::{Instance, PATIENCE, SMALL};
use namespace::{inside, ip};
use shm::SleepWord;
use shm::session::OpenShared;

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"tap:peer\"\naddresses = [\"192.0.2.1/24\"]\n";
const ROUTER: [u8; 4] = [192, 0, 2, 1];
const ASKED: OpenShared = OpenShared { sessions: 64, chunks: 64 };
const LISTENER: Id = Id(1);
const SERVER: Id = Id(2);

/// The way to a stack worker.
#[derive(Debug)]
struct Bells(Knocker);

impl Wire for Bells {
    fn ring(&self, sleeps: SleepWord<'_>) {
        self.0.ring(sleeps);
    }

    fn wait(&self) -> bool {
        self.0.wait(Duration::from_millis(100))
    }

    fn pause(&self) -> bool {
        self.0.pause(Duration::from_millis(1))
    }
}

/// A process on a stack worker.
struct Lodger {
    remote: Remote,
    _shared: Shared,
    _link: Link,
}

/// A daemon with a tap whose other end is the kernel's, a process that serves there, and its client.
struct Bed {
    daemon: Instance,
    server: Lodger,
    socket: TcpListener,
    client: TcpStream,
}

impl Bed {
    fn new() -> Self {
        ip("link set lo up");
        let daemon = Instance::start(&format!("{SMALL}{PORT}"));
        ip("addr add 192.0.2.2/24 dev peer");
        ip("link set peer up");
        let socket = TcpListener::bind("0.0.0.0:0").unwrap();
        let local = SocketAddr::from((ROUTER, socket.local_addr().unwrap().port()));
        let sessions = daemon.path("sessions.sock");
        let link = Link::open(Some(sessions.as_path()), "lodger", |file| file).unwrap();
        let mut shared = link.open_shared(&ASKED, |file| file).unwrap();
        let end = Plan::new(ASKED.sessions, ASKED.chunks).unwrap().process(&shared.segment);
        let wire = Box::new(Bells(shared.knocker.take().unwrap()));
        let mut remote = Remote::new(end.unwrap(), wire);
        remote.open(LISTENER, Domain::V4, Kind::Stream).unwrap();
        remote.bind(LISTENER, local).unwrap();
        remote.listen(LISTENER, 8).unwrap();
        link.listen(shared.number, 1, socket.as_fd()).unwrap();
        let client = TcpStream::connect(local).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let start = Instant::now();
        while let Err(error) = remote.accept(LISTENER, SERVER) {
            assert!(error == Errno::AGAIN && start.elapsed() < PATIENCE, "{error:?}");
            thread::sleep(Duration::from_millis(1));
        }
        let server = Lodger { remote, _shared: shared, _link: link };
        Self { daemon, server, socket, client }
    }
}

/// Waits until so many connections in TIME-WAIT are shown with a process.
fn shows(daemon: &Instance, process: &str, count: u64) {
    let start = Instant::now();
    let path = format!("/v1/sessions/connections?process={process}");
    while daemon.get(&path).json()["time_wait"] != count {
        assert!(start.elapsed() < PATIENCE, "{process} does not show {count}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(31) ^ at >> 8 ^ at >> 16) as u8
}

#[test]
fn what_a_process_has_closed_arrives_however_it_ends() {
    if !inside("what_a_process_has_closed_arrives_however_it_ends") {
        return;
    }
    let Bed { daemon, mut server, socket, mut client } = Bed::new();
    // As much as fits anywhere: the peer does not read yet.
    let data: Vec<u8> = (0..20_000_000).map(pattern).collect();
    let (mut sent, mut full) = (0, 0);
    while full < 50 && sent < data.len() {
        match server.remote.send(SERVER, &[IoSlice::new(&data[sent..])], Outgoing::default()) {
            Ok(some) => (sent, full) = (sent + some, 0),
            Err(Errno::AGAIN) => full += 1,
            Err(error) => panic!("{error:?}"),
        }
        server.remote.ring();
        thread::sleep(Duration::from_millis(5));
    }
    // No time to say more than that.
    server.remote.close(SERVER);
    drop(server);
    // It has gone, with its listener.
    thread::sleep(Duration::from_millis(500));
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert!(heard == data[..sent], "{} of {sent} bytes", heard.len());
    drop((daemon, socket));
}

#[test]
fn its_time_waits_are_the_daemons() {
    if !inside("its_time_waits_are_the_daemons") {
        return;
    }
    let Bed { daemon, mut server, socket, mut client } = Bed::new();
    server.remote.close(SERVER);
    server.remote.ring();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    drop(client);
    shows(&daemon, "lodger", 1);
    drop(server);
    shows(&daemon, "millraced", 1);
    drop(socket);
}
