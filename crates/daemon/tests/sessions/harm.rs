//! A process that misbehaves or dies harms nobody else.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::net::{SendFlags, sockopt};
use shm::attach::{Channel, RefusalKind};
use shm::session::{Hello, Listen, Reply, Request};

use crate::{
    ANSWER, ask, connect, daemon, lease, listen, listeners, python, refused, route, serving,
    stacks, until, with_stack,
};

/// How long whoever closes a lingering descriptor sleeps.
const LINGER: Duration = Duration::from_secs(40);

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
    // The second is heard of when this descriptor is closed, and not before the daemon goes on.
    daemon.signal(rustix::process::Signal::STOP);
    hostile.send(&route(("127.0.0.1".parse().unwrap(), 80)), &[]).unwrap();
    hostile
        .send(&Request::Listen(Listen { stack, weight: 1, busy: false }), &[sender.as_fd()])
        .unwrap();
    drop(sender);
    daemon.signal(rustix::process::Signal::CONT);
    drop(hostile.receive::<Reply>().unwrap());
    // The daemon has none of it: the user's judge closes the last one.
    let refusal = refused(hostile.receive::<Reply>().unwrap().message);
    assert!(refusal.message.contains("call listen()"), "{refusal}");
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
    // Until it is closed, the judge receives nothing more.
    let bound = TcpListener::bind("127.0.0.1:0").unwrap();
    let refusal = refused(listen(&hostile, stack, 1, &bound));
    assert_eq!(refusal.kind, RefusalKind::Resources);
    assert!(refusal.message.contains("does not answer"), "{refusal}");
    assert!(hostile.receive::<Reply>().is_err(), "nobody can take its message away");
    until("its stack is gone", || stacks(&daemon).is_empty());
    assert!(start.elapsed() < LINGER / 2, "somebody waited for it");
}

#[test]
fn a_killed_process_leaves_nothing() {
    let daemon = daemon("");
    // It forks: the connection stays open in its child, which must not matter.
    let program = r#"
stack = begin("mortal")
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
ask({"listen": {"stack": stack, "weight": 1}}, [l.fileno()])
ask({"lease": {"stack": stack, "first": None}})
child = os.fork()
if child == 0:
    time.sleep(100); os._exit(0)
print(child, flush=True)
time.sleep(30)
"#;
    let mut process = python(&daemon, program).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(process.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
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
