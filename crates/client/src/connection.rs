//! The attach socket: one question, one answer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown, sockopt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shm::Process;
use shm::attach::{Channel, ChannelError, Received, Refusal, RefusalKind, Reply, Request};

use crate::Error;

/// How long an answer may take: seconds. The daemon makes memory and stops a worker for a moment, no more.
const ANSWER: u64 = 5;

/// A connection to the daemon, shared by the client and its channels: it ends with the last of them.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Channel,
    /// Held from question to answer.
    talk: Mutex<()>,
    /// Whose session it is.
    process: Process,
}

impl Connection {
    pub(crate) fn open(path: &Path, keep: impl Fn(OwnedFd) -> OwnedFd) -> Result<Self, Error> {
        let none = |source| Error::NoDaemon { path: path.to_owned(), source };
        let socket = Channel::connect(path).map_err(|error| match error {
            ChannelError::System(source) => none(source),
            other => none(io::Error::other(other.to_string())),
        })?;
        Self::over(Channel::of(keep(socket.into_socket())))
    }

    /// Over a socket that is connected.
    pub(crate) fn over(socket: Channel) -> Result<Self, Error> {
        let longest = Some(Duration::from_secs(ANSWER));
        for way in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
            sockopt::set_socket_timeout(&socket, way, longest)
                .map_err(Error::system("a time limit for the attach socket"))?;
        }
        Ok(Self { socket, talk: Mutex::new(()), process: Process::current() })
    }

    /// Asks and hears the answer, with its descriptors.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Version`], [`Error::DaemonGone`], [`Error::Silent`], [`Error::Nonsense`],
    /// [`Error::Forked`].
    pub(crate) fn ask(&self, request: &Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
        let answer = self.exchange::<_, Reply>(request, &[])?;
        match answer.message {
            Reply::Refused(refusal) => Err(refused(refusal)),
            reply => Ok((reply, answer.files)),
        }
    }

    /// Asks, with descriptors, and hears the answer, whatever the protocol.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Silent`], [`Error::Nonsense`], [`Error::Forked`].
    pub(crate) fn exchange<Q: Serialize, R: DeserializeOwned>(
        &self,
        request: &Q,
        files: &[BorrowedFd<'_>],
    ) -> Result<Received<R>, Error> {
        self.exchange_amid(request, files, Some)
    }

    /// The same, where other things may be said before the answer: `aside` keeps what is one of those, and gives back what is
    /// none.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange).
    pub(crate) fn exchange_amid<Q: Serialize, R: DeserializeOwned>(
        &self,
        request: &Q,
        files: &[BorrowedFd<'_>],
        mut aside: impl FnMut(Received<R>) -> Option<Received<R>>,
    ) -> Result<Received<R>, Error> {
        // Before the lock, which another thread may have held when it forked.
        if !self.is_ours() {
            return Err(Error::Forked);
        }
        let _talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let mut said = patiently(|| self.socket.send(request, files));
        let answer = loop {
            match said.and_then(|()| patiently(|| self.socket.receive::<R>())) {
                Ok(heard) => match aside(heard) {
                    Some(answer) => break Ok(answer),
                    None => said = Ok(()),
                },
                Err(error) => break Err(error),
            }
        };
        answer.map_err(|error| {
            // What comes later would be taken for the answer to another question.
            let _ = shutdown(&self.socket, Shutdown::Both);
            match error {
                ChannelError::System(source) if is_timeout(&source) => Error::Silent(ANSWER),
                ChannelError::System(source) if !files.is_empty() && is_forbidden(&source) => {
                    let problem = ChannelError::Unjudged.to_string();
                    Error::Refused(Refusal::new(RefusalKind::Resources, problem))
                }
                other => other.into(),
            }
        })
    }

    /// What was said without a question: `earlier`, or what comes next. Waits for nothing: while another thread asks, that hears
    /// everything, and there is nothing yet.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Nonsense`], [`Error::Forked`].
    pub(crate) fn overhear<R: DeserializeOwned>(
        &self,
        earlier: impl FnOnce() -> Option<Received<R>>,
    ) -> Result<Option<Received<R>>, Error> {
        if !self.is_ours() {
            return Err(Error::Forked);
        }
        let _talk = match self.talk.try_lock() {
            Ok(talk) => talk,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        match earlier() {
            None => Ok(patiently(|| self.socket.receive_now::<R>())?),
            said => Ok(said),
        }
    }

    /// Whether this process made it: a forked child has a copy of the socket, through which it must say nothing.
    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_current()
    }

    /// Whether the daemon is gone; one system call.
    pub(crate) fn is_closed(&self) -> bool {
        self.socket.is_closed()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The daemon says no.
pub(crate) fn refused(refusal: Refusal) -> Error {
    match refusal.kind {
        RefusalKind::Version => Error::Version { daemon: refusal.message },
        _ => Error::Refused(refusal),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Whether the daemon takes no descriptors on the connection at the moment ([`shm::bell::forbid_descriptors`]).
fn is_forbidden(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Again after a signal. A socket with a time limit is not restarted by the kernel.
fn patiently<T>(mut call: impl FnMut() -> Result<T, ChannelError>) -> Result<T, ChannelError> {
    loop {
        match call() {
            Err(ChannelError::System(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
