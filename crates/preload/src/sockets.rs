//! The sessions, wherever their stack runs: in this process, or on a stack worker of the daemon.

mod moving;

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use host::{
    Answer, Domain, Errno, How, Id, Incoming, Kind, Lingering, Mask, Outgoing, Question, Ready,
    Received, Remote, Sessions, Setting, Template, Value, Wanted,
};
use transport::{Ends, Path};

/// All sessions of this process.
#[derive(Debug)]
pub(crate) enum Sockets {
    /// The stack is this process's own.
    Inline(Box<Sessions>),
    /// It is the daemon's.
    Shared(Box<Remote>),
}

/// The same call, whichever it is.
macro_rules! either {
    ($sockets:expr, $name:ident ( $($argument:expr),* )) => {
        match $sockets {
            Sockets::Inline(sessions) => sessions.$name($($argument),*),
            Sockets::Shared(remote) => remote.$name($($argument),*),
        }
    };
}

impl Sockets {
    /// Whether the stack is the daemon's.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// The next call does not wait for a stack worker's answer: [`Self::end_call`] gives the question.
    #[inline]
    pub(crate) fn begin_call(&mut self) {
        if let Self::Shared(remote) = self {
            remote.begin_call();
        }
    }

    /// The call that has asked is made again, with the answer.
    pub(crate) fn resume_call(&mut self, answer: Answer) {
        if let Self::Shared(remote) = self {
            remote.resume_call(answer);
        }
    }

    /// The call is over, unless there is a question: then it is made again.
    #[inline]
    pub(crate) fn end_call(&mut self) -> Option<Question> {
        match self {
            Self::Inline(_) => None,
            Self::Shared(remote) => remote.end_call(),
        }
    }

    pub(crate) fn has(&self, id: Id) -> bool {
        either!(self, has(id))
    }

    /// Opens a socket for datagrams with those options that can be set here.
    pub(crate) fn open_datagrams(
        &mut self,
        id: Id,
        domain: Domain,
        options: &[Setting],
    ) -> Result<(), Errno> {
        match self {
            Self::Inline(sessions) => {
                sessions.open(id, domain, Kind::Datagram)?;
                set_inline(sessions, id, options);
                Ok(())
            }
            Self::Shared(remote) => remote.open_datagrams(id, domain, options),
        }
    }

    /// Opens a stream with those options that can be set here. Gives what others may be opened like.
    pub(crate) fn open_with(
        &mut self,
        id: Id,
        domain: Domain,
        options: &[Setting],
    ) -> Result<Template, Errno> {
        let sessions = match self {
            Self::Inline(sessions) => sessions,
            Self::Shared(remote) => return remote.open_with(id, domain, options),
        };
        sessions.open(id, domain, Kind::Stream)?;
        set_inline(sessions, id, options);
        sessions.template(id)
    }

    pub(crate) fn open_like(&mut self, id: Id, template: &Template) -> Result<(), Errno> {
        either!(self, open_like(id, template))
    }

    pub(crate) fn bind(&mut self, id: Id, local: SocketAddr) -> Result<(), Errno> {
        either!(self, bind(id, local))
    }

    pub(crate) fn listen(&mut self, id: Id, backlog: i32) -> Result<(), Errno> {
        either!(self, listen(id, backlog))
    }

    pub(crate) fn accept(&mut self, at: Id, new: Id) -> Result<(SocketAddr, SocketAddr), Errno> {
        either!(self, accept(at, new))
    }

    pub(crate) fn connect(
        &mut self,
        id: Id,
        now: u64,
        source: IpAddr,
        to: SocketAddr,
    ) -> Result<(), Errno> {
        match self {
            Self::Inline(sessions) => sessions.connect(id, now, source, to),
            Self::Shared(remote) => remote.connect(id, source, to),
        }
    }

    /// A connection that has just begun takes a path. A stack worker has none beside the network.
    pub(crate) fn take_path(&mut self, id: Id, path: Path) {
        if let Self::Inline(sessions) = self {
            sessions.take_path(id, path);
        }
    }

    pub(crate) fn disconnect(&mut self, id: Id) -> Result<(), Errno> {
        either!(self, disconnect(id))
    }

    #[inline]
    pub(crate) fn recv(
        &mut self,
        id: Id,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        either!(self, recv(id, targets, incoming))
    }

    #[inline]
    pub(crate) fn send(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        either!(self, send(id, data, outgoing))
    }

    pub(crate) fn shutdown(&mut self, id: Id, how: How) -> Result<(), Errno> {
        either!(self, shutdown(id, how))
    }

    pub(crate) fn close(&mut self, id: Id) -> Option<Lingering> {
        either!(self, close(id))
    }

    /// Whether a stack worker has to be asked what whoever closes a session waits for.
    pub(crate) fn asks_to_close(&self, id: Id) -> bool {
        match self {
            Self::Inline(_) => false,
            Self::Shared(remote) => remote.lingers(id),
        }
    }

    pub(crate) fn is_lingering(&mut self, lingering: &Lingering) -> bool {
        either!(self, is_lingering(lingering))
    }

    pub(crate) fn name(&mut self, id: Id) -> Result<SocketAddr, Errno> {
        either!(self, name(id))
    }

    /// Whether a UDP socket has a port, as far as is known without asking a stack worker.
    pub(crate) fn has_port(&self, id: Id) -> bool {
        either!(self, has_port(id))
    }

    pub(crate) fn peer(&mut self, id: Id) -> Result<SocketAddr, Errno> {
        either!(self, peer(id))
    }

    pub(crate) fn pending(&mut self, id: Id) -> Result<usize, Errno> {
        either!(self, pending(id))
    }

    /// Whether urgent data is next; a stack worker keeps it in the stream.
    pub(crate) fn is_at_mark(&self, id: Id) -> Result<bool, Errno> {
        match self {
            Self::Inline(sessions) => sessions.is_at_mark(id),
            Self::Shared(_) => Ok(false),
        }
    }

    pub(crate) fn unsent(&mut self, id: Id) -> Result<(usize, usize), Errno> {
        either!(self, unsent(id))
    }

    pub(crate) fn set_option(
        &mut self,
        id: Id,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        either!(self, set_option(id, level, name, value))
    }

    pub(crate) fn option(
        &mut self,
        id: Id,
        level: i32,
        name: i32,
        room: usize,
    ) -> Result<Value, Errno> {
        either!(self, option(id, level, name, room))
    }

    pub(crate) fn timeouts(&self, id: Id) -> Result<(Option<u64>, Option<u64>), Errno> {
        either!(self, timeouts(id))
    }

    pub(crate) fn wanted(&self, id: Id) -> Result<Wanted, Errno> {
        either!(self, wanted(id))
    }

    #[inline]
    pub(crate) fn mask(&mut self, id: Id) -> Mask {
        either!(self, mask(id))
    }

    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<Ready> {
        either!(self, next_ready())
    }

    /// When the stack is to be run next: ns.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        match self {
            Self::Inline(sessions) => sessions.next_deadline(),
            Self::Shared(remote) => remote.is_starving().then(|| crate::clock::now() + STARVING),
        }
    }

    #[inline]
    pub(crate) fn wants_turn(&self) -> bool {
        match self {
            Self::Inline(sessions) => sessions.wants_turn(),
            Self::Shared(_) => false,
        }
    }

    pub(crate) fn is_drained(&mut self) -> bool {
        either!(self, is_drained())
    }

    /// Brings what the daemon is shown of the connections up to date; on a stack of its own it does so itself.
    /// `refused`: packets that were, on links.
    pub(crate) fn look(&mut self, now: u64, refused: u64) {
        if let Self::Inline(sessions) = self {
            sessions.note_refused(refused);
            sessions.look(now);
        }
    }

    pub(crate) fn mtu(&self) -> u16 {
        match self {
            Self::Inline(sessions) => sessions.mtu(),
            Self::Shared(_) => 1500,
        }
    }

    /// The first link towards a host takes packets of so many bytes.
    pub(crate) fn note_first_link(&mut self, remote: IpAddr, mtu: u16) {
        either!(self, note_first_link(remote, mtu));
    }

    pub(crate) fn add_ports(&mut self, first: u16, count: u16) {
        either!(self, add_ports(first, count));
    }

    pub(crate) fn ports(&self) -> &[(u16, u16)] {
        either!(self, ports())
    }

    pub(crate) fn remove_ports(&mut self, first: u16) {
        either!(self, remove_ports(first));
    }

    pub(crate) fn keep_quiet(&mut self, until: u64) {
        either!(self, keep_quiet(until));
    }

    pub(crate) fn fall_quiet(&mut self) {
        either!(self, fall_quiet());
    }

    pub(crate) fn spare_resets(&mut self, port: u16, until: u64) {
        either!(self, spare_resets(port, until));
    }

    pub(crate) fn has_handshakes(&mut self, id: Id) -> bool {
        either!(self, has_handshakes(id))
    }

    pub(crate) fn hold(&mut self, ends: &Ends, until: u64) {
        either!(self, hold(ends, until));
    }
}

fn set_inline(sessions: &mut Sessions, id: Id, options: &[Setting]) {
    for Setting { level, name, value } in options {
        let _ = sessions.set_option(id, *level, *name, value);
    }
}

/// Until it is looked again whether there is memory for what is to be sent: ns.
const STARVING: u64 = 5_000_000;
