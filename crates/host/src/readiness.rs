//! Readiness: what `poll` says of a socket, and which sockets something happened to.

use transport::{ByteFifo, ConnectionId, State};

use crate::errno::Errno;
use crate::mask::Mask;
use crate::session::{Id, Role};
use crate::sessions::Sessions;
use crate::settings::flag;

/// A session that something happened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Which.
    pub id: Id,
    /// What happened, as Linux wakes those who wait: an edge is for who waits for one of these bits. Some of
    /// them may not be in what [`Sessions::mask`] says now.
    pub woken: Mask,
}

impl Mask {
    /// What data that arrives wakes (`sock_def_readable`).
    pub(crate) const READABLE: Self =
        Self(Self::IN.0 | Self::PRI.0 | Self::RDNORM.0 | Self::RDBAND.0);
    /// What room that is there again wakes (`sk_stream_write_space`).
    pub(crate) const WRITABLE: Self = Self(Self::OUT.0 | Self::WRNORM.0 | Self::WRBAND.0);
}

impl Sessions {
    /// The next session that something happened to since it was told about last: an edge. What is ready and
    /// was told before is not told again; [`mask`](Self::mask) says it at any time.
    pub fn next_ready(&mut self) -> Option<Ready> {
        if self.woken.is_empty() {
            self.take_events();
        }
        loop {
            let id = self.woken.pop_front()?;
            let Ok(session) = self.get_mut(id) else { continue };
            // It may be another one than was woken, at the same place.
            if !std::mem::take(&mut session.queued) {
                continue;
            }
            return Some(Ready { id, woken: std::mem::take(&mut session.woken) });
        }
    }

    /// What `poll` says of a session; [`Mask::NONE`] when there is none. When it cannot be written to, the end
    /// of that will be told.
    pub fn mask(&mut self, id: Id) -> Mask {
        let Ok(session) = self.get(id) else { return Mask::NONE };
        let (shut, low_water) = (session.shut, session.settings.receive_low_water);
        let error = Mask::ERR.when(session.error != 0);
        match session.role {
            // tcp_poll: TCP_CLOSE.
            Role::Fresh | Role::Bound(_) => {
                let ended = (Mask::READ | Mask::RDHUP).when(shut.0);
                Mask::HUP | Mask::WRITE | ended | error
            }
            Role::Deferred => {
                let ended = (Mask::READ | Mask::RDHUP).when(shut.0);
                Mask::WRITE | ended | Mask::HUP.when(shut == (true, true))
            }
            Role::Listening(listener) => {
                let waiting = self.stack.backlog(listener).is_some_and(|queue| queue.waiting > 0);
                Mask::READ.when(waiting)
            }
            Role::Connection(connection) => {
                let mask = self.connection_mask(connection, low_water) | error;
                if !shut.1 {
                    return mask;
                }
                let is_settled = self.stack.state(connection) != Some(State::SynSent);
                mask | Mask::WRITE.when(is_settled) | Mask::HUP.when(mask.has(Mask::RDHUP))
            }
            Role::Datagrams(_) => self.datagram_mask(id),
        }
    }

    fn connection_mask(&mut self, connection: ConnectionId, low_water: u32) -> Mask {
        let now = self.stack.readiness(connection);
        let mut readable = now.readable;
        if low_water > 1 && readable && !now.peer_closed {
            readable = self.readable(connection) >= low_water as usize;
        }
        Mask::READ.when(readable)
            | Mask::WRITE.when(now.writable)
            | Mask::RDHUP.when(now.peer_closed)
            | Mask::HUP.when(now.hung_up)
            | Mask::ERR.when(now.error)
            | Mask::PRI.when(now.urgent)
    }

    /// Bytes of a connection that can be read.
    pub(crate) fn readable(&mut self, connection: ConnectionId) -> usize {
        self.stack.receive_fifo(connection).map_or(0, |fifo| fifo.len())
    }

    /// Bytes that can be read (`FIONREAD`); of datagrams, those of the first.
    ///
    /// # Errors
    /// [`Errno::INVAL`] of a socket that listens, [`Errno::BADF`].
    pub fn pending(&mut self, id: Id) -> Result<usize, Errno> {
        match self.get(id)?.role {
            // tcp_ioctl: TCP_LISTEN.
            Role::Listening(_) => Err(Errno::INVAL),
            Role::Connection(connection) => {
                let readable = self.readable(connection);
                // tcp_inq: up to urgent data that is not in the stream.
                let mark = self.stack.urgent(connection).filter(|mark| mark.has_arrived());
                let inline = self.get(id)?.settings.has(flag::URGENT_INLINE);
                Ok(mark.filter(|_| !inline).map_or(readable, |mark| mark.ahead))
            }
            Role::Datagrams(Some(socket)) => {
                let first = self.stack.udp_peek(socket, &mut []).ok().flatten();
                Ok(first.map_or(0, |head| head.length))
            }
            Role::Fresh | Role::Bound(_) | Role::Deferred | Role::Datagrams(None) => Ok(0),
        }
    }

    /// Whether urgent data is what is next (`SIOCATMARK`).
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn is_at_mark(&self, id: Id) -> Result<bool, Errno> {
        Ok(match self.get(id)?.role {
            Role::Connection(connection) => {
                self.stack.urgent(connection).is_some_and(|mark| mark.ahead == 0)
            }
            _ => false,
        })
    }

    /// Bytes that were written and not acknowledged (`SIOCOUTQ`), and those of them never sent (`SIOCOUTQNSD`).
    ///
    /// # Errors
    /// [`Errno::INVAL`] of a socket that listens, [`Errno::BADF`].
    pub fn unsent(&self, id: Id) -> Result<(usize, usize), Errno> {
        match self.get(id)?.role {
            Role::Listening(_) => Err(Errno::INVAL),
            Role::Connection(connection) => {
                let info = self.stack.info(connection);
                Ok(info.map_or((0, 0), |info| (info.queued as usize, info.unsent as usize)))
            }
            Role::Datagrams(_) => Ok((self.outbox.bytes_of(id), 0)),
            Role::Fresh | Role::Bound(_) | Role::Deferred => Ok((0, 0)),
        }
    }

    pub(crate) fn wake_connection(&mut self, connection: ConnectionId, cause: Mask) {
        let Some(id) = self.of_connection(connection) else { return };
        if cause == Mask::READABLE {
            let low_water = self.get(id).map_or(1, |session| session.settings.receive_low_water);
            // sock_data_ready: below the mark nobody is woken.
            if low_water > 1 && !self.connection_mask(connection, low_water).has(Mask::IN) {
                return;
            }
        }
        self.wake(id, cause);
    }

    /// Something happened to a session.
    pub(crate) fn wake(&mut self, id: Id, cause: Mask) {
        let Ok(session) = self.get_mut(id) else { return };
        session.woken |= cause;
        if !std::mem::replace(&mut session.queued, true) {
            self.woken.push_back(id);
        }
    }
}
