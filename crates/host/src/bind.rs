//! Binding a socket to an address.

use std::net::{IpAddr, SocketAddr};

use transport::{BindError, Binding, ListenerId, UdpError, UdpId};

use crate::address::{any, plain};
use crate::errno::Errno;
use crate::session::{Domain, Id, Role, Session};
use crate::sessions::Sessions;
use crate::settings::flag;

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
        if address.is_ipv4() && session.domain == Domain::V6 && session.settings.has(flag::V6_ONLY)
        {
            return Err(Errno::INVAL);
        }
        let later = address.port() == 0 && session.settings.has(flag::BIND_NO_PORT);
        let role = match session.role {
            role @ (Role::Fresh | Role::Datagrams(None)) if later && session.bound().is_none() => {
                role
            }
            Role::Fresh => Role::Bound(self.bind_stream(id, address)?),
            Role::Datagrams(None) => Role::Datagrams(Some(self.bind_datagrams(id, address)?)),
            _ => return Err(Errno::INVAL),
        };
        self.become_role(id, role);
        self.get_mut(id)?.rare().bound = Some(address);
        Ok(())
    }

    pub(crate) fn bind_stream(&mut self, id: Id, address: SocketAddr) -> Result<ListenerId, Errno> {
        let binding = binding(self.get(id)?);
        if address.port() != 0 {
            return self.stack.bind(address, &binding).map_err(refused);
        }
        let mut walk = self.leases.anywhere();
        while let Some(port) = walk.next(&mut self.leases) {
            match self.stack.bind(SocketAddr::new(address.ip(), port), &binding) {
                Err(BindError::InUse) => {}
                bound => return bound.map_err(refused),
            }
        }
        Err(Errno::ADDRINUSE)
    }

    fn bind_datagrams(&mut self, id: Id, address: SocketAddr) -> Result<UdpId, Errno> {
        let options = self.get(id)?.settings.datagrams.clone();
        if address.port() != 0 {
            return self.stack.udp_bind(address, &options).map_err(|_| Errno::ADDRINUSE);
        }
        let mut walk = self.leases.anywhere();
        while let Some(port) = walk.next(&mut self.leases) {
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
        let bound = session.bound().map(|bound| bound.ip());
        let address: IpAddr = bound.unwrap_or(any(session.domain));
        // As Linux: autobind says EAGAIN when no port is left.
        let socket = self.bind_datagrams(id, SocketAddr::new(address, 0));
        let socket = socket.map_err(|_| Errno::AGAIN)?;
        self.become_role(id, Role::Datagrams(Some(socket)));
        Ok(socket)
    }
}

fn binding(session: &Session) -> Binding {
    Binding {
        reuse_address: session.settings.has(flag::REUSE_ADDRESS),
        reuse_port: session.settings.has(flag::REUSE_PORT),
        v6_only: session.settings.has(flag::V6_ONLY),
        ..Binding::default()
    }
}

fn refused(error: BindError) -> Errno {
    Errno(error.errno())
}
