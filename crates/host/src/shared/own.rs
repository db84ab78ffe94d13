//! What a process knows of a session.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use shm::fifo::{CAPACITY, Reader, Writer};
use shm::records::Record;

use super::{ENDED, FLOWS, MUTE};
use crate::mask::Mask;
use crate::options::Wanted;
use crate::session::Domain;
use crate::settings::Settings;
use crate::template::Template;

/// What the process knows of a session.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) is_there: bool,
    /// The number of its beginning, as long as the worker may not have come to that: until then, the record is of the session before.
    pub(super) awaited: Option<u32>,
    /// What it is opened like, until then.
    pub(super) template: Option<Template>,
    pub(super) inward: Reader,
    pub(super) outward: Writer,
    /// It has ended this direction itself: reading, writing.
    pub(super) shut: (bool, bool),
    /// `connect` has begun, and has not said how that ended.
    pub(super) connecting: bool,
    /// The local and the remote address of its connection, as an answer has said.
    pub(super) ends: Option<(SocketAddr, SocketAddr)>,
    pub(super) kept: Kept,
    /// In the list of those that have chunks.
    pub(super) listed: bool,
    /// It is for datagrams.
    pub(super) datagrams: Option<Datagrams>,
}

/// What the process goes by itself of what was set.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    /// `SO_RCVTIMEO` and `SO_SNDTIMEO`: ns.
    pub(super) timeouts: (Option<u64>, Option<u64>),
    /// `SO_RCVLOWAT`; 0: 1.
    pub(super) low_water: u32,
    /// It has a linger time: whoever closes it may have to wait.
    pub(super) lingers: bool,
    /// Of datagrams: what is told beside them.
    pub(super) wanted: Wanted,
    /// They are cut or put together; IPv6 only.
    pub(super) reshapes: (bool, bool),
}

transport::carried!(Kept { timeouts, low_water, lingers, wanted, reshapes });

impl Kept {
    /// Of a socket with these settings.
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            timeouts: settings.timeouts,
            low_water: settings.receive_low_water,
            lingers: settings.stream.linger.is_some_and(|time| time > 0),
            wanted: settings.wanted(),
            reshapes: settings.reshapes(),
        }
    }
}

impl Own {
    /// Its session has ended. The next one at its number stands in the same list still. Gives its side of the FIFO.
    pub(super) fn take(&mut self) -> Writer {
        let next = Self { listed: self.listed, ..Self::default() };
        std::mem::replace(self, next).outward
    }

    /// Whether the worker has come to its beginning, which was awaited.
    pub(super) fn has_begun(&self, record: &Record) -> bool {
        self.awaited.is_some_and(|epoch| epoch == record.epoch())
    }
}

/// What a process knows of a socket for datagrams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagrams {
    domain: Domain,
    /// Its address, when it has a port and the stack was asked.
    pub(super) name: Option<SocketAddr>,
    pub(super) has_peer: bool,
    /// A datagram was begun (`MSG_MORE`).
    pub(super) is_begun: bool,
}

impl Datagrams {
    pub(super) fn new(domain: Domain) -> Self {
        Self { domain, name: None, has_peer: false, is_begun: false }
    }

    /// Whether nothing can be wrong with where it goes.
    pub(super) fn reaches(&self, to: Option<SocketAddr>, only_v6: bool) -> bool {
        let Some(to) = to else { return self.has_peer };
        let ip = to.ip().to_canonical();
        let is_plain = !ip.is_unspecified() && !ip.is_multicast() && ip != Ipv4Addr::BROADCAST;
        let has_version = match (self.domain, to.ip()) {
            (Domain::V4, IpAddr::V4(_)) => true,
            (Domain::V6, IpAddr::V6(_)) => ip.is_ipv6() || !only_v6,
            _ => false,
        };
        has_version && is_plain && to.port() != 0 && (self.has_peer || self.name.is_some())
    }
}

/// What is ready of a connection that was reset.
pub(super) const OVER: Mask =
    Mask(Mask::READ.0 | Mask::WRITE.0 | Mask::RDHUP.0 | Mask::HUP.0 | Mask::ERR.0);

/// Room below which nobody is told that there is some.
pub(super) const ROOM: usize = CAPACITY as usize / 3;

/// What the worker says of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status(pub(super) u32);

impl Status {
    /// Of a stream that was just opened: `tcp_poll` of TCP_CLOSE.
    pub(super) const FRESH: Self = Self(Mask::WRITE.0 | Mask::HUP.0);

    pub(super) fn flows(self) -> bool {
        self.0 & FLOWS != 0
    }

    /// Of a stream that is neither connected nor about to be, and does not listen.
    pub(super) fn is_closed(self) -> bool {
        !self.flows() && self.mask().has(Mask::HUP)
    }

    pub(super) fn mask(self) -> Mask {
        Mask(self.0 & Mask::ALL.0)
    }

    /// Behind what the FIFO has comes the end of data, and no error.
    pub(super) fn has_ended(self) -> bool {
        self.0 & ENDED != 0 && !self.mask().has(Mask::ERR)
    }

    /// Nothing is to be asked: data goes through the FIFOs.
    pub(super) fn is_plain(self) -> bool {
        let over = Mask::ERR | Mask::HUP | Mask::RDHUP;
        self.flows() && (self.mask() & over).is_empty()
    }

    /// The same of what is sent.
    pub(super) fn takes(self) -> bool {
        self.flows() && self.0 & MUTE == 0 && (self.mask() & (Mask::ERR | Mask::HUP)).is_empty()
    }
}
