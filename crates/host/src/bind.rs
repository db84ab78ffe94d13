//! Binding a socket to an address.

use std::net::{IpAddr, SocketAddr};

use transport::{BindError, Binding, ListenerId, UdpError, UdpId, UdpOptions};

use crate::address::{any, plain};
use crate::errno::Errno;
use crate::session::{Domain, Id, Role, Session};
use crate::sessions::Sessions;

impl Sessions {
    /// Binds a socket to an address that the kernel lets the application have. Port 0: one of the leased ones
    /// is chosen; `listen` needs one that was named.
    ///
    /// # Errors
    /// [`Errno::AFNOSUPPORT`] for an address of another domain; [`Errno::INVAL`] when it is bound or
    /// connected, or a mapped address for a socket that is IPv6 only; [`Errno::ADDRINUSE`] also when the
    /// leased ports are used up; [`Errno::ADDRNOTAVAIL`].
    pub fn bind(&mut self, id: Id, local: SocketAddr) -> Result<(), Errno> {
        let session = self.get(id)?;
        if local.is_ipv4() != (session.domain == Domain::V4) {
            return Err(Errno::AFNOSUPPORT);
        }
        let address = plain(local);
        if address.is_ipv4() && session.domain == Domain::V6 && session.settings.v6_only {
            return Err(Errno::INVAL);
        }
        let role = match session.role {
            Role::Fresh => Role::Bound(self.bind_stream(id, address)?),
            Role::Datagrams(None) => Role::Datagrams(Some(self.bind_datagrams(id, address)?)),
            _ => return Err(Errno::INVAL),
        };
        self.become_role(id, role);
        let rare = self.get_mut(id)?.rare();
        rare.bound = Some(address);
        rare.chosen_port = address.port() == 0;
        Ok(())
    }

    pub(crate) fn bind_stream(&mut self, id: Id, address: SocketAddr) -> Result<ListenerId, Errno> {
        let binding = binding(self.get(id)?);
        if address.port() != 0 {
            return self.stack.bind(address, &binding).map_err(refused);
        }
        let mut walk = self.leases.shuffled();
        while let Some(port) = walk.next(&self.leases) {
            match self.stack.bind(SocketAddr::new(address.ip(), port), &binding) {
                Err(BindError::InUse) => {}
                bound => return bound.map_err(refused),
            }
        }
        Err(Errno::ADDRINUSE)
    }

    fn bind_datagrams(&mut self, id: Id, address: SocketAddr) -> Result<UdpId, Errno> {
        let options = datagram_options(self.get(id)?);
        if address.port() != 0 {
            return self.stack.udp_bind(address, &options).map_err(|_| Errno::ADDRINUSE);
        }
        let mut walk = self.leases.shuffled();
        while let Some(port) = walk.next(&self.leases) {
            match self.stack.udp_bind(SocketAddr::new(address.ip(), port), &options) {
                Err(UdpError::InUse) => {}
                bound => return bound.map_err(|_| Errno::ADDRINUSE),
            }
        }
        Err(Errno::ADDRINUSE)
    }

    /// The datagram socket of a session; one that has no address gets a leased port (`inet_autobind`).
    pub(crate) fn bound_datagrams(&mut self, id: Id) -> Result<UdpId, Errno> {
        let session = self.get(id)?;
        if let Role::Datagrams(Some(socket)) = session.role {
            return Ok(socket);
        }
        let address: IpAddr = any(session.domain);
        // As Linux: autobind says EAGAIN when no port is left.
        let socket = self.bind_datagrams(id, SocketAddr::new(address, 0));
        let socket = socket.map_err(|_| Errno::AGAIN)?;
        self.become_role(id, Role::Datagrams(Some(socket)));
        Ok(socket)
    }
}

fn binding(session: &Session) -> Binding {
    Binding {
        reuse_address: session.settings.reuse_address,
        reuse_port: session.settings.reuse_port,
        v6_only: session.settings.v6_only,
        ..Binding::default()
    }
}

/// Options of a datagram socket, how it shares its address included.
pub(crate) fn datagram_options(session: &Session) -> UdpOptions {
    let settings = &session.settings;
    UdpOptions {
        share: settings.reuse_port,
        reuse_address: settings.reuse_address,
        v6_only: settings.v6_only,
        ..settings.datagrams.clone()
    }
}

fn refused(error: BindError) -> Errno {
    Errno(error.errno())
}
