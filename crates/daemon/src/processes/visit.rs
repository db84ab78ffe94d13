//! A connection, on its user's thread. Its end, or its process's, is the end of the visit.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shm::Segment;
use shm::attach::{
    Channel, ChannelError, PeerCredentials, PeerProcess, Refusal, Waiting, look, skip, skip_bare,
};
use shm::bell::allow_descriptors;
use shm::session::Brought;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::bells::Theirs;
use super::judging::Held;
use super::refusal::{invalid, no_resources};
use super::sparing::complain;
use super::user::{Coming, Shared};
use super::{Guest, Service};

/// How long a process may take to say hello.
const HELLO: Duration = Duration::from_secs(5);

/// A request, and what comes with it.
type Heard<M> = (M, Vec<Brought>);

/// A connection: to be waited for, and to be talked on.
struct Connection {
    stream: UnixStream,
    channel: Channel,
    /// Once descriptors may come. Dropped last, so that the judge closes what waits here.
    held: OnceLock<Held>,
}

impl Connection {
    fn of(socket: OwnedFd) -> io::Result<Self> {
        let channel = Channel::of(socket.try_clone()?);
        let stream = UnixStream::from_std(socket.into())?;
        Ok(Self { stream, channel, held: OnceLock::new() })
    }

    /// The next request. One that brings more descriptors than `most` ends the connection. They are received by the judge alone.
    async fn hear<M: DeserializeOwned>(&self, most: usize) -> Result<Heard<M>, ChannelError> {
        loop {
            self.stream.readable().await?;
            let socket = self.channel.as_fd();
            let seen = self.stream.try_io(Interest::READABLE, || match look::<M>(socket) {
                Ok(None) => Err(ErrorKind::WouldBlock.into()),
                Ok(Some(waiting)) => Ok(Ok(waiting)),
                Err(error) => Ok(Err(error)),
            });
            let Waiting { message, brings } = match seen {
                Ok(seen) => seen?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            let brought = if brings {
                self.take(most)?
            } else {
                skip(socket)?;
                Vec::new()
            };
            return Ok((message, brought));
        }
    }

    /// What comes with the next message.
    fn take(&self, most: usize) -> Result<Vec<Brought>, ChannelError> {
        if most == 0 {
            return Err(ChannelError::Malformed("descriptors come with it".to_owned()));
        }
        self.held.get().ok_or(ChannelError::Unjudged)?.take(most)
    }

    /// From now on descriptors may come, if there is a judge to receive them, or will be.
    ///
    /// Errors: none can be started.
    fn open(&self, uid: u32, shared: &Shared) -> Result<(), String> {
        if self.held.get().is_some() {
            return Ok(());
        }
        if let Some(held) = Held::of(&shared.judging, uid, self.channel.as_fd()) {
            self.held.get_or_init(|| held);
            allow_descriptors(&self.channel);
            return Ok(());
        }
        shared.judging.failure().map_or(Ok(()), Err)
    }

    /// What came with the last request is closed, here.
    fn close_taken(&self) {
        if let Some(held) = self.held.get() {
            held.close();
        }
    }

    /// Tells the other side that it is over: the judge may close its descriptor later.
    fn end(&self) {
        if self.held.get().is_some() {
            let _ = shutdown(&self.channel, Shutdown::Both);
        }
    }

    /// What the other side of a service says next; before its hello it has no descriptors to show, and not for ever time.
    async fn hear_from<G: Guest>(&self, is_known: bool) -> Result<Heard<G::Request>, String> {
        let heard = if is_known {
            self.hear(G::FILES).await
        } else {
            match timeout(HELLO, self.hear(0)).await {
                Ok(heard) => heard,
                Err(_) => return Err("it did not say who it is".to_owned()),
            }
        };
        heard.map_err(|error| self.complain::<G::Reply>(error))
    }

    /// Says what was wrong, if somebody is there.
    fn complain<R: Serialize + From<Refusal>>(&self, error: ChannelError) -> String {
        if let ChannelError::Closed = error {
            return "it closed its connection".to_owned();
        }
        let problem = error.to_string();
        let refusal = match error {
            ChannelError::Unjudged => no_resources(&problem),
            _ => invalid(&problem),
        };
        let _ = skip_bare(self.channel.as_fd());
        let _ = self.say(&R::from(refusal), &[]);
        problem
    }

    /// Says it, and hands over what goes along.
    fn give<R: Serialize>(&self, answer: &Answer<R>) -> Result<(), ChannelError> {
        let segment = answer.segment.as_ref().map(|segment| segment.as_fd());
        let files: Vec<BorrowedFd<'_>> =
            segment.into_iter().chain(answer.bells.iter().map(AsFd::as_fd)).collect();
        self.say(&answer.reply, &files)
    }

    fn say(&self, reply: &impl Serialize, files: &[BorrowedFd<'_>]) -> Result<(), ChannelError> {
        self.channel.send(reply, files)
    }
}

/// An answer with what goes along.
pub(crate) struct Answer<R> {
    pub(crate) reply: R,
    pub(crate) segment: Option<Arc<Segment>>,
    /// Descriptors behind the segment's.
    pub(crate) bells: Theirs,
}

impl<R> From<R> for Answer<R> {
    fn from(reply: R) -> Self {
        Self { reply, segment: None, bells: Vec::new() }
    }
}

impl<R: From<Refusal>> Answer<R> {
    /// A refusal.
    pub(crate) fn no(refusal: Refusal) -> Self {
        R::from(refusal).into()
    }
}

/// A connection from its first word to its end.
pub(super) async fn visit<S: Service>(service: Arc<S>, coming: Coming, shared: Arc<Shared>) {
    let Coming { socket, process, place, among: _among } = coming;
    let connection = match Connection::of(socket) {
        Ok(connection) => connection,
        Err(error) => {
            return complain(|| {
                tracing::warn!("a connection to the {} socket: {error}", S::SOCKET)
            });
        }
    };
    let _place = match place {
        Ok(place) => place,
        Err(refusal) => {
            // Who has not asked yet would take the end for the daemon's.
            if connection.hear_from::<S::Guest>(false).await.is_ok() {
                let _ = connection.say(&<S::Guest as Guest>::Reply::from(refusal), &[]);
            }
            return;
        }
    };
    let PeerCredentials { pid, uid, .. } = process.credentials;
    let mut guest = service.receive(process, Arc::clone(&shared));
    let dismissal = guest.dismissal();
    let end = tokio::select! {
        end = talk(&*service, &mut guest, &connection, uid, &shared) => end,
        () = ended(&connection.channel, pid) => End::Over("its process ended".to_owned()),
        why = dismissal => End::Over(why),
    };
    match end {
        End::Over(why) => {
            guest.leave(why).await;
            connection.end();
        }
        End::Kept => guest.keep(connection.channel.into_socket()),
    }
}

/// How a visit ends.
enum End {
    /// Why it is over.
    Over(String),
    /// Nothing more is said; the connection is kept.
    Kept,
}

/// Request by request, and what is said without one in between.
async fn talk<S: Service>(
    service: &S,
    guest: &mut S::Guest,
    connection: &Connection,
    uid: u32,
    shared: &Shared,
) -> End {
    let deaf = |error| End::Over(format!("it does not take answers: {error}"));
    loop {
        let was_known = guest.is_known();
        let heard = tokio::select! {
            heard = connection.hear_from::<S::Guest>(was_known) => heard,
            news = guest.news(), if was_known => match connection.give(&news) {
                Ok(()) => continue,
                Err(error) => return deaf(error),
            },
        };
        let (message, brought) = match heard {
            Ok(heard) => heard,
            Err(why) => return End::Over(why),
        };
        shared.pace.wait(service.bounds().requests).await;
        let brings = !brought.is_empty();
        let answer = guest.answer(message, brought).await;
        if brings {
            connection.close_taken();
        }
        if guest.is_known() && <S::Guest as Guest>::FILES > 0 {
            let opened = connection.open(uid, shared);
            // It would hear that only when it shows something. Who was welcomed before may do without.
            if let (Err(why), false) = (opened, was_known) {
                let refusal = no_resources(&why);
                let _ = connection.say(&<S::Guest as Guest>::Reply::from(refusal), &[]);
                return End::Over(why);
            }
        }
        if let Err(error) = connection.give(&answer) {
            return deaf(error);
        }
        if guest.stays_silent() {
            return End::Kept;
        }
        if !guest.is_known() {
            return End::Over("it was refused".to_owned());
        }
    }
}

/// When the process ends; never where that cannot be seen. One that forked would keep the socket open
/// when it dies itself.
async fn ended(channel: &Channel, number: i32) {
    let process = match channel.peer_process() {
        PeerProcess::Ended => return,
        PeerProcess::There(process) => Some(process),
        // Whoever has its number by now.
        PeerProcess::Unknown => {
            match Pid::from_raw(number).map(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK)) {
                // A child may still hold the connection.
                Some(Err(Errno::SRCH)) => return,
                Some(Ok(process)) => Some(process),
                Some(Err(_)) | None => None,
            }
        }
    };
    // The runtime waits for a process as it does for a pipe.
    match process.map(Receiver::from_owned_fd_unchecked) {
        Some(Ok(process)) => {
            let _ = process.readable().await;
        }
        _ => std::future::pending().await,
    }
}
