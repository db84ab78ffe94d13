//! Sockets that move from one stack to another, with all that was set of them and all that was not read or sent yet.
//!
//! The bytes begin with `MRHS`, the version of the format, and how long the socket's own part is; a connection behind it is as
//! crate `transport` writes it. A connection that no socket has (not accepted yet, or closed and not over) has an empty own part.

mod settings;

use std::sync::Arc;

use transport::moving::{Carried, Reader, Writer};
use transport::{ConnectionId, Contents, Ends, ImportError, State, TimeWait, Transport, Write};

use crate::errno::Errno;
use crate::session::{Domain, Id, Progress, Rare, Role, Session};
use crate::sessions::Sessions;
use crate::settings::Settings;

/// The first four bytes.
const MAGIC: u32 = u32::from_le_bytes(*b"MRHS");
/// Of the format. Only the same is read.
const VERSION: u16 = 4;

/// A socket, or a connection that no socket has, outside of any stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// Addresses and ports of its connection; `None`: it has none.
    pub ends: Option<Ends>,
    /// All of it: [`Sessions::import`], [`Sessions::import_unheld`].
    pub bytes: Vec<u8>,
}

/// The parts of a parcel's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// What belongs to the socket; empty: no socket has it.
    pub own: &'a [u8],
    /// The connection, for [`transport::Stack::import`]; empty: there is none.
    pub connection: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Of bytes that may come from anybody. Neither part has been looked at.
    ///
    /// # Errors
    /// [`ImportError::Format`], [`ImportError::Version`], [`ImportError::Short`].
    pub fn of(bytes: &'a [u8]) -> Result<Self, ImportError> {
        let mut from = Reader::new(bytes, 0, 0);
        if u32::take(&mut from)? != MAGIC {
            return Err(ImportError::Format);
        }
        match u16::take(&mut from)? {
            VERSION => {}
            other => return Err(ImportError::Version(other)),
        }
        from.field = "socket";
        let own = from.block()?;
        Ok(Self { own, connection: from.slice(from.left())? })
    }

    /// The bytes of a parcel again.
    #[must_use]
    pub fn joined(&self) -> Vec<u8> {
        let mut to = Writer::new(0);
        MAGIC.put(&mut to);
        VERSION.put(&mut to);
        to.block(self.own);
        to.bytes.extend_from_slice(self.connection);
        to.bytes
    }
}

/// What belongs to a socket.
struct Own {
    domain: Domain,
    progress: Progress,
    shut: (bool, bool),
    error: i32,
    settings: Settings,
    rare: Option<Box<Rare>>,
}

transport::carried!(Own { domain, progress, shut, error in 0..=4095, settings, rare });

impl Sessions {
    /// Takes a stream out, with its connection if it has one: here it is no more. What comes for the connection from now on
    /// is answered by a reset unless [`hold`](Self::hold) is called, before anything else comes.
    ///
    /// # Errors
    /// [`Errno::OPNOTSUPP`] of a socket that listens, is bound and not connected, waits for its first data, or is for
    /// datagrams; [`Errno::BADF`]. Nothing has changed then.
    pub fn export(&mut self, id: Id, now: u64) -> Result<Parcel, Errno> {
        let session = self.get(id)?;
        let connection = match session.role {
            Role::Connection(connection) => Some(connection),
            Role::Fresh => None,
            _ => return Err(Errno::OPNOTSUPP),
        };
        let own = Own {
            domain: session.domain,
            progress: session.progress,
            shut: session.shut,
            error: session.error,
            settings: Settings::clone(&session.settings),
            rare: session.rare.clone(),
        };
        let mut to = Writer::new(now);
        own.put(&mut to);
        let parcel = self.wrap(now, &to.bytes, connection)?;
        self.remove(id);
        Ok(parcel)
    }

    /// What of a connection's data lay elsewhere comes back, whatever the size of its buffers: received and not read yet, written
    /// and not taken yet.
    pub(crate) fn take_back(&mut self, id: Id, unread: &[u8], unsent: &[u8]) {
        let Ok(Role::Connection(connection)) = self.get(id).map(|session| session.role) else {
            return;
        };
        if let Some(fifo) = self.stack.receive_fifo(connection).filter(|_| !unread.is_empty()) {
            fifo.put_back(unread);
        }
        if let Some(fifo) = self.stack.transmit_fifo(connection).filter(|_| !unsent.is_empty()) {
            fifo.overfill(unsent);
            self.stack.sent(connection, Write::default());
        }
    }

    /// Directions of a connection that were ended here: reading, writing.
    pub(crate) fn has_shut(&self, id: Id) -> (bool, bool) {
        let Ok(session) = self.get(id) else { return (false, false) };
        let Role::Connection(connection) = session.role else { return (false, false) };
        let (reading, writing) = self.stack.has_shut(connection);
        (reading, writing || session.shut.1)
    }

    /// Whether it is a connection that was established, be it over.
    pub(crate) fn was_established(&self, id: Id) -> bool {
        self.get(id).is_ok_and(|session| {
            let Role::Connection(connection) = session.role else { return false };
            let state = self.stack.state(connection);
            !matches!(state, Some(State::SynSent | State::SynReceived))
        })
    }

    /// Takes a stream in at a place that is free. `age`: ns since it was exported. Gives the ends of its connection.
    ///
    /// # Errors
    /// [`ImportError`]; nothing has changed then. The bytes may come from anybody. [`ImportError::InUse`] also when there is a
    /// session at this place.
    pub fn import(
        &mut self,
        id: Id,
        now: u64,
        age: u64,
        bytes: &[u8],
    ) -> Result<Option<Ends>, ImportError> {
        if self.has(id) {
            return Err(ImportError::InUse);
        }
        self.now = self.now.max(now);
        let Parts { own, connection } = Parts::of(bytes)?;
        let mut from = Reader::new(own, self.now, age);
        let own = Own::take(&mut from)?;
        match from.left() {
            0 => {}
            surplus => return Err(ImportError::Surplus(surplus)),
        }
        let role = if connection.is_empty() {
            Role::Fresh
        } else {
            Role::Connection(self.take_in(age, connection, |is_released, is_unaccepted| {
                !is_released && !is_unaccepted
            })?)
        };
        let settings = self.shelf.share(own.settings);
        let mut session = Session::new(own.domain, Role::Fresh, Arc::clone(&settings));
        (session.progress, session.shut) = (own.progress, own.shut);
        (session.error, session.rare) = (own.error, own.rare);
        // The place is free, as was found above.
        let _ = self.put(id, session);
        self.become_role(id, role);
        Ok(match role {
            Role::Connection(connection) => Transport::ends(&self.stack, connection),
            _ => None,
        })
    }

    /// Takes all connections out that were closed here and have something left to send or to hear, but for those in TIME-WAIT.
    pub fn export_closed(&mut self, now: u64) -> Vec<Parcel> {
        let closed = self.closed().into_iter();
        closed.filter_map(|connection| self.export_released(connection, now)).collect()
    }

    /// Connections that were closed here and have something left to send or to hear, but for those in TIME-WAIT.
    pub(crate) fn closed(&self) -> Vec<ConnectionId> {
        let mut all = self.stack.all_connections();
        all.retain(|connection| self.stack.is_released(*connection));
        all
    }

    /// Takes one of them out. `None`: it is over by now.
    pub(crate) fn export_released(&mut self, connection: ConnectionId, now: u64) -> Option<Parcel> {
        let is_counted = self.stack.awaits_gone(connection);
        let parcel = self.wrap(now, &[], Some(connection)).ok()?;
        self.leaving = self.leaving.saturating_sub(usize::from(is_counted));
        Some(parcel)
    }

    /// Takes all connections in TIME-WAIT out that were closed here. What comes for them gets no answer until `held`: ns.
    pub fn export_time_waits(&mut self, now: u64, held: u64) -> Vec<TimeWait> {
        self.now = self.now.max(now);
        let all = self.stack.export_time_waits(self.now, usize::MAX);
        all.iter().for_each(|one| self.stack.hold(&one.ends(), held));
        all
    }

    /// Whether handshakes are under way at a socket that listens.
    #[must_use]
    pub fn has_handshakes(&self, id: Id) -> bool {
        let Ok(Role::Listening(listener)) = self.get(id).map(|session| session.role) else {
            return false;
        };
        self.stack.backlog(listener).is_some_and(|backlog| backlog.half_open > 0)
    }

    /// Takes all connections out that nobody has accepted yet at a socket that listens: those that wait, then those whose
    /// handshake is under way. The socket admits nobody from then on: SYNs are dropped, and come again.
    pub fn export_unaccepted(&mut self, id: Id, now: u64) -> Vec<Parcel> {
        let Ok(Role::Listening(listener)) = self.get(id).map(|session| session.role) else {
            return Vec::new();
        };
        self.stack.stop_admitting(listener);
        let waiting = self.stack.unaccepted(listener).into_iter();
        waiting.filter_map(|waiting| self.wrap(now, &[], Some(waiting)).ok()).collect()
    }

    /// Takes out the connections that have waited longest to be accepted at a socket that listens, so many at most. It goes on to admit
    /// others.
    pub fn export_waiting(&mut self, id: Id, now: u64, most: usize) -> Vec<Parcel> {
        let Ok(Role::Listening(listener)) = self.get(id).map(|session| session.role) else {
            return Vec::new();
        };
        let waiting = self.stack.longest_unaccepted(listener, most).into_iter();
        waiting.filter_map(|waiting| self.wrap(now, &[], Some(waiting)).ok()).collect()
    }

    /// Takes in what [`export_closed`](Self::export_closed) or [`export_unaccepted`](Self::export_unaccepted) gave. A
    /// connection that was not accepted waits at the socket that listens at its address.
    ///
    /// # Errors
    /// [`ImportError`]; nothing has changed then. The bytes may come from anybody.
    pub fn import_unheld(
        &mut self,
        now: u64,
        age: u64,
        bytes: &[u8],
    ) -> Result<Option<Ends>, ImportError> {
        self.now = self.now.max(now);
        let Parts { own, connection } = Parts::of(bytes)?;
        if !own.is_empty() {
            return Err(ImportError::Value("socket"));
        }
        let connection = self
            .take_in(age, connection, |is_released, is_unaccepted| is_released != is_unaccepted)?;
        self.leaving += usize::from(self.stack.awaits_gone(connection));
        Ok(Transport::ends(&self.stack, connection))
    }

    /// Until then (ns) what comes for a connection that is away gets no answer.
    pub fn hold(&mut self, ends: &Ends, until: u64) {
        self.stack.hold(ends, until);
    }

    /// Takes a connection in if it is `fit`: was it closed here, was it not accepted?
    fn take_in(
        &mut self,
        age: u64,
        bytes: &[u8],
        fit: impl Fn(bool, bool) -> bool,
    ) -> Result<ConnectionId, ImportError> {
        let connection = self.stack.import(self.now, age, bytes, &mut None)?;
        if fit(self.stack.is_released(connection), self.stack.is_unaccepted(connection)) {
            if let Some(ends) = Transport::ends(&self.stack, connection) {
                // Perhaps it has come without the listener that it was accepted at.
                self.stack.buffers_mut().claim(&ends);
            }
            return Ok(connection);
        }
        let _ = self.stack.export(self.now, connection, Contents::Copied);
        Err(ImportError::Value("flags"))
    }

    /// The bytes of a parcel, and out of the stack what is in them.
    fn wrap(
        &mut self,
        now: u64,
        own: &[u8],
        connection: Option<ConnectionId>,
    ) -> Result<Parcel, Errno> {
        self.now = self.now.max(now);
        let exported = match connection {
            Some(connection) => {
                let exported = self.stack.export(self.now, connection, Contents::Copied);
                Some(exported.map_err(|_| Errno::BADF)?)
            }
            None => None,
        };
        let connection = exported.as_ref().map_or(&[][..], |exported| &exported.bytes);
        let bytes = Parts { own, connection }.joined();
        Ok(Parcel { ends: exported.map(|exported| exported.ends), bytes })
    }
}
