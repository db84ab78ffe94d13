//! Ending: shutdown, close, reset.

use transport::{ConnectionId, State};

use crate::errno::Errno;
use crate::mask::Mask;
use crate::session::{How, Id, Progress, Role};
use crate::sessions::Sessions;

/// A connection that was closed with `SO_LINGER`: the application waits for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lingering {
    pub(crate) connection: ConnectionId,
    /// How long the application waits at most: ns.
    pub timeout: u64,
}

impl Sessions {
    /// Ends one or both directions (`inet_shutdown`).
    ///
    /// # Errors
    /// [`Errno::NOTCONN`]; readiness changes nevertheless, as Linux has it.
    pub fn shutdown(&mut self, id: Id, how: How) -> Result<(), Errno> {
        let session = self.get_mut(id)?;
        match session.role {
            Role::Connection(connection) => self.shutdown_connection(id, connection, how),
            Role::Listening(_) => {
                if how.reads() {
                    self.stop_listening(id);
                }
                Ok(())
            }
            Role::Deferred => self.disconnect(id),
            Role::Fresh | Role::Bound(_) | Role::Datagrams(_) => {
                session.shut.0 |= how.reads();
                session.shut.1 |= how.writes();
                self.wake(id, Mask::ALL);
                if self.has_peer(id) { Ok(()) } else { Err(Errno::NOTCONN) }
            }
        }
    }

    /// Whether it sends nothing: that was shut down before it was connected, of which the peer is not told.
    pub(crate) fn is_mute(&self, id: Id) -> bool {
        self.get(id).is_ok_and(|session| session.shut.1)
    }

    fn shutdown_connection(
        &mut self,
        id: Id,
        connection: ConnectionId,
        how: How,
    ) -> Result<(), Errno> {
        let state = self.stack.state(connection).unwrap_or_default();
        let over = matches!(state, State::Closed | State::TimeWait);
        let session = self.get_mut(id)?;
        if session.progress == Progress::Connecting {
            session.progress = match state {
                State::SynSent | State::SynReceived => Progress::Disconnecting,
                _ if over => Progress::Disconnecting,
                _ => Progress::Connected,
            };
        }
        if state == State::SynSent {
            self.disconnect(id)?;
            self.wake(id, Mask::ALL);
            return Ok(());
        }
        if !over {
            let read = how.reads().then(|| self.stack.shutdown_receive(connection));
            let write = how.writes().then(|| self.stack.shutdown(connection));
            for error in [read, write].into_iter().flatten() {
                error.map_err(|error| Errno(error.errno()))?;
            }
        }
        self.wake(id, Mask::ALL);
        if over { Err(Errno::NOTCONN) } else { Ok(()) }
    }

    /// What whoever closes a session has to wait for (`SO_LINGER`), as long as [`is_lingering`](Self::is_lingering) says so.
    pub(crate) fn lingering(&self, id: Id) -> Option<Lingering> {
        let session = self.get(id).ok()?;
        let timeout = session.settings.stream.linger.filter(|timeout| *timeout > 0)?;
        match session.role {
            Role::Connection(connection) => Some(Lingering { connection, timeout }),
            _ => None,
        }
    }

    /// Whether closing a session resets its connection (`tcp_close`): by `SO_LINGER` of 0, or as data was not read.
    pub(crate) fn ends_with_reset(&mut self, id: Id) -> bool {
        let Ok(session) = self.get(id) else { return false };
        let Role::Connection(connection) = session.role else { return false };
        session.settings.stream.linger == Some(0) || self.readable(connection) > 0
    }

    /// Closes a session; what was written is still sent, by later turns. Gives what the application has to
    /// wait for when it lingers (`SO_LINGER`): turn until [`is_lingering`](Self::is_lingering) ends, at most
    /// for the time-out.
    pub fn close(&mut self, id: Id) -> Option<Lingering> {
        let lingering = self.lingering(id);
        match self.remove(id)?.role {
            Role::Connection(connection) => {
                self.leaving += 1;
                self.stack.close(connection);
                lingering.filter(|lingering| self.is_lingering(lingering))
            }
            Role::Bound(listener) | Role::Listening(listener) => {
                self.stack.close_listener(listener);
                None
            }
            Role::Datagrams(Some(socket)) => {
                self.stack.udp_close(socket);
                self.outbox.forget(id);
                None
            }
            Role::Fresh | Role::Deferred | Role::Datagrams(None) => None,
        }
    }

    /// Whether the peer has not acknowledged all yet (`sk_stream_wait_close`).
    #[must_use]
    pub fn is_lingering(&self, lingering: &Lingering) -> bool {
        use State::{CloseWait, Closing, Established, FinWait1, LastAck, SynReceived};
        matches!(
            self.stack.state(lingering.connection),
            Some(Established | SynReceived | CloseWait | FinWait1 | Closing | LastAck)
        )
    }

    /// Answers nothing with a reset until `until`: ns. For a listener that closes while others serve the same address:
    /// what still comes here for it is sent again, and comes to them.
    pub fn keep_quiet(&mut self, until: u64) {
        self.stack.keep_quiet(until);
    }

    /// The same until [`keep_quiet`](Self::keep_quiet) says otherwise. For a connection that is about to come: its packets may be here
    /// first.
    pub fn fall_quiet(&mut self) {
        self.keep_quiet(u64::MAX);
    }

    /// The same for one port: a listener there has closed, and all other ports go on.
    pub fn spare_resets(&mut self, port: u16, until: u64) {
        self.stack.spare_resets(port, until);
    }

    /// Closes a session; a connection is reset.
    pub fn abort(&mut self, id: Id) {
        match self.get(id).map(|session| session.role) {
            Ok(Role::Connection(connection)) => {
                self.remove(id);
                self.leaving += 1;
                self.stack.abort(connection);
            }
            _ => {
                self.close(id);
            }
        }
    }
}
