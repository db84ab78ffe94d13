//! The peer that a socket is connected to.

use std::net::{IpAddr, SocketAddr};

use super::{destination, refused};
use crate::address::any;
use crate::errno::Errno;
use crate::session::{Domain, Id, Role};
use crate::sessions::Sessions;

/// Ports that are tried for a socket that is connected without one.
const ATTEMPTS: usize = 64;

impl Sessions {
    pub(crate) fn connect_datagrams(
        &mut self,
        id: Id,
        source: IpAddr,
        remote: SocketAddr,
    ) -> Result<(), Errno> {
        let session = self.get(id)?;
        let remote = destination(session, remote, Errno::AFNOSUPPORT)?;
        let had_port = matches!(session.role, Role::Datagrams(Some(_)));
        for _ in 1..ATTEMPTS {
            match self.connect_once(id, source, remote) {
                // Another socket of this stack talks to that peer from the port that was chosen.
                Err(Errno::ADDRINUSE) if !had_port => self.give_port_back(id),
                done => return done,
            }
        }
        self.connect_once(id, source, remote)
    }

    fn give_port_back(&mut self, id: Id) {
        if let Ok(Role::Datagrams(Some(socket))) = self.get(id).map(|session| session.role) {
            self.stack.udp_close(socket);
            self.become_role(id, Role::Datagrams(None));
        }
    }

    fn connect_once(&mut self, id: Id, source: IpAddr, remote: SocketAddr) -> Result<(), Errno> {
        let socket = self.bound_datagrams(id)?;
        let (local, _) = self.stack.udp_ends(socket).ok_or(Errno::BADF)?;
        // A source that an earlier connect has settled stays.
        let own =
            Some(local.ip()).filter(|ip| !ip.is_unspecified() && ip.is_ipv4() == remote.is_ipv4());
        let source = own.unwrap_or(source.to_canonical());
        let nowhere = remote.port() == 0;
        if nowhere || self.get(id)?.rare.is_some() {
            self.get_mut(id)?.rare().source = nowhere.then_some(source);
        }
        if nowhere {
            // As resolvers do to learn the source towards an address.
            return self.stack.udp_disconnect(socket).map_err(refused);
        }
        self.stack.udp_connect(socket, source, remote).map_err(refused)
    }

    pub(crate) fn disconnect_datagrams(&mut self, id: Id) -> Result<(), Errno> {
        let session = self.get(id)?;
        let Role::Datagrams(Some(socket)) = session.role else { return Ok(()) };
        let (domain, bound) = (session.domain, session.bound());
        self.stack.udp_disconnect(socket).map_err(refused)?;
        if let Some(rare) = &mut self.get_mut(id)?.rare {
            rare.source = None;
        }
        match bound {
            None => {
                // Linux gives a port back that nobody asked for.
                self.stack.udp_close(socket);
                self.become_role(id, Role::Datagrams(None));
            }
            Some(bound) if bound.port() == 0 => {
                self.stack.udp_close(socket);
                self.become_role(id, Role::Datagrams(None));
            }
            Some(bound) if bound.ip().is_unspecified() => {
                let any = if bound.is_ipv4() { any(Domain::V4) } else { any(domain) };
                self.stack.udp_widen(socket, any).map_err(refused)?;
            }
            Some(_) => {}
        }
        Ok(())
    }
}
