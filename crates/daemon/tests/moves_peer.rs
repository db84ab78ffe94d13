//! Connections that move through a running daemon while a peer on the kernel's stack, behind a tap, keeps talking.
//!
//! Each test runs in a [network namespace](namespace) of its own.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guest;
mod instance;
mod namespace;

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use guest::{Guest, clock};
use instance::{Instance, PATIENCE, SMALL};
use namespace::{inside, ip};
use shm::session::{Event, Offered, Reply};
use transport::{ConnectionId, PacketList, State, TimeWait};

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"tap:peer\"\naddresses = [\"192.0.2.1/24\"]\n";
const ROUTER: [u8; 4] = [192, 0, 2, 1];
/// Bytes that the peer sends while its connection moves.
const AMOUNT: usize = 6_000_000;

/// A daemon with a tap whose other end is the kernel's, and a server on its address.
struct Bed {
    daemon: Instance,
    server: Guest,
    socket: TcpListener,
    local: SocketAddr,
    /// The listener's number, and the stack's own.
    listener: (u32, transport::ListenerId),
}

impl Bed {
    fn new() -> Self {
        Self::with("")
    }

    fn with(sessions: &str) -> Self {
        ip("link set lo up");
        let sessions = format!("[sessions]\nrequests = 100000\n{sessions}");
        let daemon = Instance::start(&format!("{SMALL}{sessions}{PORT}"));
        ip("addr add 192.0.2.2/24 dev peer");
        ip("link set peer up");
        let socket = TcpListener::bind("0.0.0.0:0").unwrap();
        let mut server = Guest::attach(&daemon.path("sessions.sock"));
        let listener = server.serve(&socket, IpAddr::from(ROUTER));
        let local = SocketAddr::from((ROUTER, socket.local_addr().unwrap().port()));
        Self { daemon, server, socket, local, listener }
    }

    fn sessions(&self) -> PathBuf {
        self.daemon.path("sessions.sock")
    }

    /// A connection that the server has and nobody has accepted.
    fn waiting(&mut self) -> ConnectionId {
        self.server.until("a connection that waits", |guest| {
            guest.stack.backlog(self.listener.1).filter(|backlog| backlog.waiting > 0)?;
            guest.stack.all_connections().first().copied()
        })
    }

    /// The server closes its listener and leaves the connection to the others.
    fn hand_over(&mut self, waiting: ConnectionId) {
        let number = self.listener.0;
        self.server.link.unlisten(self.server.number(), number).unwrap();
        let exported = self.server.export(waiting);
        assert_eq!(self.server.hand(number, &exported, 1), Reply::Handed(1));
    }
}

/// What the daemon offers to a process.
fn offered(guest: &mut Guest) -> Offered {
    let Some(Event::Offered(offered)) = guest.event() else { panic!("nothing was offered") };
    offered
}

/// A process that has taken what was offered accepts it and serves the peer.
fn serve_out(
    heir: &mut Guest,
    listener: transport::ListenerId,
    amount: usize,
    heard: JoinHandle<Vec<u8>>,
) {
    let connection = heir.accept(listener);
    let mut at = 0;
    read(heir, connection, &mut at, amount);
    heir.stack.send(connection, b"welcome").unwrap();
    heir.stack.close(connection);
    heir.until("the end", |_| heard.is_finished().then_some(()));
    assert_eq!(heard.join().unwrap(), b"welcome");
}

fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(31) ^ at >> 8 ^ at >> 16) as u8
}

/// A peer that sends, then hears what the server has to say, until its end.
fn peer(to: SocketAddr, amount: usize) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let bytes: Vec<u8> = (0..amount).map(pattern).collect();
        // Evenly, so that it is sending whenever the connection moves.
        for piece in bytes.chunks(20_000) {
            stream.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        heard
    })
}

/// Reads for a while; all bytes must follow each other.
fn read(guest: &mut Guest, id: ConnectionId, at: &mut usize, until: usize) {
    let mut piece = [0; 16_384];
    guest.until("data", |guest| {
        loop {
            let count = guest.stack.recv(id, &mut piece).unwrap();
            if count == 0 {
                break;
            }
            for byte in &piece[..count] {
                assert_eq!(*byte, pattern(*at), "at {at}");
                *at += 1;
            }
        }
        (*at >= until).then_some(())
    });
}

#[test]
fn a_peer_that_sends_all_the_time_loses_nothing() {
    if !inside("a_peer_that_sends_all_the_time_loses_nothing") {
        return;
    }
    let mut bed = Bed::new();
    let mut other = Guest::attach(&bed.sessions());
    let heard = peer(bed.local, AMOUNT);
    let sessions = bed.sessions();
    let Bed { server, listener, .. } = &mut bed;
    let mut connection = server.accept(listener.1);
    let (_carrier, id) = server.carrier(&sessions);
    let mut at = 0;
    let (mut here, mut there) = (server, &mut other);
    for step in 1..=10 {
        read(here, connection, &mut at, step * AMOUNT / 20);
        here.deposit(connection, id);
        // The daemon has it for a while: so long that the peer sees no other.
        thread::sleep(Duration::from_millis(20 * (step as u64 % 4)));
        connection = there.withdraw(id).unwrap().unwrap();
        std::mem::swap(&mut here, &mut there);
    }
    read(here, connection, &mut at, AMOUNT);
    here.stack.send(connection, b"all of it").unwrap();
    here.stack.close(connection);
    here.until("the end", |_| heard.is_finished().then_some(()));
    assert_eq!(heard.join().unwrap(), b"all of it");
    assert_eq!(at, AMOUNT);
}

#[test]
fn the_daemon_finishes_what_a_process_has_left() {
    if !inside("the_daemon_finishes_what_a_process_has_left") {
        return;
    }
    let mut bed = Bed::new();
    let heard = peer(bed.local, 1000);
    let connection = bed.server.accept(bed.listener.1);
    let mut at = 0;
    read(&mut bed.server, connection, &mut at, 1000);
    // As much as fits; the peer has not read any of it yet.
    let answer: Vec<u8> = (0..2_000_000).map(pattern).collect();
    let sent = bed.server.stack.send(connection, &answer).unwrap();
    assert!(sent > 50_000, "{sent}");
    bed.server.stack.close(connection);
    let (exported, at) = bed.server.export(connection);
    assert_eq!(bed.server.abandon(&exported, at, 1), Reply::Abandoned(1));
    let Bed { daemon, server, socket, .. } = bed;
    drop(server);
    let heard = heard.join().unwrap();
    assert!(heard == answer[..sent], "{} of {sent} bytes", heard.len());
    drop((daemon, socket));
}

/// Whether the kernel's socket at a port waits for its FIN to be acknowledged (LAST-ACK).
fn waits_for_the_last_acknowledgment(port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace();
        let is_its = words.nth(1).is_some_and(|local| local.ends_with(&port));
        is_its && words.nth(1) == Some("09")
    })
}

#[test]
fn the_daemon_repeats_the_last_acknowledgment_of_a_process_that_ended() {
    if !inside("the_daemon_repeats_the_last_acknowledgment_of_a_process_that_ended") {
        return;
    }
    let mut bed = Bed::new();
    let to = bed.local;
    let connecting = thread::spawn(move || TcpStream::connect(to).unwrap());
    let connection = bed.server.accept(bed.listener.1);
    bed.server.until("the peer", |_| connecting.is_finished().then_some(()));
    let mut peer = connecting.join().unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    bed.server.stack.close(connection);
    bed.server.until("an answer to the FIN", |guest| {
        (guest.stack.state(connection) == Some(State::FinWait2)).then_some(())
    });
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    // The acknowledgment of the peer's own FIN gets lost.
    peer.shutdown(Shutdown::Write).unwrap();
    let (start, mut lost) = (Instant::now(), PacketList::default());
    let Guest { stack, queues, .. } = &mut bed.server;
    while stack.time_waits() == 0 {
        assert!(start.elapsed() < PATIENCE, "no FIN");
        let now = clock();
        queues.inbound.receive(|packets| stack.input(now, packets, &mut lost));
        stack.flush(now, &mut lost);
        thread::sleep(Duration::from_millis(1));
    }
    let now = clock();
    let waits = stack.export_time_waits(now, 1);
    let port = peer.local_addr().unwrap().port();
    assert!(waits_for_the_last_acknowledgment(port));
    // From here on the daemon may answer.
    let reply = bed.server.wait_out(&TimeWait::write(&waits, now), now);
    assert_eq!(reply, Reply::WaitingOut(1));
    let Bed { daemon, server, socket, .. } = bed;
    drop(server);
    while waits_for_the_last_acknowledgment(port) {
        assert!(start.elapsed() < PATIENCE, "nobody answers");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(peer.take_error().unwrap().is_none(), "it was reset");
    drop((daemon, socket));
}

#[test]
fn a_carrier_that_nobody_holds_closes_its_connection() {
    if !inside("a_carrier_that_nobody_holds_closes_its_connection") {
        return;
    }
    let mut bed = Bed::new();
    let heard = peer(bed.local, 0);
    let connection = bed.server.accept(bed.listener.1);
    let (carrier, id) = bed.server.carrier(&bed.sessions());
    let copy = carrier.into_socket();
    let second = copy.try_clone().unwrap();
    bed.server.stack.send(connection, b"last words").unwrap();
    bed.server.deposit(connection, id);
    drop(copy);
    thread::sleep(Duration::from_millis(200));
    assert!(!heard.is_finished(), "somebody holds it still");
    drop(second);
    assert_eq!(heard.join().unwrap(), b"last words");
}

#[test]
fn what_nobody_accepted_is_accepted_by_another_member() {
    if !inside("what_nobody_accepted_is_accepted_by_another_member") {
        return;
    }
    let mut bed = Bed::new();
    let heard = peer(bed.local, 100_000);
    let waiting = bed.waiting();
    let mut heir = Guest::attach(&bed.sessions());
    let (number, listener) = heir.serve(&bed.socket, IpAddr::from(ROUTER));
    assert_eq!(number, bed.listener.0);
    bed.hand_over(waiting);
    let offered = offered(&mut heir);
    assert_eq!((offered.stack, offered.listener), (heir.number(), number));
    // The peer sends meanwhile.
    thread::sleep(Duration::from_millis(100));
    heir.withdraw(offered.id).unwrap().unwrap();
    serve_out(&mut heir, listener, 100_000, heard);
}

#[test]
fn what_nobody_accepted_waits_for_a_member_that_does() {
    if !inside("what_nobody_accepted_waits_for_a_member_that_does") {
        return;
    }
    let mut bed = Bed::new();
    let heard = peer(bed.local, 1_000);
    let waiting = bed.waiting();
    // As the master of a server whose workers change: it keeps the listener open, and accepts nothing.
    let idle = Guest::attach(&bed.sessions());
    idle.link.listen(idle.number(), 0, bed.socket.as_fd()).unwrap();
    bed.hand_over(waiting);
    assert!(!idle.has_event(), "who accepts nothing is offered nothing");
    let mut heir = Guest::attach(&bed.sessions());
    let (_, listener) = heir.serve(&bed.socket, IpAddr::from(ROUTER));
    let offered = offered(&mut heir);
    heir.withdraw(offered.id).unwrap().unwrap();
    serve_out(&mut heir, listener, 1_000, heard);
}

#[test]
fn what_the_daemon_has_no_room_for_is_reset() {
    if !inside("what_the_daemon_has_no_room_for_is_reset") {
        return;
    }
    let mut bed = Bed::with("parked = 1\n");
    let (to, sessions) = (bed.local, bed.sessions());
    let peer = move || {
        let mut peer = TcpStream::connect(to)?;
        peer.set_read_timeout(Some(PATIENCE))?;
        peer.read(&mut [0; 10])
    };
    let first = thread::spawn(peer);
    let connection = bed.server.accept(bed.listener.1);
    let (_carrier, id) = bed.server.carrier(&sessions);
    bed.server.deposit(connection, id);
    let ends = [true, false].map(|waits| {
        let end = thread::spawn(peer);
        let left = match waits {
            true => bed.waiting(),
            false => bed.server.accept(bed.listener.1),
        };
        (end, bed.server.export(left))
    });
    // There is somebody who would take it.
    let mut heir = Guest::attach(&sessions);
    heir.serve(&bed.socket, IpAddr::from(ROUTER));
    let [(_, waiting), (_, (accepted, at))] = &ends;
    assert_eq!(bed.server.hand(bed.listener.0, waiting, 1), Reply::Handed(0));
    assert_eq!(bed.server.abandon(accepted, *at, 1), Reply::Abandoned(0));
    assert!(!heir.has_event());
    for (end, _) in ends {
        let error = end.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert!(!first.is_finished(), "what the daemon keeps goes on");
}

#[test]
fn what_nobody_wants_is_reset() {
    if !inside("what_nobody_wants_is_reset") {
        return;
    }
    let mut bed = Bed::new();
    let to = bed.local;
    // On a busy machine the reset may come before `connect` has returned.
    let peer = move || TcpStream::connect(to).and_then(|mut peer| peer.read(&mut [0; 10]));
    let end = thread::spawn(peer);
    let waiting = bed.waiting();
    let exported = bed.server.export(waiting);
    assert_eq!(bed.server.hand(bed.listener.0, &exported, 1), Reply::Handed(0));
    let error = end.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    // A member that does not take what it is offered keeps it from nobody for ever.
    let end = thread::spawn(peer);
    // Its handshake ends before the other comes: what is not claimed is the newer member's in every second bucket.
    let waiting = bed.waiting();
    let mut deaf = Guest::attach(&bed.sessions());
    let (number, _) = deaf.serve(&bed.socket, IpAddr::from(ROUTER));
    let exported = bed.server.export(waiting);
    assert_eq!(bed.server.hand(number, &exported, 1), Reply::Handed(1));
    drop(deaf);
    let Bed { server, .. } = bed;
    drop(server);
    let start = Instant::now();
    let error = end.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{:?}", start.elapsed());
}
