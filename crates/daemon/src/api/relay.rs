//! Where the API's connections come from.
//!
//! Who receives or closes what holds descriptors may sleep for as long as their owner likes ([`shm::bell`]). Where the kernel can't
//! forbid them (before Linux 6.16), a thread of each user's own receives and sends, and bytes alone come to the control
//! thread, over a socket that nobody outside has.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::places::{Connection, Places};
use crate::processes::complain;
use crate::service::Beat;
use axum::serve::Listener;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt::socket_peercred};
use shm::Abandoned;
use shm::bell::forbid_descriptors;
use tokio::io::{AsyncWriteExt as _, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

/// Connections of a user that are relayed at once, and that wait for it. More are closed.
const CONNECTIONS: usize = 64;
const WAITING: usize = 64;
/// A thread without a connection ends after this time.
const IDLE: Duration = Duration::from_secs(10);
/// After something that the system has too few of.
const BREATH: Duration = Duration::from_millis(100);
/// Longest time between two signs of life of who waits for a connection.
const ROUND: Duration = Duration::from_millis(500);

/// The API's connections, as they come. While somebody accepts them, the beat is counted.
pub(crate) struct Incoming {
    source: Source,
    beat: Beat,
}

/// What accepts them.
enum Source {
    /// The control thread itself.
    Direct(UnixListener, Places),
    /// Threads of the users.
    Relayed(mpsc::Receiver<net::UnixStream>),
}

impl Incoming {
    /// From the API's socket, non-blocking.
    ///
    /// Errors: no thread, no descriptor.
    pub(crate) fn of(listener: net::UnixListener, beat: Beat) -> io::Result<Self> {
        let source = if forbid_descriptors(&listener) {
            Source::Direct(UnixListener::from_std(listener)?, Places::default())
        } else {
            Source::relayed(listener)?
        };
        Ok(Self { source, beat })
    }
}

impl Source {
    fn relayed(listener: net::UnixListener) -> io::Result<Self> {
        let (give, relayed) = mpsc::channel(WAITING);
        let door = Door { users: HashMap::new(), give, abandoned: Abandoned::default() };
        thread::Builder::new().name("api".into()).spawn(move || door.watch(&listener))?;
        Ok(Self::Relayed(relayed))
    }

    /// The next connection. None is lost when the caller stops waiting.
    async fn next(&mut self) -> Connection {
        match self {
            Self::Direct(listener, places) => loop {
                let stream = Listener::accept(listener).await.0;
                // Who has too many, or is gone already, is turned away.
                let place = stream.peer_cred().ok().and_then(|peer| places.take(peer.uid()));
                if place.is_some() {
                    return Connection { stream, _place: place };
                }
            },
            Self::Relayed(relayed) => loop {
                match relayed.recv().await.map(UnixStream::from_std) {
                    Some(Ok(stream)) => return Connection { stream, _place: None },
                    Some(Err(error)) => {
                        complain(|| tracing::warn!("a connection to the API: {error}"));
                    }
                    None => pending().await,
                }
            },
        }
    }
}

impl Listener for Incoming {
    type Io = Connection;
    type Addr = ();

    async fn accept(&mut self) -> (Connection, ()) {
        loop {
            self.beat.count();
            if let Ok(connection) = timeout(ROUND, self.source.next()).await {
                return (connection, ());
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread that accepts, and touches nothing that somebody has sent.
struct Door {
    users: HashMap<u32, mpsc::Sender<OwnedFd>>,
    give: mpsc::Sender<net::UnixStream>,
    /// Connections that are closed unheard.
    abandoned: Abandoned,
}

impl Door {
    /// For ever.
    fn watch(mut self, listener: &net::UnixListener) {
        loop {
            let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], None);
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.receive(socket),
                // Whoever came is gone again.
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => {
                    tracing::warn!("the API's socket: {error}");
                    thread::sleep(BREATH);
                }
            }
            self.users.retain(|_, user| !user.is_closed());
        }
    }

    fn receive(&mut self, socket: OwnedFd) {
        let user = socket_peercred(&socket).map(|peer| self.user(peer.uid.as_raw()));
        let unheard = match user {
            Ok(Ok(user)) => match user.try_send(socket) {
                Ok(()) => return,
                Err(error) => error.into_inner(),
            },
            Ok(Err(error)) => {
                complain(|| tracing::warn!("a thread for a user of the API: {error}"));
                socket
            }
            Err(_) => socket,
        };
        let complain = |error| tracing::warn!("a thread to close a connection: {error}");
        self.abandoned.close(unheard, complain);
    }

    fn user(&mut self, uid: u32) -> io::Result<&mpsc::Sender<OwnedFd>> {
        if self.users.get(&uid).is_none_or(mpsc::Sender::is_closed) {
            let (user, come) = mpsc::channel(WAITING);
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let give = self.give.clone();
            let thread = thread::Builder::new().name(format!("api-{uid}"));
            thread.spawn(move || runtime.block_on(attend(come, give)))?;
            self.users.insert(uid, user);
        }
        self.users.get(&uid).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A user's thread.
async fn attend(mut come: mpsc::Receiver<OwnedFd>, give: mpsc::Sender<net::UnixStream>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let next = match timeout(IDLE, come.recv()).await {
            Ok(next) => next,
            Err(_) if places.available_permits() + 1 < CONNECTIONS => continue,
            // Who came in the meantime is served still, whoever comes now finds another thread.
            Err(_) => {
                come.close();
                come.recv().await
            }
        };
        let Some(next) = next else { break };
        let give = give.clone();
        tokio::spawn(async move {
            if let Err(error) = relay(next, &give).await {
                tracing::debug!("a connection to the API: {error}");
            }
            drop(place);
        });
    }
    while places.available_permits() < CONNECTIONS {
        sleep(IDLE / 10).await;
    }
}

/// Carries bytes until the daemon's side ends, which it does some time after the user's has.
async fn relay(theirs: OwnedFd, give: &mpsc::Sender<net::UnixStream>) -> io::Result<()> {
    let mut theirs = UnixStream::from_std(theirs.into())?;
    let (ours, control) = net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    control.set_nonblocking(true)?;
    give.send(control).await.map_err(io::Error::other)?;
    let mut ours = UnixStream::from_std(ours)?;
    let (mut from_user, mut to_user) = theirs.split();
    let (mut from_control, mut to_control) = ours.split();
    let asked = async {
        // Who answers before all is read reads no more. The answer is still to be carried.
        let _ = copy(&mut from_user, &mut to_control).await;
        let _ = to_control.shutdown().await;
        pending::<()>().await;
    };
    tokio::select! {
        answered = copy(&mut from_control, &mut to_user) => answered.map(drop),
        () = asked => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{Read as _, Write as _};

    use crate::service::Progress;

    #[tokio::test]
    async fn an_answer_arrives_that_comes_before_all_is_read() {
        // Which of both is looked at first is drawn by lot.
        for _ in 0..20 {
            let (mut user, theirs) = net::UnixStream::pair().unwrap();
            theirs.set_nonblocking(true).unwrap();
            let (give, mut given) = mpsc::channel(1);
            let relayed = tokio::spawn(async move { relay(theirs.into(), &give).await });
            user.write_all(b"a request").unwrap();
            let mut control = given.recv().await.unwrap();
            control.write_all(b"an answer").unwrap();
            drop(control);
            // It may hear that not all was read.
            drop(relayed.await.unwrap());
            let mut answer = [0; 9];
            user.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"an answer");
        }
    }

    #[tokio::test]
    async fn whoever_waits_for_connections_is_heard_of_and_loses_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut progress = Progress::default();
        let mut incoming = Incoming::of(listener, progress.task("API")).unwrap();
        assert_eq!(progress.stuck(), ["API"], "nobody waits");
        for _ in 0..2 {
            assert!(timeout(ROUND * 2, incoming.accept()).await.is_err());
            assert!(progress.stuck().is_empty());
        }
        let _connected = net::UnixStream::connect(&path).unwrap();
        let accepted = timeout(Duration::from_secs(20), incoming.accept()).await;
        assert!(accepted.is_ok());
    }
}
