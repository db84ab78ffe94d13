//! Processes with stacks of their own, at the sessions socket of a running daemon.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod instance;

use std::io::Write;
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use instance::{Instance, PATIENCE, SMALL};
use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socket_with, sockopt};
use serde_json::Value;
use shm::attach::{Channel, Refusal, RefusalKind};
use shm::session::{
    Hello, Lease, Listen, Listening, OpenStack, PROTOCOL, Reply, Request, Route, Routed,
    TransportProtocol,
};

/// How long whoever closes a lingering descriptor sleeps.
const LINGER: Duration = Duration::from_secs(40);
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
    // From now on a worker touches it: no page can be taken out.
    let seals = fcntl_get_seals(&files[0]).unwrap();
    assert!(seals.contains(SealFlags::FUTURE_WRITE | SealFlags::SHRINK), "{seals:?}");
    opened.stack
}

fn listen(channel: &Channel, stack: u32, weight: u8, socket: impl AsFd) -> Reply {
    ask_with(channel, &Request::Listen(Listen { stack, weight }), &[socket.as_fd()]).0
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

#[test]
fn a_process_serves_what_it_has_bound_and_loses_it_with_its_connection() {
    let daemon = daemon("");
    let channel = connect(&daemon);
    let Reply::Welcome(welcome) = hello(&channel) else { panic!("no welcome") };
    assert_eq!(welcome.addresses, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    let stack = open(&channel);
    let second = open(&channel);
    let socket = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let one = listening(listen(&channel, stack, 1, &socket));
    assert_eq!((one.address, one.only_v6), (socket.local_addr().unwrap(), false));
    let same = listening(listen(&channel, second, 3, &socket));
    assert_eq!(same.listener, one.listener);
    let shown = listeners(&daemon);
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["address"], format!("0.0.0.0:{port}"));
    let members = shown[0]["members"].as_array().unwrap();
    let shares: Vec<_> = members.iter().map(|member| member["share"].as_u64().unwrap()).collect();
    assert_eq!(shares.iter().sum::<u64>(), 256);
    assert!((64..=65).contains(&shares[0]), "a quarter: {shares:?}");
    let range = ask(&channel, &lease(stack)).0;
    let Reply::Leased(range) = range else { panic!("{range:?}") };
    assert_eq!((range.first, range.count), (10_240, 256));
    let shown = stacks(&daemon);
    assert_eq!(shown[0]["leases"], serde_json::json!(["10240-10495"]));
    assert_eq!(shown[0]["pid"], std::process::id());
    assert!(daemon.get("/metrics").text().contains("millrace_stacks 2"));
    let left = ask(&channel, &Request::Unlisten(second, one.listener)).0;
    assert_eq!(left, Reply::Unlistened(second, one.listener));
    let again = refused(ask(&channel, &Request::Unlisten(second, one.listener)).0);
    assert_eq!(again.kind, RefusalKind::Unknown);
    assert_eq!(ask(&channel, &Request::CloseStack(second)).0, Reply::StackClosed(second));
    assert_eq!(stacks(&daemon).len(), 1);
    drop(channel);
    // Who has the socket may still serve.
    until("it is vacant", || stacks(&daemon).is_empty() && serving(&daemon) == [0]);
    drop(socket);
    until("all is taken back", || listeners(&daemon).is_empty());
    let log = daemon.log();
    assert!(log.contains("all it had was taken back"), "{log}");
}

#[test]
fn a_stack_has_rings_with_each_worker() {
    let daemon = Instance::start(&format!("[workers]\ncores = [0, 1]\n{}", config("")));
    let channel = connect(&daemon);
    assert!(matches!(hello(&channel), Reply::Welcome(_)));
    let (reply, files) = ask(&channel, &Request::OpenStack(ASKED));
    let Reply::StackOpened(opened) = reply else { panic!("{reply:?}") };
    // The segment, a bell to sleep on, one for each worker.
    assert_eq!((opened.rings.rings.len(), files.len()), (2, 4));
    let mut files = files.into_iter();
    let segment = std::sync::Arc::new(shm::Segment::from_file(files.next().unwrap()).unwrap());
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for ring in opened.rings.rings.iter().flatten() {
        taken.push((ring.offset, ring.offset + ring.layout().unwrap().bytes() as u64));
    }
    let claims = shm::claims::bytes(opened.claims.places).unwrap() as u64;
    taken.push((opened.claims.offset, opened.claims.offset + claims));
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0), "they overlap: {taken:?}");
    assert!(taken.iter().all(|(_, end)| *end <= segment.length() as u64), "{taken:?}");
    // It is not served before it has begun.
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let early = refused(listen(&channel, opened.stack, 1, &socket));
    assert!(early.message.contains("has not been started"), "{early}");
    let started = ask(&channel, &Request::StartStack(opened.stack)).0;
    assert_eq!(started, Reply::StackStarted(opened.stack));
    let again = refused(ask(&channel, &Request::StartStack(opened.stack)).0);
    assert_eq!(again.kind, RefusalKind::Invalid);
    listening(listen(&channel, opened.stack, 1, &socket));
    drop(segment);
    let other = open(&channel);
    assert_ne!(other, opened.stack);
    assert_eq!(stacks(&daemon).iter().find(|one| one["number"] == other).unwrap()["rings"], 2);
}

#[test]
fn what_proves_nothing_is_refused_with_the_reason() {
    let daemon = daemon("");
    let (channel, stack) = with_stack(&daemon);
    let says = |reply: Reply, kind, part: &str| {
        let refusal = refused(reply);
        assert_eq!(refusal.kind, kind, "{refusal}");
        assert!(refusal.message.contains(part), "{refusal}");
    };
    let invalid = RefusalKind::Invalid;
    let request = Request::Listen(Listen { stack, weight: 1 });
    says(ask(&channel, &request).0, invalid, "shows one socket");
    let none = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    says(listen(&channel, stack, 1, none.unwrap()), invalid, "not bound");
    let bound = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(bound.local_addr().unwrap()).unwrap();
    says(listen(&channel, stack, 1, &connected), invalid, "call listen()");
    let unix = UnixListener::bind(daemon.path("other.sock")).unwrap();
    says(listen(&channel, stack, 1, &unix), invalid, "neither IPv4 nor IPv6");
    let file = std::fs::File::open("/dev/null").unwrap();
    says(listen(&channel, stack, 1, &file), invalid, "no socket");
    says(listen(&channel, stack + 7, 1, &bound), RefusalKind::Unknown, "no stack");
    let foreign = ask_with(&channel, &lease(stack), &[file.as_fd()]).0;
    says(foreign, invalid, "only a request to listen");
    // Another process's stack is none of ours.
    let (other, theirs) = with_stack(&daemon);
    says(listen(&channel, theirs, 1, &bound), RefusalKind::Unknown, "no stack");
    // UDP needs no listen().
    let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
    listening(listen(&channel, stack, 1, &udp));
    drop(other);
}

#[test]
fn a_leased_port_is_not_served_by_others() {
    // A port that is free now.
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let first = port.saturating_sub(100).min(65_280);
    let daemon = daemon(&format!("ports = \"{first}-{}\"", first + 255));
    let (one, stack) = with_stack(&daemon);
    assert!(matches!(ask(&one, &lease(stack)).0, Reply::Leased(_)));
    let (two, other) = with_stack(&daemon);
    let refusal = refused(listen(&two, other, 1, &socket));
    assert_eq!(refusal.kind, RefusalKind::Resources);
    assert!(refusal.message.contains("is leased to stack"), "{refusal}");
    let refusal = refused(ask(&two, &lease(other)).0);
    assert!(refusal.message.contains("give sessions.ports more"), "{refusal}");
    assert_eq!(ask(&one, &Request::CloseStack(stack)).0, Reply::StackClosed(stack));
    listening(listen(&two, other, 1, &socket));
}

#[test]
fn bounds_are_those_of_a_user() {
    let daemon = daemon("stacks = 2\nlisteners = 1\nleases = 1\nmemory = 2\n");
    let (one, stack) = with_stack(&daemon);
    let (two, _) = with_stack(&daemon);
    let part = |reply: Reply, part: &str| {
        let refusal = refused(reply);
        assert_eq!(refusal.kind, RefusalKind::Resources);
        assert!(refusal.message.contains(part), "{refusal}");
    };
    part(ask(&two, &Request::OpenStack(ASKED)).0, "sessions.stacks allows one user 2");
    assert_eq!(ask(&one, &Request::CloseStack(stack)).0, Reply::StackClosed(stack));
    let large = OpenStack { slots: 1024, ..ASKED };
    part(ask(&one, &Request::OpenStack(large)).0, "sessions.memory allows one user 2");
    let stack = open(&one);
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let first = listening(listen(&one, stack, 1, &sockets[0]));
    part(listen(&one, stack, 1, &sockets[1]), "sessions.listeners allows one user 1");
    // Another weight is no other listener.
    assert_eq!(listening(listen(&one, stack, 2, &sockets[0])).listener, first.listener);
    assert!(matches!(ask(&one, &lease(stack)).0, Reply::Leased(_)));
    part(ask(&one, &lease(stack)).0, "sessions.leases allows one user 1");
    for asked in [
        OpenStack { slots: 63, ..ASKED },
        OpenStack { capacity: 0, ..ASKED },
        OpenStack { claims: 1000, ..ASKED },
        OpenStack { connections: 0, ..ASKED },
        OpenStack { connections: u32::MAX, ..ASKED },
        OpenStack { claims: u32::MAX, slots: u32::MAX, capacity: u32::MAX, connections: u32::MAX },
    ] {
        assert_eq!(refused(ask(&one, &Request::OpenStack(asked)).0).kind, RefusalKind::Invalid);
    }
}

#[test]
fn routes_lead_through_millrace_or_the_kernel() {
    let daemon = daemon("");
    let (channel, stack) = with_stack(&daemon);
    let route_to = |destination| match ask(&channel, &route(destination)).0 {
        Reply::Routed(routed) => routed,
        other => panic!("{other:?}"),
    };
    let route = |address: &str| route_to((address.parse().unwrap(), 80));
    let source = "192.0.2.1".parse().unwrap();
    assert_eq!(route("192.0.2.77"), Routed::Millrace { source, mtu: 1500 });
    for kernel in ["127.0.0.1", "::1", "8.8.8.8", "224.0.0.1", "192.0.2.255", "0.0.0.0", "fe80::1"]
    {
        assert_eq!(route(kernel), Routed::Kernel, "{kernel}");
    }
    let socket = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    listening(listen(&channel, stack, 1, &socket));
    assert_eq!(route_to((source, port)), Routed::Millrace { source, mtu: 1500 });
    let refused = route_to((source, port ^ 1));
    assert_eq!(refused, Routed::Millrace { source, mtu: 1500 }, "the kernel has not the address");
    assert_eq!(route_to(("127.0.0.1".parse().unwrap(), port)), Routed::Kernel);
}

#[test]
fn a_socket_that_lingers_blocks_nobody_but_its_user() {
    let daemon = daemon("requests = 1\n");
    let (hostile, stack) = with_stack(&daemon);
    let deaf_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(deaf_listener.local_addr().unwrap()).unwrap();
    let (_deaf, _) = deaf_listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    while sender.write(&[0; 1 << 16]).is_ok() {}
    sockopt::set_socket_linger(&sender, Some(LINGER)).unwrap();
    // It is heard of a second after this one, when this descriptor is closed.
    hostile.send(&route(("127.0.0.1".parse().unwrap(), 80)), &[]).unwrap();
    hostile.send(&Request::Listen(Listen { stack, weight: 1 }), &[sender.as_fd()]).unwrap();
    drop(sender);
    drop(hostile.receive::<Reply>().unwrap());
    // The one that shows the socket is not answered: the daemon closes it.
    let wait = Some(Duration::from_secs(4));
    sockopt::set_socket_timeout(&hostile, sockopt::Timeout::Recv, wait).unwrap();
    assert!(hostile.receive::<Reply>().is_err(), "the daemon's descriptor was not the last");
    let start = Instant::now();
    for _ in 0..5 {
        assert_eq!(daemon.get("/v1/ports").status, 200);
        assert_eq!(stacks(&daemon).len(), 1);
    }
    // The same user's clients have another thread.
    let attach = Channel::connect(&daemon.path("attach.sock")).unwrap();
    sockopt::set_socket_timeout(&attach, sockopt::Timeout::Recv, Some(ANSWER)).unwrap();
    attach.send(&shm::attach::Request::Ports, &[]).unwrap();
    let answer = attach.receive::<shm::attach::Reply>().unwrap().message;
    assert!(matches!(answer, shm::attach::Reply::Refused(_)));
    assert!(start.elapsed() < LINGER / 2, "somebody waited for it");
}

#[test]
fn a_socket_of_another_network_namespace_proves_nothing() {
    let daemon = daemon("");
    // The process makes a namespace of its own, where it may bind what it likes.
    let script = r#"
import json, os, socket, struct, sys
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 and libc.unshare(CLONE_NEWNET) != 0:
    print("cannot"); sys.exit(0)
def ask(m, fds=()):
    b = json.dumps(m).encode()
    if fds: socket.send_fds(s, [b], fds)
    else: s.send(b)
    b, got, _, _ = socket.recv_fds(s, 65536, 160)
    return json.loads(b)
ask({"hello": {"protocol": PROTOCOL, "library": "test", "name": "elsewhere"}})
opened = ask({"open-stack": {"slots": 64, "capacity": 1984, "claims": 1024, "connections": 64}})
stack = opened["stack-opened"]["stack"]
ask({"start-stack": stack})
l = socket.socket(); l.bind(("0.0.0.0", 80)); l.listen()
print(json.dumps(ask({"listen": {"stack": stack, "weight": 1}}, [l.fileno()])))
"#;
    let script = script.replace("PROTOCOL", &PROTOCOL.to_string());
    let output = Command::new("python3")
        .args(["-c", &script])
        .arg(daemon.path("sessions.sock"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if said.trim() == "cannot" {
        return;
    }
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("\"permission\"") && said.contains("network namespace"), "{said}{error}");
    assert!(listeners(&daemon).is_empty());
}

#[test]
fn a_killed_process_leaves_nothing() {
    let daemon = daemon("");
    // It forks: the connection stays open in its child, which must not matter.
    let script = r#"
import json, os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
def ask(m, fds=()):
    b = json.dumps(m).encode()
    if fds: socket.send_fds(s, [b], fds)
    else: s.send(b)
    b, got, _, _ = socket.recv_fds(s, 65536, 160)
    return json.loads(b)
ask({"hello": {"protocol": PROTOCOL, "library": "test", "name": "mortal"}})
stack = ask({"open-stack": {"slots": 64, "capacity": 1984, "claims": 1024, "connections": 64}})["stack-opened"]["stack"]
ask({"start-stack": stack})
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
ask({"listen": {"stack": stack, "weight": 1}}, [l.fileno()])
ask({"lease": {"stack": stack, "first": None}})
child = os.fork()
if child == 0:
    time.sleep(100); os._exit(0)
print(child, flush=True)
time.sleep(30)
"#;
    let script = script.replace("PROTOCOL", &PROTOCOL.to_string());
    let mut process = Command::new("python3")
        .args(["-c", &script])
        .arg(daemon.path("sessions.sock"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(process.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    assert_eq!((stacks(&daemon).len(), listeners(&daemon).len()), (1, 1));
    process.kill().unwrap();
    process.wait().unwrap();
    let killed = Instant::now();
    // The child has the socket, and may serve.
    until("nothing is left", || stacks(&daemon).is_empty() && serving(&daemon) == [0]);
    println!("taken back {} us after the process had ended", killed.elapsed().as_micros());
    let child: i32 = line.trim().parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    until("no listener is left", || listeners(&daemon).is_empty());
}

#[test]
fn a_reload_applies_who_may_and_how_many() {
    let daemon = daemon("stacks = 1\n");
    let (channel, _) = with_stack(&daemon);
    refused(ask(&channel, &Request::OpenStack(ASKED)).0);
    let reload = |sessions: &str| {
        daemon.write_config(&config(sessions));
        let answer = daemon.request("POST", "/v1/reload", "{}");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    };
    assert!(reload("stacks = 2\n").contains("[sessions] changed"));
    open(&channel);
    assert!(reload("socket = \"/run/elsewhere.sock\"\n").contains("[sessions] differs"));
    assert!(reload("enabled = false\n").contains("[sessions] changed"));
    until("it is told to go", || stacks(&daemon).is_empty());
    let late = connect(&daemon);
    let refusal = refused(hello(&late));
    assert_eq!(refusal.kind, RefusalKind::Permission);
    assert!(refusal.message.contains("sessions.enabled is false"), "{refusal}");
    reload("");
    let (_again, _) = with_stack(&daemon);
}

#[test]
fn nonsense_ends_the_connection_and_nothing_else() {
    let daemon = daemon("");
    let (honest, stack) = with_stack(&daemon);
    for nonsense in [
        &b"{"[..],
        b"\"lease\"",
        b"{\"lease\":-1}",
        b"{\"route\":\"nowhere\"}",
        b"{\"listen\":{\"stack\":1,\"weight\":256}}",
        b"{\"hello\":{\"protocol\":1}}",
        &[0xff; 64],
    ] {
        let channel = connect(&daemon);
        rustix::net::send(&channel, nonsense, SendFlags::NOSIGNAL).unwrap();
        let refusal = refused(channel.receive::<Reply>().unwrap().message);
        assert_eq!(refusal.kind, RefusalKind::Invalid);
    }
    let early = connect(&daemon);
    let refusal = refused(ask(&early, &lease(stack)).0);
    assert!(refusal.message.contains("say hello first"), "{refusal}");
    let other = connect(&daemon);
    let old = Hello { protocol: 0, library: "old".into(), name: "old".into() };
    assert_eq!(refused(ask(&other, &Request::Hello(old)).0).kind, RefusalKind::Version);
    assert!(matches!(ask(&honest, &lease(stack)).0, Reply::Leased(_)));
}
