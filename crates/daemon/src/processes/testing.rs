//! A socket to which nobody is admitted, and descriptors whose closing blocks, for tests.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use shm::attach::{Refusal, RefusalKind, Reply, Request};
use shm::session::Brought;

use super::{Answer, Bounds, Guest, Process, Service, Shared};

pub(super) struct Closed {
    pub(super) most: u16,
}

pub(super) struct Nobody;

impl Service for Closed {
    const SOCKET: &'static str = "test";
    const THREAD: &'static str = "test";
    const SECTION: &'static str = "test";
    type Guest = Nobody;

    fn bounds(&self) -> Bounds {
        Bounds { most: self.most, connections: 2, requests: 100 }
    }

    fn admit(&self, _: &Process) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalKind::Permission, "no"))
    }

    fn receive(&self, _: Process, _: Arc<Shared>) -> Nobody {
        Nobody
    }
}

impl Guest for Nobody {
    const FILES: usize = 0;
    type Request = Request;
    type Reply = Reply;

    fn is_known(&self) -> bool {
        false
    }

    async fn answer(&mut self, _: Request, _: Vec<Brought>) -> Answer<Reply> {
        Answer::no(Refusal::new(RefusalKind::Permission, "no"))
    }

    fn keep(self, _: OwnedFd) {}

    async fn leave(self, _: String) {}
}

/// How long whoever closes such a descriptor sleeps, at least: much longer than a test waits.
const LINGER: Duration = Duration::from_secs(60);

/// Sends a descriptor whose closing blocks. What must stay open is returned.
pub(super) fn send_lingering(channel: impl AsFd) -> (TcpListener, TcpStream) {
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
    let sent =
        sendmsg(channel.as_fd(), &[IoSlice::new(b"\"ports\"")], &mut ancillary, SendFlags::empty());
    sent.unwrap();
    (listener, deaf)
}
