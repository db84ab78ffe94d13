//! Connections in TIME-WAIT that processes leave to a running daemon: who may leave which.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guest;
mod instance;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use guest::{Guest, clock, established, file, waiting};
use instance::{Instance, PATIENCE, SMALL};
use shm::attach::RefusalKind;
use shm::session::{CarrierId, Deposit, Reply, Request};

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\naddresses = [\"192.0.2.1/24\"]\n";

/// A daemon, and a process that serves there.
struct Bed {
    daemon: Instance,
    socket: PathBuf,
    server: Guest,
    _listener: TcpListener,
    local: SocketAddr,
}

impl Bed {
    fn new() -> Self {
        let daemon = Instance::start(&format!("{SMALL}{PORT}"));
        let socket = daemon.path("sessions.sock");
        let mut server = Guest::attach(&socket);
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let local = SocketAddr::from(([192, 0, 2, 1], listener.local_addr().unwrap().port()));
        server.serve(&listener, local.ip());
        Self { daemon, socket, server, _listener: listener, local }
    }

    /// Ends of a connection of the server's.
    fn ends(&self, port: u16) -> (SocketAddr, SocketAddr) {
        (self.local, SocketAddr::from(([192, 0, 2, 77], port)))
    }

    /// An established connection of the server's.
    fn established(&self, port: u16) -> OwnedFd {
        let (local, remote) = self.ends(port);
        file(&[&established(local, remote)])
    }

    fn deposit(&mut self, id: CarrierId, file: &OwnedFd) {
        let asked = Deposit { stack: self.server.number(), id, at: clock() };
        let reply = self.server.ask(&Request::Deposit(asked), Some(file)).0;
        assert_eq!(reply, Reply::Deposited(id));
    }

    /// So many wait with the daemon.
    fn shows(&self, count: u64) {
        let start = Instant::now();
        let path = "/v1/sessions/connections?process=millraced";
        while self.daemon.get(path).json()["time_wait"] != count {
            assert!(start.elapsed() < PATIENCE, "{count} are not shown");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn only_ones_own_are_taken() {
    let mut bed = Bed::new();
    let good = waiting(&[bed.ends(7), bed.ends(8)]);
    // Those that come again count once.
    for _ in 0..2 {
        assert_eq!(bed.server.wait_out(&good, clock()), Reply::WaitingOut(2));
        bed.shows(2);
    }
    // Ends of others, and those of a connection that somebody else has by now.
    let (_carrier, id) = bed.server.carrier(&bed.socket);
    let connection = bed.established(9);
    bed.deposit(id, &connection);
    let mut heir = Guest::attach(&bed.socket);
    heir.withdraw(id).unwrap().unwrap();
    let (local, remote) = bed.ends(7);
    let mixed = waiting(&[
        (SocketAddr::from(([198, 51, 100, 1], local.port())), remote),
        (SocketAddr::new(local.ip(), local.port() ^ 1), remote),
        bed.ends(9),
        bed.ends(10),
    ]);
    assert_eq!(bed.server.wait_out(&mixed, clock()), Reply::WaitingOut(1));
    bed.shows(3);
    assert_eq!(heir.wait_out(&good, clock()), Reply::WaitingOut(0));
    // What is over, and what is no list of them.
    let long_ago = clock() - 61_000_000_000;
    assert_eq!(bed.server.wait_out(&good, long_ago), Reply::WaitingOut(0));
    for bytes in [&b""[..], b"garbage", &good[1..]] {
        let Reply::Refused(refusal) = bed.server.wait_out(bytes, clock()) else {
            panic!("{bytes:?} were taken")
        };
        assert_eq!(refusal.kind, RefusalKind::Invalid);
    }
    bed.shows(3);
}

#[test]
fn they_make_way_for_a_connection_between_the_same_ends() {
    let mut bed = Bed::new();
    let good = waiting(&[bed.ends(7), bed.ends(8)]);
    assert_eq!(bed.server.wait_out(&good, clock()), Reply::WaitingOut(2));
    bed.shows(2);
    let (_carrier, id) = bed.server.carrier(&bed.socket);
    let connection = bed.established(7);
    bed.deposit(id, &connection);
    bed.shows(1);
    // And do not take its place.
    assert_eq!(bed.server.wait_out(&good, clock()), Reply::WaitingOut(1));
    assert!(bed.server.withdraw(id).unwrap().is_some());
}
