//! Meeting the daemon as a process that serves or connects.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use shm::attach::Received;
use shm::session::{
    Event, Hello, Introduce, Introduced, Lease, Listen, Listening, OpenStack, PROTOCOL, PortRange,
    Reply, Request, Route, Routed, StackOpened, TransportProtocol, VERSION, Welcome,
};

use crate::Error;
use crate::connection::{Connection, refused};

use super::Queues;

/// Where the daemon listens when nothing else is said.
pub const DEFAULT_SESSIONS: &str = "/run/millrace/sessions.sock";
/// The environment variable that names another socket.
pub const SESSIONS_VARIABLE: &str = "MILLRACE_SESSIONS";
/// The environment variable that turns links off: `off`.
pub const LINKS_VARIABLE: &str = "MILLRACE_LINKS";

/// The environment variable that says where the stack of a process is to run: `inline` or `shared`.
pub const PLACEMENT_VARIABLE: &str = "MILLRACE_PLACEMENT";

/// What the library under a program's socket calls asks for where its stack runs in the process. A packet of 1,500 bytes takes one
/// slot; the claims are those of listeners' flows. With 1,024 slots, 1,000 connections of which each had a packet under way lost some,
/// which were sent again after 200 ms (`millrace-bench serve --bodies 64 --connections 1000`: p99 of 168 ms, and 4.5 with 2,048); more
/// take memory that few need.
pub const STACK: OpenStack =
    OpenStack { slots: 2048, capacity: 2048 - 64, claims: 1 << 16, connections: 1 << 14 };

/// A process's connection to the sessions socket. Everything that the process has of the daemon ends with it.
#[derive(Debug)]
pub struct Link {
    connection: Connection,
    pub(super) welcome: Welcome,
    /// Said between a question and its answer.
    events: Events,
}

/// What the daemon has said without being asked, with what came along: events.
type Events = Mutex<VecDeque<Received<Reply>>>;

impl Link {
    /// Connects to the daemon at `path`; without one at what [`SESSIONS_VARIABLE`] says, else at [`DEFAULT_SESSIONS`].
    /// `name` is shown to people: 1 to 63 bytes. `keep` may move descriptors out of the way of others.
    ///
    /// # Errors
    /// [`Error::NoDaemon`]; [`Error::Version`] names both versions; [`Error::Refused`] when this process may not.
    pub fn open(
        path: Option<&Path>,
        name: &str,
        keep: impl Fn(OwnedFd) -> OwnedFd,
    ) -> Result<Self, Error> {
        let path = path.map_or_else(default_socket, Path::to_owned);
        let connection = Connection::open(&path, keep)?;
        let hello = Hello { protocol: PROTOCOL, library: VERSION.into(), name: name.into() };
        let events = Mutex::default();
        match ask(&connection, &Request::Hello(hello), &[], &events)?.message {
            Reply::Welcome(welcome) if welcome.protocol == PROTOCOL => {
                Ok(Self { connection, welcome, events })
            }
            Reply::Welcome(other) => Err(Error::Version {
                daemon: format!(
                    "version {} with protocol {} of sessions",
                    other.daemon, other.protocol
                ),
            }),
            _ => Err(unexpected("a welcome")),
        }
    }

    /// Over a connection on which everything was said already.
    #[cfg(test)]
    pub(super) fn over(channel: shm::attach::Channel) -> Result<Self, Error> {
        let welcome = Welcome {
            protocol: PROTOCOL,
            daemon: String::new(),
            client: 1,
            addresses: Vec::new(),
            placement: Default::default(),
        };
        Ok(Self { connection: Connection::over(channel)?, welcome, events: Mutex::default() })
    }

    /// The number of the process's connection, as in `millrace show stacks`.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.welcome.client
    }

    /// Addresses of the router, as they were when the connection was opened. [`route`](Self::route) to port 0 says what is so now.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.welcome.addresses
    }

    /// Opens a stack's packet queues and starts them. `keep` may move descriptors out of the way of others.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Memory`], [`Error::Nonsense`], [`Error::Forked`].
    pub fn open_stack(
        &self,
        asked: &OpenStack,
        keep: impl Fn(OwnedFd) -> OwnedFd,
    ) -> Result<Queues, Error> {
        let Received { message, files } = self.ask(&Request::OpenStack(*asked), &[])?;
        let Reply::StackOpened(opened) = message else { return Err(unexpected("a stack")) };
        let StackOpened { stack, .. } = opened;
        let queues = Queues::map(opened, files.into_iter().map(keep).collect())?;
        self.start_stack(stack)?;
        Ok(queues)
    }

    /// Closes a stack. What it took counts no longer once this process has unmapped its memory, too.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such stack, [`Error::DaemonGone`].
    pub fn close_stack(&self, stack: u32) -> Result<(), Error> {
        self.ask(&Request::CloseStack(stack), &[]).map(drop)
    }

    /// A stack's memory is mapped: the workers begin with it.
    pub(super) fn start_stack(&self, stack: u32) -> Result<(), Error> {
        match self.ask(&Request::StartStack(stack), &[])?.message {
            Reply::StackStarted(_) => Ok(()),
            _ => Err(unexpected("that a stack starts")),
        }
    }

    /// Has new flows to what `socket` is bound to given to a stack, with that weight among all who serve there.
    ///
    /// # Errors
    /// [`Error::Refused`] says what is wrong with the socket.
    pub fn listen(
        &self,
        stack: u32,
        weight: u8,
        socket: BorrowedFd<'_>,
    ) -> Result<Listening, Error> {
        self.show(Listen { stack, weight, busy: false }, socket)
    }

    /// The same, with all that can be said of it.
    ///
    /// # Errors
    /// As [`Self::listen`].
    pub fn show(&self, how: Listen, socket: BorrowedFd<'_>) -> Result<Listening, Error> {
        match self.ask(&Request::Listen(how), &[socket])?.message {
            Reply::Listening(listening) => Ok(listening),
            _ => Err(unexpected("a listener")),
        }
    }

    /// Takes no new flows for that stack and listener any more.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such listener.
    pub fn unlisten(&self, stack: u32, listener: u32) -> Result<(), Error> {
        self.ask(&Request::Unlisten(stack, listener), &[]).map(drop)
    }

    /// A range of local ports for a stack's outgoing connections: the one that begins at `first`, which the process had of a
    /// daemon that was restarted, or any.
    ///
    /// # Errors
    /// [`Error::Refused`] when none are left, this user has as many as it may have, or somebody else has that one.
    pub fn lease(&self, stack: u32, first: Option<u16>) -> Result<PortRange, Error> {
        match self.ask(&Request::Lease(Lease { stack, first }), &[])?.message {
            Reply::Leased(range) => Ok(range),
            _ => Err(unexpected("ports")),
        }
    }

    /// Which way packets of a protocol go to an end.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Silent`].
    pub fn route(
        &self,
        protocol: TransportProtocol,
        destination: SocketAddr,
    ) -> Result<Routed, Error> {
        match self.ask(&Request::Route(Route { protocol, destination }), &[])?.message {
            Reply::Routed(routed) => Ok(routed),
            _ => Err(unexpected("a route")),
        }
    }

    /// Which stacks serve what a stack is about to connect to, and the link to one of them with its descriptors, if one was made
    /// for this answer.
    ///
    /// # Errors
    /// [`Error::Refused`]: nobody serves there, or there are no links.
    pub fn introduce(
        &self,
        stack: u32,
        destination: SocketAddr,
    ) -> Result<(Introduced, Vec<OwnedFd>), Error> {
        let request = Request::Introduce(Introduce { stack, destination });
        let Received { message, files } = self.ask(&request, &[])?;
        match message {
            Reply::Introduced(introduced) => Ok((introduced, files)),
            _ => Err(unexpected("an introduction")),
        }
    }

    /// Says that a link of this process's is closed.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such link, [`Error::DaemonGone`].
    pub fn unlink(&self, link: u32) -> Result<(), Error> {
        self.ask(&Request::Unlink(link), &[]).map(drop)
    }

    /// Whether the daemon is gone; one system call.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.connection.is_closed()
    }

    pub(super) fn ask(
        &self,
        request: &Request,
        files: &[BorrowedFd<'_>],
    ) -> Result<Received<Reply>, Error> {
        ask(&self.connection, request, files, &self.events)
    }

    /// Whether the daemon has said something while it was asked something else: [`next_event`](Self::next_event) gives it, and the
    /// connection is not readable for that.
    #[must_use]
    pub fn has_heard(&self) -> bool {
        !self.events.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// What the daemon has said without being asked. `None`: nothing, or another thread asks something: what is said meanwhile is
    /// here when that has its answer.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Nonsense`]. It never waits.
    pub fn next_event(&self) -> Result<Option<Received<Event>>, Error> {
        let earlier = || self.events.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match self.connection.overhear(earlier)? {
            None => Ok(None),
            Some(Received { message: Reply::Event(message), files }) => {
                Ok(Some(Received { message, files }))
            }
            Some(_) => Err(unexpected("nothing")),
        }
    }
}

impl AsFd for Link {
    /// The connection: it hangs up when the daemon is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

pub(super) fn default_socket() -> PathBuf {
    let named = std::env::var_os(SESSIONS_VARIABLE).filter(|path| !path.is_empty());
    named.map_or_else(|| DEFAULT_SESSIONS.into(), PathBuf::from)
}

fn ask(
    connection: &Connection,
    request: &Request,
    files: &[BorrowedFd<'_>],
    events: &Events,
) -> Result<Received<Reply>, Error> {
    let answer = connection.exchange_amid(request, files, |said: Received<Reply>| {
        if !matches!(said.message, Reply::Event(_)) {
            return Some(said);
        }
        events.lock().unwrap_or_else(PoisonError::into_inner).push_back(said);
        None
    })?;
    match answer.message {
        Reply::Refused(refusal) => Err(refused(refusal)),
        _ => Ok(answer),
    }
}

pub(super) fn unexpected(wanted: &str) -> Error {
    Error::Nonsense(format!("asked for {wanted}, it answered something else"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use shm::attach::Channel;
    use shm::bell::forbid_descriptors;

    use super::*;

    #[test]
    fn a_stack_is_closed_when_the_daemon_says_so() {
        let (here, there) = Channel::pair().unwrap();
        let link = Link::over(here).unwrap();
        thread::scope(|scope| {
            let closes = scope.spawn(|| link.close_stack(7));
            assert_eq!(there.receive::<Request>().unwrap().message, Request::CloseStack(7));
            there.send(&Reply::StackClosed(7), &[]).unwrap();
            closes.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_socket_that_nobody_receives_is_refused() {
        let (here, there) = Channel::pair().unwrap();
        // Before Linux 6.16 the daemon itself refuses it.
        if forbid_descriptors(&there) {
            let link = Link::over(here).unwrap();
            let refused = link.listen(1, 1, there.as_fd()).unwrap_err().to_string();
            assert!(
                refused.starts_with("the daemon refuses: the process that receives"),
                "{refused}"
            );
        }
    }

    #[test]
    fn whoever_looks_for_news_does_not_wait_for_whoever_asks() {
        let (here, there) = Channel::pair().unwrap();
        let link = Link::over(here).unwrap();
        let say = |reply: Reply| there.send(&reply, &[]).unwrap();
        let to = "192.0.2.9:80".parse().unwrap();
        thread::scope(|scope| {
            let asks = scope.spawn(|| link.route(TransportProtocol::Tcp, to));
            assert!(matches!(there.receive::<Request>().unwrap().message, Request::Route(_)));
            say(Reply::Event(Event::Unlinked(5)));
            assert!(link.next_event().unwrap().is_none());
            say(Reply::Routed(Routed::Kernel));
            assert_eq!(asks.join().unwrap().unwrap(), Routed::Kernel);
        });
        assert!(link.has_heard());
        say(Reply::Event(Event::Unlinked(6)));
        for number in [5, 6] {
            let event = link.next_event().unwrap().unwrap().message;
            assert_eq!(event, Event::Unlinked(number));
        }
        assert!(link.next_event().unwrap().is_none() && !link.has_heard());
    }
}
