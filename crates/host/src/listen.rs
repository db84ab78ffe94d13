//! Listening and accepting.

use std::net::SocketAddr;
use std::sync::Arc;

use transport::Transport;

use crate::address::told;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::session::{Id, Progress, Role, Session};
use crate::sessions::Sessions;
use crate::settings::Settings;

/// `net.core.somaxconn`: connections that wait at most, whatever `listen` is told.
pub const SOMAXCONN: u32 = 4096;

impl Sessions {
    /// Has a bound stream listen; of one that listens only the backlog changes.
    ///
    /// # Errors
    /// [`Errno::OPNOTSUPP`] of datagrams; [`Errno::INVAL`] when it is connected, or not bound: the caller
    /// binds it first, since the port must be one that packets are steered by; [`Errno::ADDRINUSE`].
    pub fn listen(&mut self, id: Id, backlog: i32) -> Result<(), Errno> {
        let session = self.get(id)?;
        let listener = match session.role {
            Role::Bound(listener) | Role::Listening(listener) => listener,
            Role::Datagrams(_) => return Err(Errno::OPNOTSUPP),
            Role::Fresh | Role::Deferred | Role::Connection(_) => return Err(Errno::INVAL),
        };
        if session.progress != Progress::Unconnected {
            return Err(Errno::INVAL);
        }
        // sk_acceptq_is_full: one more than the backlog says waits.
        let most = (backlog as u32).min(SOMAXCONN) as usize + 1;
        let options = &session.settings.stream.clone();
        let listening = self.stack.listen_on(listener, most, options);
        listening.map_err(|error| Errno(error.errno()))?;
        self.become_role(id, Role::Listening(listener));
        Ok(())
    }

    /// Takes the connection that has waited longest as session `new`; gives its local and its remote address.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when none waits; [`Errno::INVAL`] when it does not listen; [`Errno::OPNOTSUPP`] of
    /// datagrams; [`Errno::EXIST`] when there is a session at `new`.
    pub fn accept(&mut self, listener: Id, new: Id) -> Result<(SocketAddr, SocketAddr), Errno> {
        let session = self.get(listener)?;
        let from = match session.role {
            Role::Listening(from) => from,
            Role::Datagrams(_) => return Err(Errno::OPNOTSUPP),
            _ => return Err(Errno::INVAL),
        };
        let domain = session.domain;
        let mut settings = Arc::clone(&session.settings);
        if self.has(new) {
            return Err(Errno::EXIST);
        }
        let connection = self.stack.accept(from).ok_or(Errno::AGAIN)?;
        let ends = Transport::ends(&self.stack, connection).ok_or(Errno::CONNABORTED)?;
        // The listener's options may have changed since the handshake.
        if let Some(own) = self.stack.options(connection).filter(|own| **own != settings.stream) {
            let changed = Settings { stream: own.clone(), ..Settings::clone(&settings) };
            settings = self.shelf.share(changed);
        }
        // sk_clone_lock: a listener's priority is its own.
        if settings.priority != 0 {
            let changed = Settings { priority: 0, ..Settings::clone(&settings) };
            settings = self.shelf.share(changed);
        }
        self.put(new, Session::new(domain, Role::Fresh, settings))?;
        self.become_role(new, Role::Connection(connection));
        self.get_mut(new)?.progress = Progress::Connected;
        self.settle_version(new);
        Ok((told(domain, ends.local), told(domain, ends.remote)))
    }

    /// Ends listening; the address stays bound (`tcp_disconnect` of a socket that listens).
    pub(crate) fn stop_listening(&mut self, id: Id) {
        let Ok(session) = self.get(id) else { return };
        if let Role::Listening(listener) = session.role {
            self.stack.close_listener(listener);
            self.return_to_bound(id);
            self.wake(id, Mask::ALL);
        }
    }

    /// A stream is no longer what it was: bound as the application has bound it, or fresh. A connection that
    /// it was is reset.
    pub(crate) fn return_to_bound(&mut self, id: Id) {
        let Ok(session) = self.get(id) else { return };
        let bound = session.bound().filter(|bound| bound.port() != 0);
        let role = session.role;
        let port = self.name(id).map_or(0, |name| name.port());
        if let Role::Connection(connection) = role {
            self.leaving += 1;
            self.stack.abort(connection);
            // tcp_disconnect: sk_error_report.
            self.wake(id, Mask::ERR);
        }
        let role = bound.and_then(|address| self.bind_stream(id, address).ok());
        self.become_role(id, role.map_or(Role::Fresh, Role::Bound));
        if let Ok(session) = self.get_mut(id) {
            session.progress = Progress::Unconnected;
            session.shut = (false, false);
            if role.is_none() && port != 0 {
                session.rare().port_before = port;
            }
        }
    }
}
