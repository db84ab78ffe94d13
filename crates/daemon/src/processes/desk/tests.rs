use super::*;
use crate::processes::testing::{Closed, send_lingering};
use crate::processes::{Answer, Bounds, Guest, Process};

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use shm::attach::{Channel, ChannelError, PeerCredentials, Refusal, RefusalKind, Reply, Request};
use shm::session::Brought;

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

/// A socket to which everybody may bring descriptors.
struct Open;

/// Who has come there, and has said something.
struct Bearer(bool);

impl Service for Open {
    const SOCKET: &'static str = "test";
    const THREAD: &'static str = "test";
    const SECTION: &'static str = "test";
    type Guest = Bearer;

    fn bounds(&self) -> Bounds {
        Bounds { most: 1, connections: 1, requests: 100 }
    }

    fn admit(&self, _: &Process) -> Result<(), Refusal> {
        Ok(())
    }

    fn receive(&self, _: Process, _: Arc<Shared>) -> Bearer {
        Bearer(false)
    }
}

impl Guest for Bearer {
    const FILES: usize = 1;
    type Request = Request;
    type Reply = Reply;

    fn is_known(&self) -> bool {
        self.0
    }

    async fn answer(&mut self, _: Request, _: Vec<Brought>) -> Answer<Reply> {
        self.0 = true;
        Reply::Ports(Vec::new()).into()
    }

    fn keep(self, _: OwnedFd) {}

    async fn leave(self, _: String) {}
}

#[test]
fn who_cannot_bring_descriptors_is_told_why_instead_of_a_welcome() {
    // There is no judge beside a test's program.
    let desk = Desk::open(User::Uid(1), Arc::new(Open)).unwrap();
    let (coming, channel) = coming();
    let coming = Coming { place: Ok(Place::of(&Arc::default())), ..coming };
    channel.send(&Request::Ports, &[]).unwrap();
    assert!(desk.send(coming).is_ok());
    let answer = channel.receive::<Reply>().unwrap().message;
    let Reply::Refused(refusal) = answer else { panic!("{answer:?}") };
    assert!(refusal.message.contains("millrace-judge is missing"), "{refusal}");
    assert!(matches!(channel.receive::<Reply>(), Err(ChannelError::Closed)));
}
