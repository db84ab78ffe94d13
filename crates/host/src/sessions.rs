//! All sessions of one stack, and how they are found.

use std::net::IpAddr;
use std::sync::Arc;

use tables::{PagedArray, PagedQueue};
use transport::{Config, ConnectionId, Counters, ListenerId, Stack, UdpId};

use crate::claims::Store;
use crate::errno::Errno;
use crate::journal::Journal;
use crate::outbox::Outbox;
use crate::ports::Leases;
use crate::session::{Domain, Id, Kind, Role, Session};
use crate::settings::Shelf;

/// No session has it.
const NOBODY: u32 = u32::MAX;

/// The sockets of one stack. It belongs to one thread at a time; `docs/sockets.md` has the order of a round.
#[derive(Debug)]
pub struct Sessions {
    pub(crate) stack: Stack<Store>,
    sessions: PagedArray<Option<Session>>,
    connections: Owners,
    listeners: Owners,
    sockets: Owners,
    /// Sessions that were woken, each once.
    pub(crate) woken: PagedQueue<Id>,
    pub(crate) leases: Leases,
    /// Datagrams on their way out.
    pub(crate) outbox: Outbox,
    pub(crate) shelf: Shelf,
    /// Connections that were closed here, and have something left to send or to hear.
    pub(crate) leaving: usize,
    /// The latest time that was given: ns.
    pub(crate) now: u64,
    pub(crate) mtu: u16,
    /// `SO_OOBINLINE` cannot be switched off.
    pub(crate) urgent_stays: bool,
    /// `TCP_FASTOPEN_KEY`, if it was set.
    pub(crate) fast_open_keys: Option<([u8; 16], Option<[u8; 16]>)>,
    /// Pieces of a datagram, put together.
    pub(crate) scratch: Vec<u8>,
    /// Bytes of memory of such pieces.
    pub(crate) begun: usize,
    /// Where the connections are shown.
    pub(crate) journal: Option<Box<Journal>>,
}

impl Sessions {
    /// None yet.
    ///
    /// # Errors
    /// [`Errno::NOMEM`] when the tables of connections do not fit.
    pub fn new(config: Config) -> Result<Self, Errno> {
        let (seed, mtu) = (config.seed, config.mtu);
        Ok(Self {
            stack: Stack::new(config, Store::default()).map_err(|_| Errno::NOMEM)?,
            sessions: PagedArray::new(),
            connections: Owners::default(),
            listeners: Owners::default(),
            sockets: Owners::default(),
            woken: PagedQueue::new(),
            leases: Leases::new(seed),
            outbox: Outbox::default(),
            shelf: Shelf::new(),
            leaving: 0,
            now: 0,
            mtu,
            urgent_stays: false,
            fast_open_keys: None,
            scratch: Vec::new(),
            begun: 0,
            journal: None,
        })
    }

    /// Opens a socket at a place that is free.
    ///
    /// # Errors
    /// [`Errno::EXIST`] when there is a session at this place.
    pub fn open(&mut self, id: Id, domain: Domain, kind: Kind) -> Result<(), Errno> {
        let (role, settings) = match kind {
            Kind::Stream => (Role::Fresh, Arc::clone(&self.shelf.stream)),
            Kind::Datagram => (Role::Datagrams(None), Arc::clone(&self.shelf.datagrams)),
        };
        self.put(id, Session::new(domain, role, settings))
    }

    /// Whether there is a session at this place.
    #[must_use]
    pub fn has(&self, id: Id) -> bool {
        self.get(id).is_ok()
    }

    /// Domain and kind of a socket.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn kind(&self, id: Id) -> Result<(Domain, Kind), Errno> {
        self.get(id).map(|session| (session.domain, session.kind()))
    }

    /// The first link towards `remote` takes packets of `mtu` bytes, as whoever routes them says.
    pub fn note_first_link(&mut self, remote: IpAddr, mtu: u16) {
        self.stack.note_first_link(self.now, remote.to_canonical(), mtu);
    }

    /// Urgent data stays in the stream of every socket (`SO_OOBINLINE`).
    pub fn keep_urgent_inline(&mut self) {
        self.shelf.keep_urgent_inline();
        self.urgent_stays = true;
    }

    /// Bytes of an IP packet on the way out, as far as no path takes less.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// What the stack has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.stack.counters()
    }

    pub(crate) fn put(&mut self, id: Id, session: Session) -> Result<(), Errno> {
        if self.has(id) {
            return Err(Errno::EXIST);
        }
        self.sessions.put(id.0 as usize, Some(session));
        Ok(())
    }

    /// Another number for a session. `false`: there is no such session, or the number is taken.
    pub fn rename(&mut self, id: Id, new: Id) -> bool {
        if self.has(new) {
            return false;
        }
        let place = self.sessions.get_mut(id.0 as usize);
        let Some(mut session) = place.and_then(Option::take) else { return false };
        let role = session.role;
        let woken = std::mem::take(&mut session.woken);
        (session.role, session.queued) = (Role::Fresh, false);
        // The place is free, as was found above.
        let _ = self.put(new, session);
        self.become_role(new, role);
        if !woken.is_empty() {
            self.wake(new, woken);
        }
        true
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<Session> {
        let session = self.sessions.get_mut(id.0 as usize)?.take()?;
        self.disown(session.role);
        self.begun -= session.begun();
        Some(session)
    }

    #[inline]
    pub(crate) fn get(&self, id: Id) -> Result<&Session, Errno> {
        self.sessions.get(id.0 as usize).and_then(Option::as_ref).ok_or(Errno::BADF)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: Id) -> Result<&mut Session, Errno> {
        self.sessions.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or(Errno::BADF)
    }

    /// Gives a session another role.
    pub(crate) fn become_role(&mut self, id: Id, role: Role) {
        let Ok(session) = self.get_mut(id) else { return };
        let old = std::mem::replace(&mut session.role, role);
        self.disown(old);
        match role {
            Role::Connection(connection) => self.connections.set(connection.index(), id.0),
            Role::Bound(listener) | Role::Listening(listener) => {
                self.listeners.set(listener.index(), id.0);
            }
            Role::Datagrams(Some(socket)) => self.sockets.set(socket.index(), id.0),
            Role::Fresh | Role::Deferred | Role::Datagrams(None) => {}
        }
    }

    fn disown(&mut self, role: Role) {
        match role {
            Role::Connection(connection) => self.connections.set(connection.index(), NOBODY),
            Role::Bound(listener) | Role::Listening(listener) => {
                self.listeners.set(listener.index(), NOBODY);
            }
            Role::Datagrams(Some(socket)) => self.sockets.set(socket.index(), NOBODY),
            Role::Fresh | Role::Deferred | Role::Datagrams(None) => {}
        }
    }

    /// The session of a connection; `None`: it was not accepted yet, or is closed.
    #[inline]
    pub(crate) fn of_connection(&self, connection: ConnectionId) -> Option<Id> {
        let id = self.connections.get(connection.index())?;
        let role = self.get(id).ok()?.role;
        (role == Role::Connection(connection)).then_some(id)
    }

    pub(crate) fn of_listener(&self, listener: ListenerId) -> Option<Id> {
        let id = self.listeners.get(listener.index())?;
        let role = self.get(id).ok()?.role;
        (role == Role::Listening(listener)).then_some(id)
    }

    pub(crate) fn of_socket(&self, socket: UdpId) -> Option<Id> {
        let id = self.sockets.get(socket.index())?;
        let role = self.get(id).ok()?.role;
        (role == Role::Datagrams(Some(socket))).then_some(id)
    }
}

/// Which session has what of the stack's, by index: one more than its number; 0: none.
#[derive(Debug, Default)]
struct Owners(PagedArray<u32>);

impl Owners {
    #[inline]
    fn get(&self, index: u32) -> Option<Id> {
        self.0.get(index as usize)?.checked_sub(1).map(Id)
    }

    fn set(&mut self, index: u32, id: u32) {
        let owner = id.wrapping_add(1);
        match self.0.get_mut(index as usize) {
            Some(place) => *place = owner,
            None if id == NOBODY => {}
            None => self.0.put(index as usize, owner),
        }
    }
}
