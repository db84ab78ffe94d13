//! A session: what lies behind one socket of the application.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use transport::{ConnectionId, ListenerId, UdpId};

use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::Corked;
use crate::settings::Settings;

/// A session's index, chosen by the caller: it is the application's descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u32);

/// `AF_INET` or `AF_INET6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Domain {
    /// IPv4.
    V4,
    /// IPv6; IPv4 too, as mapped addresses, unless `IPV6_V6ONLY` says otherwise.
    V6,
}

/// `SOCK_STREAM` or `SOCK_DGRAM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
}

/// What `shutdown` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// `SHUT_RD`.
    Read,
    /// `SHUT_WR`.
    Write,
    /// `SHUT_RDWR`.
    Both,
}

impl How {
    pub(crate) fn reads(self) -> bool {
        self != Self::Write
    }

    pub(crate) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// What a session is to the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A stream that is neither bound nor connected (`TCP_CLOSE`).
    Fresh,
    /// A stream with an address.
    Bound(ListenerId),
    /// A stream that listens.
    Listening(ListenerId),
    /// A connect that waits for the first data (`TCP_FASTOPEN_CONNECT`).
    Deferred,
    /// A connection, in whatever state; over too, until it is closed or connected anew.
    Connection(ConnectionId),
    /// Datagrams; `None`: without an address yet.
    Datagrams(Option<UdpId>),
}

/// Linux's `sock->state`: what `connect` goes by, beside the connection's own state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// `SS_UNCONNECTED`.
    Unconnected,
    /// `SS_CONNECTING`: `connect` has not said how it ended.
    Connecting,
    /// `SS_CONNECTED`.
    Connected,
    /// `SS_DISCONNECTING`: shut down before it was connected.
    Disconnecting,
}

/// What few sessions have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Rare {
    /// The address that `bind` was given, as the stack has it.
    pub(crate) bound: Option<SocketAddr>,
    /// The port of the connection before, which `getsockname` goes on telling.
    pub(crate) port_before: u16,
    /// Where datagrams come from after a connect to port 0, which sets no peer.
    pub(crate) source: Option<IpAddr>,
    /// A datagram that was begun.
    pub(crate) corked: Option<Box<Corked>>,
    /// `SO_PEEK_OFF`; `None`: -1, off.
    pub(crate) peek_offset: Option<i32>,
    /// Where a deferred connect goes, and from which address.
    pub(crate) deferred: Option<(IpAddr, SocketAddr)>,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) role: Role,
    pub(crate) domain: Domain,
    pub(crate) progress: Progress,
    /// Directions that were shut down while there was no connection to tell: reading, writing. They stay so with the next one.
    pub(crate) shut: (bool, bool),
    /// `sk_err`, as far as the connection itself does not keep it; 0: none.
    pub(crate) error: i32,
    /// In the queue of those to be told about.
    pub(crate) queued: bool,
    /// What has woken it since it was told about last.
    pub(crate) woken: Mask,
    pub(crate) settings: Arc<Settings>,
    pub(crate) rare: Option<Box<Rare>>,
}

impl Session {
    pub(crate) fn new(domain: Domain, role: Role, settings: Arc<Settings>) -> Self {
        Self {
            role,
            domain,
            progress: Progress::Unconnected,
            shut: (false, false),
            error: 0,
            queued: false,
            woken: Mask::NONE,
            settings,
            rare: None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        if matches!(self.role, Role::Datagrams(_)) { Kind::Datagram } else { Kind::Stream }
    }

    /// The error that waits, told once.
    pub(crate) fn take_error(&mut self) -> Result<(), Errno> {
        match std::mem::take(&mut self.error) {
            0 => Ok(()),
            error => Err(Errno(error)),
        }
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Bytes of memory of a datagram that was begun.
    pub(crate) fn begun(&self) -> usize {
        let corked = self.rare.as_ref().and_then(|rare| rare.corked.as_ref());
        corked.map_or(0, |corked| corked.bytes.capacity())
    }

    pub(crate) fn bound(&self) -> Option<SocketAddr> {
        self.rare.as_ref().and_then(|rare| rare.bound)
    }
}
