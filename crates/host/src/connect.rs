//! Connecting: Linux's `__inet_stream_connect`, for calls that never wait.

use std::net::{IpAddr, SocketAddr};

use transport::{ConnectError, ConnectionId, Options, State};

use crate::address::plain;
use crate::errno::Errno;
use crate::session::{Domain, Id, Kind, Progress, Role};
use crate::sessions::Sessions;
use crate::settings::flag;

impl Sessions {
    /// `count` ports from `first` on may be used for connections that are opened from here.
    pub fn add_ports(&mut self, first: u16, count: u16) {
        self.leases.add(first, count);
    }

    /// The ranges of ports that may be used: the first of each, and how many.
    #[must_use]
    pub fn ports(&self) -> &[(u16, u16)] {
        self.leases.ranges()
    }

    /// The range that begins at `first` must not be used for new connections any more.
    pub fn remove_ports(&mut self, first: u16) {
        self.leases.remove(first);
    }

    /// Opens a connection, or says how that goes on; sets the peer of a socket for datagrams. `source`: the
    /// address towards `remote`, unless the socket is bound to one.
    ///
    /// # Errors
    /// Of a stream [`Errno::INPROGRESS`] when it has begun, [`Errno::ALREADY`] while it goes on, why it failed
    /// once, then it begins anew; [`Errno::ISCONN`]; [`Errno::ADDRNOTAVAIL`] when no leased port is free:
    /// lease more and call again; [`Errno::AFNOSUPPORT`], [`Errno::NETUNREACH`], [`Errno::INVAL`],
    /// [`Errno::NOBUFS`]. `Ok`: the connection is established, or waits for the first data (Fast Open).
    pub fn connect(
        &mut self,
        id: Id,
        now: u64,
        source: IpAddr,
        remote: SocketAddr,
    ) -> Result<(), Errno> {
        self.now = self.now.max(now);
        let session = self.get(id)?;
        if session.kind() == Kind::Datagram {
            return self.connect_datagrams(id, source, remote);
        }
        match session.progress {
            Progress::Disconnecting => Err(Errno::INVAL),
            Progress::Connected => Err(Errno::ISCONN),
            Progress::Connecting => self.conclude(id),
            Progress::Unconnected => {
                if !matches!(session.role, Role::Fresh | Role::Bound(_)) {
                    return Err(Errno::ISCONN);
                }
                let remote = target(session.domain, session.settings.has(flag::V6_ONLY), remote)?;
                // One that is bound connects at once, as it does without a cookie.
                let deferred =
                    session.settings.has(flag::FAST_OPEN_CONNECT) && session.role == Role::Fresh;
                let options = &session.settings.stream;
                if deferred && self.stack.fast_open_room(self.now, remote.ip(), options) > 0 {
                    self.get_mut(id)?.rare().deferred = Some((source, remote));
                    self.become_role(id, Role::Deferred);
                    self.get_mut(id)?.progress = Progress::Connecting;
                    return Ok(());
                }
                self.begin(id, source, remote)?;
                Err(Errno::INPROGRESS)
            }
        }
    }

    /// How a connect that has begun goes on.
    fn conclude(&mut self, id: Id) -> Result<(), Errno> {
        let connection = match self.get(id)?.role {
            Role::Connection(connection) => connection,
            // As Linux with TCP_FASTOPEN_CONNECT.
            _ => return Err(Errno::ISCONN),
        };
        match self.stack.state(connection) {
            Some(State::SynSent | State::SynReceived) => Err(Errno::ALREADY),
            None | Some(State::Closed | State::TimeWait) => {
                let failure = self.stack.take_error(connection);
                let error = failure.map_or(Errno::CONNABORTED, Errno::from);
                self.return_to_bound(id);
                Err(error)
            }
            Some(_) => {
                self.get_mut(id)?.progress = Progress::Connected;
                Ok(())
            }
        }
    }

    /// `connect` has said that a connection is established, for a process that saw so itself.
    pub(crate) fn note_connected(&mut self, id: Id) {
        let Ok(session) = self.get_mut(id) else { return };
        if session.progress == Progress::Connecting && matches!(session.role, Role::Connection(_)) {
            session.progress = Progress::Connected;
        }
    }

    /// Whether it is a stream that is neither connected nor about to be, and does not listen.
    pub(crate) fn is_closed(&self, id: Id) -> bool {
        let role = self.get(id).map(|session| session.role);
        matches!(role, Ok(Role::Fresh | Role::Bound(_)))
    }

    /// Sends a SYN.
    pub(crate) fn begin(
        &mut self,
        id: Id,
        source: IpAddr,
        remote: SocketAddr,
    ) -> Result<ConnectionId, Errno> {
        let options = self.get(id)?.settings.stream.clone();
        self.begin_with(id, source, remote, &options)
    }

    /// The same, with other options than the socket's.
    pub(crate) fn begin_with(
        &mut self,
        id: Id,
        source: IpAddr,
        remote: SocketAddr,
        options: &Options,
    ) -> Result<ConnectionId, Errno> {
        let connection = self.open_from(id, source.to_canonical(), remote, options)?;
        self.become_role(id, Role::Connection(connection));
        let session = self.get_mut(id)?;
        session.progress = Progress::Connecting;
        session.error = 0;
        if session.shut.0 {
            // inet_shutdown has set sk_shutdown, and the peer is told nothing.
            let _ = self.stack.shutdown_receive(connection);
        }
        self.settle_version(id);
        Ok(connection)
    }

    fn open_from(
        &mut self,
        id: Id,
        source: IpAddr,
        remote: SocketAddr,
        options: &Options,
    ) -> Result<ConnectionId, Errno> {
        let (now, session) = (self.now, self.get(id)?);
        if remote.port() == 0 {
            // Nobody can listen there; the peer would say so.
            return Err(Errno::CONNREFUSED);
        }
        if let Role::Bound(bound) = session.role {
            let own = session.bound().map(|address| address.ip());
            let local = own.filter(|ip| !ip.is_unspecified()).unwrap_or(source);
            return self.stack.connect_from(now, bound, local, remote, options).map_err(refused);
        }
        // Bound without a port.
        let own = session.bound().map(|address| address.ip());
        let source = own.filter(|ip| !ip.is_unspecified()).unwrap_or(source);
        let mut walk = self.leases.towards(source, remote);
        while let Some(port) = walk.next(&mut self.leases) {
            if port == remote.port() && source == remote.ip() {
                // It would be its own peer.
                continue;
            }
            match self.stack.connect(now, source, port, remote, options) {
                Err(ConnectError::InUse) => {}
                opened => return opened.map_err(refused),
            }
        }
        Err(Errno::ADDRNOTAVAIL)
    }

    /// Ends a connection, or listening, at once (`connect` to `AF_UNSPEC`); the socket can be used again. Of
    /// datagrams, forgets the peer.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn disconnect(&mut self, id: Id) -> Result<(), Errno> {
        match self.get(id)?.role {
            Role::Fresh | Role::Bound(_) => self.get_mut(id)?.shut = (false, false),
            Role::Listening(_) => self.stop_listening(id),
            Role::Deferred => {
                self.return_to_bound(id);
                self.get_mut(id)?.error = Errno::CONNRESET.0;
            }
            Role::Connection(connection) => {
                let over = match self.stack.state(connection) {
                    None | Some(State::Closed | State::TimeWait) => true,
                    Some(State::LastAck | State::Closing) => {
                        self.stack.info(connection).is_none_or(|info| info.unsent == 0)
                    }
                    Some(_) => false,
                };
                self.return_to_bound(id);
                // tcp_disconnect.
                self.get_mut(id)?.error = if over { 0 } else { Errno::CONNRESET.0 };
            }
            Role::Datagrams(_) => self.disconnect_datagrams(id)?,
        }
        self.get_mut(id)?.progress = Progress::Unconnected;
        Ok(())
    }
}

/// Where a stream of this domain connects to when it is told an address.
pub(crate) fn target(
    domain: Domain,
    v6_only: bool,
    remote: SocketAddr,
) -> Result<SocketAddr, Errno> {
    if remote.is_ipv4() != (domain == Domain::V4) {
        return Err(Errno::AFNOSUPPORT);
    }
    let address = plain(remote);
    if address.is_ipv4() && domain == Domain::V6 && v6_only {
        return Err(Errno::NETUNREACH);
    }
    Ok(address)
}

fn refused(error: ConnectError) -> Errno {
    Errno(error.errno())
}
