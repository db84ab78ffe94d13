//! A user's thread: its connections, its bells and its memory, so that what a user does slows nobody else down.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shm::attach::Refusal;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::asks::Control;
use super::bells::Bells;
use super::permission::Process;
use super::serve::serve;
use super::user::{Pace, Place, Shared};

/// Connections that wait for the thread. More are closed unheard.
const WAITING: usize = 64;
/// Connections beyond a bound that are told so at the same time. More are closed unheard.
const REFUSED: usize = 16;
/// A thread without a connection ends after this time.
const IDLE: Duration = Duration::from_secs(10);
/// Whose thread it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum User {
    /// A user that may attach.
    Uid(u32),
    /// All those that may not.
    Strangers,
}

/// A connection that was accepted, and whether there is a place for it.
pub(super) struct Coming {
    pub(super) socket: OwnedFd,
    pub(super) process: Process,
    pub(super) place: Result<Place, Refusal>,
}

/// A user's thread, as the door sees it.
pub(super) struct Desk {
    coming: mpsc::Sender<Coming>,
    taken: Arc<AtomicUsize>,
}

impl Desk {
    /// Starts the thread. `requests`: a second.
    ///
    /// Errors: no thread or no descriptors.
    pub(super) fn open(user: User, requests: u32, control: Control) -> io::Result<Self> {
        let (coming, come) = mpsc::channel(WAITING);
        let bells = Bells::new()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared {
            control,
            bells,
            turns: Semaphore::new(1),
            pace: Pace::new(requests),
        });
        let name = match user {
            User::Uid(uid) => format!("user-{uid}"),
            User::Strangers => "strangers".to_owned(),
        };
        let taken = Arc::default();
        let thread = std::thread::Builder::new().name(name);
        thread.spawn(move || runtime.block_on(attend(come, shared)))?;
        Ok(Self { coming, taken })
    }

    /// Places taken.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// A place, which only the door takes.
    pub(super) fn place(&self) -> Place {
        Place::of(&self.taken)
    }

    /// Gives a connection to the thread; gives it back when the thread has enough of them, or has ended.
    pub(super) fn send(&self, coming: Coming) -> Result<(), Coming> {
        self.coming.try_send(coming).map_err(mpsc::error::TrySendError::into_inner)
    }

    /// Whether the thread has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.coming.is_closed()
    }
}

async fn attend(mut coming: mpsc::Receiver<Coming>, shared: Arc<Shared>) {
    let here = Arc::clone(&shared);
    tokio::spawn(async move {
        if let Err(error) = here.bells.serve().await {
            tracing::error!("a user's bells are not rung: {error}; raise LimitNOFILE");
        }
    });
    let refused = Arc::new(Semaphore::new(REFUSED));
    let served = Arc::new(());
    loop {
        let next = match timeout(IDLE, coming.recv()).await {
            Ok(next) => next,
            Err(_) if Arc::strong_count(&served) > 1 => continue,
            // Who came in the meantime is served still, whoever comes now finds another thread.
            Err(_) => {
                coming.close();
                coming.recv().await
            }
        };
        let Some(Coming { socket, process, place }) = next else { break };
        let among = match &place {
            Ok(_) => None,
            Err(_) => match Arc::clone(&refused).try_acquire_owned() {
                Ok(among) => Some(among),
                Err(_) => continue,
            },
        };
        let (shared, served) = (Arc::clone(&shared), Arc::clone(&served));
        tokio::spawn(async move {
            serve(socket, process, place, shared).await;
            drop((among, served));
        });
    }
    while Arc::strong_count(&served) > 1 {
        sleep(IDLE / 10).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{IoSlice, Write};
    use std::mem::MaybeUninit;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, sendmsg, socketpair, sockopt,
    };
    use shm::attach::{Channel, PeerCredentials, RefusalKind, Reply, Request};

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
        let sent =
            sendmsg(channel, &[IoSlice::new(b"\"ports\"")], &mut ancillary, SendFlags::empty());
        sent.unwrap();
        (listener, deaf)
    }

    /// As on a kernel that can't forbid descriptors: these sockets were not told to.
    #[test]
    fn who_sends_descriptors_stops_its_own_thread_only() {
        let (control, _asked) = crate::clients::asks::channel();
        let stopped = Desk::open(User::Strangers, 100, control.clone()).unwrap();
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
        let other = Desk::open(User::Uid(1), 100, control).unwrap();
        assert!(matches!(hears(&other).unwrap().message, Reply::Refused(_)));
    }
}
