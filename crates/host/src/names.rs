//! Addresses of sockets.

use std::net::SocketAddr;

use transport::{Ends, State, Transport};

use crate::address::{any, told};
use crate::errno::Errno;
use crate::session::{Id, Role};
use crate::sessions::Sessions;

impl Sessions {
    /// The local address (`getsockname`), as a socket of its domain tells it.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn name(&self, id: Id) -> Result<SocketAddr, Errno> {
        let session = self.get(id)?;
        let address = match session.role {
            Role::Fresh | Role::Deferred | Role::Datagrams(None) => {
                let rare = session.rare.as_ref();
                let before = rare.map_or(0, |rare| rare.port_before);
                let ip = session.bound().map_or(any(session.domain), |bound| bound.ip());
                Some(SocketAddr::new(ip, before))
            }
            Role::Bound(listener) | Role::Listening(listener) => {
                self.stack.bound(listener).map(|(address, _)| address)
            }
            Role::Connection(connection) => {
                Transport::ends(&self.stack, connection).map(|ends| ends.local)
            }
            Role::Datagrams(Some(socket)) => {
                let source = session.rare.as_ref().and_then(|rare| rare.source);
                let local = self.stack.udp_ends(socket).map(|ends| ends.0);
                local.map(|local| SocketAddr::new(source.unwrap_or(local.ip()), local.port()))
            }
        };
        let domain = session.domain;
        Ok(told(domain, address.unwrap_or(SocketAddr::new(any(domain), 0))))
    }

    /// Whether it is bound to a port.
    #[must_use]
    pub fn has_port(&self, id: Id) -> bool {
        self.name(id).is_ok_and(|name| name.port() != 0)
    }

    /// The peer's address (`getpeername`).
    ///
    /// # Errors
    /// [`Errno::NOTCONN`] before a connection is established and when it is over; [`Errno::BADF`].
    pub fn peer(&self, id: Id) -> Result<SocketAddr, Errno> {
        let session = self.get(id)?;
        let remote = match session.role {
            Role::Connection(connection) => {
                let over = matches!(
                    self.stack.state(connection),
                    None | Some(State::Closed | State::SynSent | State::TimeWait)
                );
                let ends = Transport::ends(&self.stack, connection).filter(|_| !over);
                ends.map(|ends| ends.remote)
            }
            Role::Datagrams(Some(socket)) => self.stack.udp_ends(socket).and_then(|ends| ends.1),
            _ => None,
        };
        remote.map(|remote| told(session.domain, remote)).ok_or(Errno::NOTCONN)
    }

    /// The ends of its connection, in whatever state.
    #[must_use]
    pub fn ends(&self, id: Id) -> Option<Ends> {
        match self.get(id).ok()?.role {
            Role::Connection(connection) => Transport::ends(&self.stack, connection),
            _ => None,
        }
    }

    /// The peer that it has, had last or is to have (`inet_getname` with 2 for `peer`).
    pub(crate) fn latest_peer(&self, id: Id) -> Option<SocketAddr> {
        let session = self.get(id).ok()?;
        let remote = match session.role {
            Role::Connection(connection) => Transport::ends(&self.stack, connection)?.remote,
            Role::Datagrams(Some(socket)) => self.stack.udp_ends(socket)?.1?,
            Role::Deferred => session.rare.as_ref()?.deferred?.1,
            _ => return None,
        };
        Some(told(session.domain, remote))
    }

    /// Whether a socket for datagrams is connected.
    pub(crate) fn has_peer(&self, id: Id) -> bool {
        self.peer(id).is_ok()
    }
}
