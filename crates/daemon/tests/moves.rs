//! Connections that move between processes through a running daemon: who may do what.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guest;
mod instance;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use guest::{Guest, carrier, clock, established, file, raw_file};
use instance::{Instance, PATIENCE, SMALL};
use shm::attach::{Refusal, RefusalKind};
use shm::session::{
    Abandon, CarrierId, Deposit, Event, Introduce, Lease, OpenStack, Reply, Request, Route, Routed,
    TransportProtocol, Withdraw,
};

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\naddresses = [\"192.0.2.1/24\"]\n";

/// How long a process is waited for that is asked for a connection. Where everything stands still for so long, it is lost.
const RECALL: Duration = Duration::from_secs(1);

fn daemon(sessions: &str) -> (Instance, PathBuf) {
    let daemon = Instance::start(&format!("{SMALL}[sessions]\n{sessions}\n{PORT}"));
    let socket = daemon.path("sessions.sock");
    (daemon, socket)
}

/// A server with an established connection that it has exported: its name, and a file with it.
struct Bed {
    daemon: Instance,
    socket: PathBuf,
    server: Guest,
    socket_that_listens: TcpListener,
    /// Its number.
    listener: u32,
    local: SocketAddr,
}

impl Bed {
    fn new(sessions: &str) -> Self {
        let (daemon, socket) = daemon(sessions);
        let mut server = Guest::attach(&socket);
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let local = SocketAddr::from(([192, 0, 2, 1], listener.local_addr().unwrap().port()));
        let (number, _) = server.serve(&listener, local.ip());
        Self { daemon, socket, server, socket_that_listens: listener, listener: number, local }
    }

    fn remote(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 77], port))
    }

    fn deposit(&mut self, id: CarrierId, file: &OwnedFd) -> Reply {
        let asked = Deposit { stack: self.server.number(), id, at: clock() };
        self.server.ask(&Request::Deposit(asked), Some(file)).0
    }
}

fn refused(reply: Reply) -> Refusal {
    match reply {
        Reply::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn lost(event: Option<Event>, id: CarrierId) -> bool {
    event == Some(Event::Lost(id))
}

#[test]
fn only_sound_connections_of_ones_own_are_taken() {
    let mut bed = Bed::new("");
    let (_carrier, id) = bed.server.carrier(&bed.socket);
    let good = established(bed.local, Bed::remote(7));
    let refuse = |bed: &mut Bed, file: &OwnedFd, part: &str| {
        let refusal = refused(bed.deposit(id, file));
        assert!(refusal.message.contains(part), "{part}: {refusal}");
        refusal.kind
    };
    let invalid = RefusalKind::Invalid;
    assert_eq!(refuse(&mut bed, &raw_file(b"garbage"), "does not hold 1"), invalid);
    assert_eq!(refuse(&mut bed, &raw_file(b""), "does not hold 1"), invalid);
    assert_eq!(refuse(&mut bed, &file(&[b"GET / HTTP/1.1"]), "no exported connection"), invalid);
    let short = &good[..good.len() - 1];
    assert_eq!(refuse(&mut bed, &file(&[short]), "a part is missing"), invalid);
    assert_eq!(refuse(&mut bed, &file(&[&good, &good]), "does not hold 1"), invalid);
    let null = std::fs::File::open("/dev/null").unwrap().into();
    assert_eq!(refuse(&mut bed, &null, "memfd_create"), invalid);
    // Addresses of others.
    let foreign = established("198.51.100.1:80".parse().unwrap(), Bed::remote(7));
    assert_eq!(refuse(&mut bed, &file(&[&foreign]), "does not have the address"), invalid);
    let port = SocketAddr::new(bed.local.ip(), bed.local.port() ^ 1);
    let unserved = established(port, Bed::remote(7));
    let kind = refuse(&mut bed, &file(&[&unserved]), "neither leases");
    assert_eq!(kind, RefusalKind::Permission);
    // After all this it can still be deposited, once.
    assert_eq!(bed.deposit(id, &file(&[&good])), Reply::Deposited(id));
    assert_eq!(refuse(&mut bed, &file(&[&good]), "not with that stack"), invalid);
    let (_second, other) = bed.server.carrier(&bed.socket);
    let refusal = refused(bed.deposit(other, &file(&[&good])));
    assert!(refusal.message.contains("belongs to stack"), "{refusal}");
    // And withdrawn, once.
    assert!(bed.server.withdraw(id).unwrap().is_some());
    let refusal = bed.server.withdraw(id).unwrap_err();
    assert!(refusal.message.contains("that stack has the connection"), "{refusal}");
}

#[test]
fn names_cannot_be_guessed_and_are_worth_nothing_to_others() {
    let mut bed = Bed::new("");
    let (_carrier, id) = bed.server.carrier(&bed.socket);
    let (_other, second) = bed.server.carrier(&bed.socket);
    assert!(id.0.iter().all(|word| !second.0.contains(word)));
    for guess in [CarrierId([0; 2]), CarrierId([id.0[0], 0]), CarrierId([id.0[0], id.0[1] ^ 1])] {
        let refusal = bed.server.withdraw(guess).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Unknown);
        let good = file(&[&established(bed.local, Bed::remote(7))]);
        assert_eq!(refused(bed.deposit(guess, &good)).kind, RefusalKind::Unknown);
    }
    // Another process that knows the name, and has no stack or another's.
    let mut thief = Guest::attach(&bed.socket);
    let asked = Withdraw { stack: bed.server.number(), id };
    let refusal = refused(thief.ask(&Request::Withdraw(asked), None).0);
    assert!(refusal.message.contains("there is no stack"), "{refusal}");
    let good = file(&[&established(bed.local, Bed::remote(7))]);
    let asked = Deposit { stack: thief.number(), id, at: clock() };
    let refusal = refused(thief.ask(&Request::Deposit(asked), Some(&good)).0);
    assert!(refusal.message.contains("not with that stack"), "{refusal}");
    let refusal = refused(thief.ask(&Request::Decline(id), None).0);
    assert!(refusal.message.contains("not with that process"), "{refusal}");
    assert!(carrier(&bed.socket, 12_345).is_err(), "no such stack");
}

#[test]
fn there_are_so_many_carriers_and_connections_and_no_more() {
    let mut bed = Bed::new("carriers = 300\nparked = 3\nconnections = 8\nrequests = 100000\n");
    let number = bed.server.number();
    let mut carriers: Vec<_> = (0..300).map(|_| carrier(&bed.socket, number).unwrap()).collect();
    let refusal = refused(carrier(&bed.socket, number).unwrap_err());
    assert!(refusal.message.contains("sessions.carriers allows one user 300"), "{refusal}");
    for (nth, (_, id)) in (1..4).zip(&carriers) {
        let good = established(bed.local, Bed::remote(nth));
        assert_eq!(bed.deposit(*id, &file(&[&good])), Reply::Deposited(*id));
    }
    let good = file(&[&established(bed.local, Bed::remote(9))]);
    let last = carriers[3].1;
    let refusal = refused(bed.deposit(last, &good));
    assert!(refusal.message.contains("sessions.parked allows one user 3"), "{refusal}");
    // What is withdrawn, or closed, makes room.
    assert!(bed.server.withdraw(carriers[0].1).unwrap().is_some());
    assert_eq!(bed.deposit(last, &good), Reply::Deposited(last));
    carriers.truncate(2);
    let start = Instant::now();
    while carriers.len() < 300 {
        assert!(start.elapsed() < PATIENCE, "closed carriers count for ever");
        match carrier(&bed.socket, number) {
            Ok(next) => carriers.push(next),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn who_does_not_answer_a_recall_keeps_nobody_waiting() {
    let mut bed = Bed::new("");
    let (_carrier, id) = bed.server.carrier(&bed.socket);
    let mut heir = Guest::attach(&bed.socket);
    assert_eq!(heir.withdraw(id), Ok(None));
    assert!(lost(heir.event(), id), "nobody answers");
    assert_eq!(bed.server.event(), Some(Event::Recall(id)));
    // One that says no.
    assert_eq!(heir.withdraw(id), Ok(None));
    assert_eq!(bed.server.event(), Some(Event::Recall(id)));
    assert_eq!(bed.server.ask(&Request::Decline(id), None).0, Reply::Declined(id));
    assert!(lost(heir.event(), id));
    assert_eq!(heir.withdraw(id).unwrap_err().kind, RefusalKind::Unknown);
    // One that gives it, in time.
    for port in 7.. {
        let (_carrier, id) = bed.server.carrier(&bed.socket);
        let good = file(&[&established(bed.local, Bed::remote(port))]);
        let asked = Instant::now();
        assert_eq!(heir.withdraw(id), Ok(None));
        assert_eq!(bed.server.event(), Some(Event::Recall(id)));
        assert_eq!(bed.deposit(id, &good), Reply::Deposited(id));
        let is_late = asked.elapsed() >= RECALL;
        let told = heir.event();
        assert!(heir.withdraw(id).unwrap().is_some());
        if told == Some(Event::Parked(id)) {
            break;
        }
        assert!(is_late && lost(told, id), "it was given in time");
        assert_eq!(bed.server.event(), Some(Event::Parked(id)), "it was given to nobody");
    }
    // One that ends.
    let (_carrier, id) = bed.server.carrier(&bed.socket);
    assert_eq!(heir.withdraw(id), Ok(None));
    let Bed { server, .. } = bed;
    drop(server);
    assert!(lost(heir.event(), id));
}

/// Two ask each other, and one gives what it is asked for. `false`: not in time.
fn ask_each_other() -> bool {
    let mut bed = Bed::new("");
    let mut other = Guest::attach(&bed.socket);
    let (_one, first) = bed.server.carrier(&bed.socket);
    let (_two, second) = other.carrier(&bed.socket);
    let good = file(&[&established(bed.local, Bed::remote(7))]);
    let asked = Instant::now();
    assert_eq!(bed.server.withdraw(second), Ok(None));
    assert_eq!(other.withdraw(first), Ok(None));
    assert_eq!(bed.deposit(first, &good), Reply::Deposited(first));
    if asked.elapsed() >= RECALL {
        return false;
    }
    assert_eq!(bed.server.event(), Some(Event::Recall(first)));
    assert_eq!(other.event(), Some(Event::Recall(second)));
    assert_eq!(other.event(), Some(Event::Parked(first)));
    assert!(other.withdraw(first).unwrap().is_some());
    if asked.elapsed() >= RECALL {
        return false;
    }
    assert_eq!(other.ask(&Request::Decline(second), None).0, Reply::Declined(second));
    assert!(lost(bed.server.event(), second));
    true
}

#[test]
fn two_that_ask_each_other_do_not_wait_for_each_other() {
    assert!((0..20).any(|_| ask_each_other()), "it is never in time");
}

#[test]
fn nobody_waits_for_a_connection_that_died_with_its_process() {
    let bed = Bed::new("");
    let (_held, id) = bed.server.carrier(&bed.socket);
    let Bed { server, socket, daemon: _daemon, .. } = bed;
    let mut heir = Guest::attach(&socket);
    drop(server);
    let start = Instant::now();
    let refusal = loop {
        match heir.withdraw(id) {
            Err(refusal) => break refusal,
            Ok(got) => assert!(got.is_none(), "nobody has given it"),
        }
        assert!(start.elapsed() < PATIENCE, "it is asked for still");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(refusal.message.contains("ended with the process that had it"), "{refusal}");
}

#[test]
fn what_a_dead_process_left_goes_on_as_long_as_somebody_holds_it() {
    let mut bed = Bed::new("parked = 1\n");
    let (held, id) = bed.server.carrier(&bed.socket);
    let good = file(&[&established(bed.local, Bed::remote(7))]);
    assert_eq!(bed.deposit(id, &good), Reply::Deposited(id));
    let Bed { server, socket, daemon: _daemon, .. } = bed;
    drop(server);
    let mut heir = Guest::attach(&socket);
    let there = heir.withdraw(id).unwrap().unwrap();
    assert!(heir.stack.info(there).is_some());
    // Nobody holds it: it ends here, and the name with it.
    drop(held);
    let start = Instant::now();
    while heir.withdraw(id).map_err(|refusal| refusal.kind) != Err(RefusalKind::Unknown) {
        assert!(start.elapsed() < PATIENCE, "the name outlives its carrier");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn only_what_may_move_is_taken() {
    let mut bed = Bed::new("");
    let mut other = Guest::attach(&bed.socket);
    other.serve(&bed.socket_that_listens, bed.local.ip());
    // Somebody has accepted it: no other member can.
    let accepted = (file(&[&established(bed.local, Bed::remote(7))]), clock());
    assert_eq!(bed.server.hand(bed.listener, &accepted, 1), Reply::Handed(0));
    assert!(!other.has_event(), "nobody is offered it");
    let refusal = refused(bed.server.abandon(&accepted.0, accepted.1, 4_097));
    assert!(refusal.message.contains("at most 4096 are allowed"), "{refusal}");
    assert_eq!(bed.server.abandon(&accepted.0, accepted.1, 1), Reply::Abandoned(1));
}

#[test]
fn what_the_daemon_keeps_is_shown() {
    let mut bed = Bed::new("");
    let (_carrier, id) = bed.server.carrier(&bed.socket);
    let good = file(&[&established(bed.local, Bed::remote(7))]);
    let path = "/v1/sessions/connections?process=millraced";
    let shown = |bed: &Bed| -> Vec<_> {
        let page = bed.daemon.get(path).json();
        let connections = page["connections"].as_array().unwrap().iter();
        connections.map(|one| one["remote"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(bed.deposit(id, &good), Reply::Deposited(id));
    assert_eq!(shown(&bed), [Bed::remote(7).to_string()]);
    assert!(bed.server.withdraw(id).unwrap().is_some());
    assert!(shown(&bed).is_empty());
    // It ends one that nobody will have again.
    let left = file(&[&established(bed.local, Bed::remote(8))]);
    assert_eq!(bed.server.abandon(&left, clock(), 1), Reply::Abandoned(1));
    assert_eq!(shown(&bed), [Bed::remote(8).to_string()]);
}

#[test]
fn a_stack_that_was_not_started_gives_nothing() {
    let mut bed = Bed::new("ports = \"20000-20255\"\n");
    let asked = OpenStack { slots: 64, capacity: 1984, claims: 64, connections: 64 };
    let (opened, _files) = bed.server.ask(&Request::OpenStack(asked), None);
    let Reply::StackOpened(opened) = opened else { panic!("{opened:?}") };
    let stack = opened.stack;
    let leased = bed.server.ask(&Request::Lease(Lease { stack, first: None }), None).0;
    let Reply::Leased(range) = leased else { panic!("{leased:?}") };
    let local = SocketAddr::new(bed.local.ip(), range.first);
    let good = file(&[&established(local, Bed::remote(7))]);
    let mut abandon = || {
        let asked = Request::Abandon(Abandon { stack, at: clock(), count: 1 });
        bed.server.ask(&asked, Some(&good)).0
    };
    assert_eq!(abandon(), Reply::Abandoned(0));
}

#[test]
fn links_end_with_their_stack_and_with_their_process() {
    let mut bed = Bed::new("");
    let link = |guest: &mut Guest, server: &mut Guest, destination| {
        let asked = Introduce { stack: guest.number(), destination };
        let (reply, _files) = guest.ask(&Request::Introduce(asked), None);
        let Reply::Introduced(introduced) = reply else { panic!("{reply:?}") };
        let made = introduced.made.unwrap().link;
        assert!(matches!(server.event(), Some(Event::Linked(place)) if place.link == made));
        made
    };
    let (mut one, mut two) = (Guest::attach(&bed.socket), Guest::attach(&bed.socket));
    let first = link(&mut one, &mut bed.server, bed.local);
    let second = link(&mut two, &mut bed.server, bed.local);
    let number = one.number();
    let closed = one.ask(&Request::CloseStack(number), None).0;
    assert_eq!(closed, Reply::StackClosed(number));
    assert_eq!(bed.server.event(), Some(Event::Unlinked(first)));
    drop(two);
    assert_eq!(bed.server.event(), Some(Event::Unlinked(second)));
}

#[test]
fn special_addresses_are_the_kernels_whatever_the_routes_say() {
    let routes = "[[route]]\nprefix = \"0.0.0.0/0\"\nvia = \"192.0.2.9\"\n\
                  [[route]]\nprefix = \"::/0\"\nvia = \"2001:db8::9\"\n";
    let port = PORT.replace("/24\"", "/24\", \"2001:db8::1/64\"");
    let daemon = Instance::start(&format!("{SMALL}{port}{routes}"));
    let mut guest = Guest::attach(&daemon.path("sessions.sock"));
    let mut way = |destination: &str| {
        let (protocol, destination) = (TransportProtocol::Tcp, destination.parse().unwrap());
        match guest.ask(&Request::Route(Route { protocol, destination }), None).0 {
            Reply::Routed(Routed::Millrace { source, .. }) => Some(source.to_string()),
            Reply::Routed(Routed::Kernel) => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(way("198.51.100.7:80").as_deref(), Some("192.0.2.1"));
    assert_eq!(way("[::ffff:198.51.100.7]:80").as_deref(), Some("192.0.2.1"));
    assert_eq!(way("[2001:db8:7::1]:80").as_deref(), Some("2001:db8::1"));
    let refused = way("192.0.2.1:80");
    assert_eq!(
        refused.as_deref(),
        Some("192.0.2.1"),
        "nobody serves there, and the kernel has it not"
    );
    for special in [
        "127.0.0.1:80",
        "[::1]:80",
        "[::ffff:127.0.0.1]:80",
        "0.0.0.0:80",
        "[::]:80",
        "169.254.1.1:80",
        "[fe80::7]:80",
        "255.255.255.255:80",
        "224.0.0.5:80",
        "[ff02::5]:80",
    ] {
        assert_eq!(way(special), None, "{special}");
    }
}
