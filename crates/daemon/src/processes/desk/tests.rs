use super::*;
use crate::processes::Process;
use crate::processes::testing::{Closed, send_lingering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use shm::attach::{Channel, PeerCredentials, Refusal, RefusalKind, Reply, Request};

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
    (Coming { socket, process, place: Err(refusal), among: None }, Channel::of(theirs))
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
