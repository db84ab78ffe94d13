use super::*;
use crate::processes::Process;
use crate::processes::testing::Closed;

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair, sockopt,
};
use shm::attach::{Channel, PeerCredentials, Refusal, RefusalKind, Reply, Request};

/// How long whoever closes such a descriptor sleeps, at least: much longer than the test waits.
const LINGER: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(20);

/// A connection that is to be refused, and the other end.
fn coming() -> (Coming, Channel) {
    let flags = SocketFlags::CLOEXEC;
    let (socket, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    sockopt::set_socket_timeout(&theirs, sockopt::Timeout::Recv, Some(ANSWER)).unwrap();
    rustix::io::ioctl_fionbio(&socket, true).unwrap();
    let credentials = PeerCredentials { pid: 1, uid: 1, gid: 1 };
    let process = Process { credentials, groups: Vec::new() };
    let refusal = Refusal::new(RefusalKind::Permission, "no");
    (Coming { socket, process, place: Err(refusal) }, Channel::of(theirs))
}

/// Sends a descriptor whose closing blocks. What must stay open is returned.
fn send_lingering(channel: &Channel) -> (TcpListener, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (deaf, _) = listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    while sender.write(&[0; 1 << 16]).is_ok() {}
    sockopt::set_socket_linger(&sender, Some(LINGER)).unwrap();
    let files = [sender.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
    let sent = sendmsg(channel, &[IoSlice::new(b"\"ports\"")], &mut ancillary, SendFlags::empty());
    sent.unwrap();
    (listener, deaf)
}

/// As on a kernel that can't forbid descriptors: these sockets were not told to.
#[test]
fn who_sends_descriptors_stops_its_own_thread_only() {
    let service = Arc::new(Closed { most: 1 });
    let stopped = Desk::open(User::Strangers, Arc::clone(&service)).unwrap();
    let (hostile, channel) = coming();
    let _deaf = send_lingering(&channel);
    assert!(stopped.send(hostile).is_ok());
    let hears = |desk: &Desk| {
        let (coming, channel) = coming();
        channel.send(&Request::Ports, &[]).unwrap();
        assert!(desk.send(coming).is_ok(), "giving it a connection never waits");
        channel.receive::<Reply>()
    };
    assert!(hears(&stopped).is_err(), "it sleeps in a close");
    let other = Desk::open(User::Uid(1), service).unwrap();
    assert!(matches!(hears(&other).unwrap().message, Reply::Refused(_)));
}
