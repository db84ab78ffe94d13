//! Options of sockets: each is honoured, or refused with Linux's error number.

use std::sync::Arc;

use crate::errno::Errno;
use crate::mask::Mask;
use crate::session::{Domain, Id, Kind, Role, Session};
use crate::sessions::Sessions;
use crate::settings::{Settings, flag};

mod ip;
mod ipv6;
mod socket;
mod tcp;
mod udp;
mod value;

pub use socket::Stamps;
pub(crate) use socket::is_error;
pub(crate) use tcp::switch_sends;
pub use value::{Setting, Value};

/// Levels (`SOL_*`).
pub(crate) mod level {
    pub(super) const IP: i32 = 0;
    pub(crate) const SOCKET: i32 = 1;
    pub(super) const TCP: i32 = 6;
    pub(super) const UDP: i32 = 17;
    pub(super) const IPV6: i32 = 41;
}

/// What of a datagram the application wants told beside its bytes, as control messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// `IP_PKTINFO` for IPv4, `IPV6_RECVPKTINFO` for IPv6.
    pub packet_info: (bool, bool),
    /// `IP_RECVTTL`, `IPV6_RECVHOPLIMIT`.
    pub ttl: (bool, bool),
    /// `IP_RECVTOS`, `IPV6_RECVTCLASS`.
    pub service: (bool, bool),
    /// `SO_TIMESTAMP` and its kin.
    pub stamps: Stamps,
}

transport::carried!(Wanted { packet_info, ttl, service, stamps });

impl Settings {
    /// What a datagram's receiver wants told.
    pub(crate) fn wanted(&self) -> Wanted {
        let both = |v4: u32, v6: u32| (self.has(v4), self.has(v6));
        Wanted {
            packet_info: both(flag::PACKET_INFO, flag::PACKET_INFO_V6),
            ttl: both(flag::TTL_TOLD, flag::TTL_TOLD_V6),
            service: both(flag::SERVICE_TOLD, flag::SERVICE_TOLD_V6),
            stamps: self.stamps(),
        }
    }

    /// Whether a socket's datagrams are cut or put together (`UDP_SEGMENT`, `UDP_CORK`), and whether it takes IPv6 only.
    pub(crate) fn reshapes(&self) -> (bool, bool) {
        (self.segment != 0 || self.has(flag::CORK), self.has(flag::V6_ONLY))
    }
}

impl Sessions {
    /// Sets an option (`setsockopt`), in any state that Linux lets it be set in.
    ///
    /// # Errors
    /// [`Errno::NOPROTOOPT`] for what is not known or cannot be honoured; [`Errno::INVAL`], [`Errno::PERM`],
    /// [`Errno::BADF`], and what else `setsockopt` says of single options.
    pub fn set_option(&mut self, id: Id, level: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
        let (domain, kind) = self.kind(id)?;
        match (level, kind, domain) {
            (level::SOCKET, ..) => self.set_socket_option(id, name, value),
            (level::TCP, Kind::Stream, _) => self.set_tcp_option(id, name, value),
            (level::UDP, Kind::Datagram, _) => self.set_udp_option(id, name, value),
            (level::IP, ..) => self.set_ip_option(id, name, value),
            (level::IPV6, _, Domain::V6) => self.set_ipv6_option(id, name, value),
            _ => Err(Errno::NOPROTOOPT),
        }
    }

    /// Gives an option (`getsockopt`); `room`: bytes that the caller takes at most. `SO_ERROR` is told once.
    ///
    /// # Errors
    /// [`Errno::NOPROTOOPT`], [`Errno::OPNOTSUPP`], [`Errno::BADF`], and what else `getsockopt` says.
    pub fn option(&mut self, id: Id, level: i32, name: i32, room: usize) -> Result<Value, Errno> {
        let (domain, kind) = self.kind(id)?;
        match (level, kind, domain) {
            (level::SOCKET, ..) => self.socket_option(id, name, room),
            (level::TCP, Kind::Stream, _) => self.tcp_option(id, name, room),
            (level::UDP, Kind::Datagram, _) => self.udp_option(id, name, room),
            (level::IP, ..) => self.ip_option(id, name, room),
            (level::IPV6, _, Domain::V6) => self.ipv6_option(id, name, room),
            // ip_getsockopt and ipv6_getsockopt differ in what they say of other levels.
            (_, _, Domain::V4) => Err(Errno::OPNOTSUPP),
            (_, _, Domain::V6) => Err(Errno::NOPROTOOPT),
        }
    }

    /// `SO_RCVTIMEO` and `SO_SNDTIMEO`: ns; `None`: for ever.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn timeouts(&self, id: Id) -> Result<(Option<u64>, Option<u64>), Errno> {
        Ok(self.get(id)?.settings.timeouts)
    }

    /// What a datagram's receiver wants told.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn wanted(&self, id: Id) -> Result<Wanted, Errno> {
        Ok(self.get(id)?.settings.wanted())
    }

    /// Changes settings, and tells the stack.
    fn change(
        &mut self,
        id: Id,
        change: impl FnOnce(&mut Settings) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let v4 = self.sends_v4(id);
        let old = &self.get(id)?.settings;
        let mut new = Settings::clone(old);
        change(&mut new)?;
        new.derive(v4);
        if new == **old {
            return Ok(());
        }
        let shared = self.shelf.share(new);
        self.get_mut(id)?.settings = Arc::clone(&shared);
        self.apply(id, &shared);
        Ok(())
    }

    /// Switches a setting.
    pub(crate) fn switch(&mut self, id: Id, flag: u32, on: bool) -> Result<(), Errno> {
        self.change(id, |settings| {
            settings.set(flag, on);
            Ok(())
        })
    }

    /// The version of IP of an IPv6 socket's packets is settled: they say what was set for it.
    pub(crate) fn settle_version(&mut self, id: Id) {
        let differs = |session: &Session| {
            session.domain == Domain::V6 && session.settings.differs_by_version()
        };
        if self.get(id).is_ok_and(differs) {
            // Nothing is refused: nothing changes but what follows from the version.
            let _ = self.change(id, |_| Ok(()));
        }
    }

    /// Whether packets of the socket are IPv4; of one that takes both, no.
    fn sends_v4(&self, id: Id) -> bool {
        let v4 = |address: std::net::SocketAddr| address.ip().to_canonical().is_ipv4();
        let domain = self.get(id).map_or(Domain::V4, |session| session.domain);
        domain == Domain::V4
            || self.name(id).is_ok_and(|name| !name.ip().is_unspecified() && v4(name))
    }

    /// There may be more room to write than before (`sk_write_space`).
    fn offer_space(&mut self, id: Id) {
        if self.mask(id).has(Mask::OUT) {
            self.wake(id, Mask::WRITABLE);
        }
    }

    fn apply(&mut self, id: Id, settings: &Settings) {
        let Ok(session) = self.get(id) else { return };
        // The socket's own state may have moved on without us: then there is nobody to tell.
        let _ = match session.role {
            Role::Connection(connection) => {
                self.stack.set_options(connection, settings.stream.clone())
            }
            Role::Listening(listener) => {
                self.stack.set_listener_options(listener, settings.stream.clone())
            }
            Role::Datagrams(Some(socket)) => {
                let _ = self.stack.udp_set_options(socket, &settings.datagrams);
                Ok(())
            }
            Role::Fresh | Role::Bound(_) | Role::Deferred | Role::Datagrams(None) => Ok(()),
        };
    }
}
