//! Sockets that are shown: what is served, and what proves nothing.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use shm::attach::{Channel, ChannelError, RefusalKind};
use shm::bell::forbid_descriptors;
use shm::session::{Listen, Reply, Request};

use crate::instance::Instance;
use crate::{
    ask, ask_with, config, connect, daemon, hello, lease, listen, listeners, listening, open,
    python, refused, serving, stacks, until, with_stack,
};

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
    rustix::net::listen(&socket, 9).unwrap();
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
    rustix::net::listen(&socket, 5).unwrap();
    listening(listen(&channel, second, 3, &socket));
    let shown = listeners(&daemon);
    let members = shown[0]["members"].as_array().unwrap();
    let backlogs: Vec<_> = members.iter().map(|member| member["backlog"].as_u64()).collect();
    assert_eq!(backlogs, [Some(9), Some(5)], "as it was when each was shown");
    let range = ask(&channel, &lease(stack)).0;
    let Reply::Leased(range) = range else { panic!("{range:?}") };
    assert_eq!((range.first, range.count), (10_240, 64));
    let shown = stacks(&daemon);
    assert_eq!(shown[0]["leases"], serde_json::json!(["10240-10303"]));
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
fn what_proves_nothing_is_refused_with_the_reason() {
    let daemon = daemon("");
    let (channel, stack) = with_stack(&daemon);
    let says = |reply: Reply, kind, part: &str| {
        let refusal = refused(reply);
        assert_eq!(refusal.kind, kind, "{refusal}");
        assert!(refusal.message.contains(part), "{refusal}");
    };
    let invalid = RefusalKind::Invalid;
    let request = Request::Listen(Listen { stack, weight: 1, busy: false });
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
    let first = port.saturating_sub(20).min(65_472);
    let daemon = daemon(&format!("ports = \"{first}-{}\"", first + 63));
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
fn a_socket_of_another_network_namespace_proves_nothing() {
    let daemon = daemon("");
    // The process makes a namespace of its own, where it may bind what it likes.
    let program = r#"
import ctypes
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 and libc.unshare(CLONE_NEWNET) != 0:
    print("cannot"); sys.exit(0)
stack = begin("elsewhere")
l = socket.socket(); l.bind(("0.0.0.0", 80)); l.listen()
print(json.dumps(ask({"listen": {"stack": stack, "weight": 1}}, [l.fileno()])))
"#;
    let output = python(&daemon, program).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if said.trim() == "cannot" {
        eprintln!("skipped: no network namespace");
        return;
    }
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("\"permission\"") && said.contains("network namespace"), "{said}{error}");
    assert!(listeners(&daemon).is_empty());
}

/// Shows a socket before hello.
fn show_early(daemon: &Instance) -> (Channel, Result<(), ChannelError>) {
    let (channel, socket) = (connect(daemon), TcpListener::bind("127.0.0.1:0").unwrap());
    let request = Request::Listen(Listen { stack: 1, weight: 1, busy: false });
    let sent = channel.send(&request, &[socket.as_fd()]);
    (channel, sent)
}

#[test]
fn nothing_can_be_shown_before_hello() {
    let (here, _there) = UnixStream::pair().unwrap();
    if !forbid_descriptors(&here) {
        return;
    }
    let daemon = daemon("");
    let (channel, sent) = show_early(&daemon);
    let Err(ChannelError::System(error)) = sent else { panic!("{sent:?}") };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(matches!(hello(&channel), Reply::Welcome(_)), "nothing has come");
}

#[test]
fn who_shows_something_before_hello_is_refused_where_the_kernel_cannot_forbid_it() {
    let daemon = Instance::start_before_6_16(&config(""));
    let (channel, sent) = show_early(&daemon);
    sent.unwrap();
    let refusal = refused(channel.receive().unwrap().message);
    assert!(refusal.message.contains("descriptors come with it"), "{refusal}");
    with_stack(&daemon);
}
