//! Data of streams (`tcp_recvmsg`, `tcp_sendmsg`).

use std::io::{IoSlice, IoSliceMut};

use transport::{ByteFifo, ConnectionId, SocketError, State, Write};

use crate::connect::target;
use crate::errno::Errno;
use crate::message::{Incoming, Outgoing, Received};
use crate::session::{Id, Progress, Role};
use crate::sessions::Sessions;
use crate::settings::flag;

impl Sessions {
    #[inline]
    pub(crate) fn recv_stream(
        &mut self,
        connection: ConnectionId,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        // tcp_recvmsg looks at MSG_ERRQUEUE first.
        if incoming.urgent && !incoming.errors {
            return self.recv_urgent(connection, targets, incoming);
        }
        let plain = incoming == Incoming::default();
        let bytes = match targets {
            [target] if plain && !target.is_empty() => {
                self.stack.recv(connection, target).map_err(failed)?
            }
            _ => self.recv_pieces(connection, targets, incoming)?,
        };
        if bytes > 0 {
            return Ok(Received { bytes, shape: None });
        }
        let wanted = targets.iter().any(|target| !target.is_empty());
        if self.stack.is_finished(connection) || !wanted && self.readable(connection) > 0 {
            return Ok(Received::default());
        }
        Err(Errno::AGAIN)
    }

    /// Whether all was read that came of a connection, and nothing more will come.
    pub(crate) fn has_ended(&self, id: Id) -> bool {
        let role = self.get(id).map(|session| session.role);
        matches!(role, Ok(Role::Connection(connection)) if self.stack.is_finished(connection))
    }

    /// 0: nothing is there.
    fn recv_pieces(
        &mut self,
        connection: ConnectionId,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<usize, Errno> {
        if incoming.errors {
            return Err(Errno::AGAIN);
        }
        let mut offset = if incoming.peek { incoming.offset } else { 0 };
        let mut left = self.readable(connection).saturating_sub(offset);
        if let Some(mark) = self.stack.urgent(connection) {
            if incoming.peek && mark.ahead == offset && !self.is_inline(connection) {
                (offset, left) = (offset + 1, left.saturating_sub(1));
            } else if mark.ahead > offset {
                left = left.min(mark.ahead - offset);
            } else if !incoming.peek {
                self.stack.pass_urgent(connection);
                left = self.readable(connection);
            }
        }
        if left == 0 {
            // Says why it failed, if it did.
            return self.stack.recv(connection, &mut []).map_err(failed);
        }
        if incoming.discard && !incoming.peek {
            let wanted: usize = targets.iter().map(|target| target.len()).sum();
            let count = wanted.min(left);
            if let Some(fifo) = self.stack.receive_fifo(connection) {
                fifo.consume(count);
            }
            self.stack.received(connection, count);
            return Ok(count);
        }
        let mut bytes = 0;
        for target in targets.iter_mut().filter(|target| !target.is_empty()) {
            if left == 0 {
                break;
            }
            let count = if incoming.discard {
                target.len().min(left)
            } else if incoming.peek {
                self.stack.peek(connection, offset + bytes, target).map_err(failed)?
            } else {
                self.stack.recv(connection, target).map_err(failed)?
            };
            bytes += count;
            left = left.saturating_sub(count);
        }
        Ok(bytes)
    }

    /// Whether urgent data stays in the stream (`SO_OOBINLINE`).
    fn is_inline(&self, connection: ConnectionId) -> bool {
        self.stack.options(connection).is_none_or(|options| options.urgent_inline)
    }

    /// `tcp_recv_urg`: never waits.
    fn recv_urgent(
        &mut self,
        connection: ConnectionId,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        let taken = self.stack.take_urgent(connection, incoming.peek);
        let Some(byte) = taken.map_err(|error| Errno(error.errno()))? else {
            let ended = self.stack.readiness(connection).peer_closed;
            return if ended { Ok(Received::default()) } else { Err(Errno::AGAIN) };
        };
        let place = targets.iter_mut().find_map(|target| target.first_mut());
        let bytes = usize::from(place.is_some());
        if let Some(place) = place.filter(|_| !incoming.discard) {
            *place = byte;
        }
        Ok(Received { bytes, shape: None })
    }

    /// A stream of which something rare is known: `SO_PEEK_OFF` may be set.
    pub(crate) fn recv_from_offset(
        &mut self,
        id: Id,
        connection: ConnectionId,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        let rare = self.get(id)?.rare.as_ref();
        let offset = rare.and_then(|rare| rare.peek_offset);
        let Some(offset) = offset.and_then(|offset| usize::try_from(offset).ok()) else {
            return self.recv_stream(connection, targets, incoming);
        };
        let beyond = if incoming.peek { incoming.offset + offset } else { 0 };
        let received =
            self.recv_stream(connection, targets, Incoming { offset: beyond, ..incoming })?;
        // sk_peek_offset_fwd, sk_peek_offset_bwd.
        let next = if incoming.peek {
            offset + received.bytes
        } else {
            offset.saturating_sub(received.bytes)
        };
        self.get_mut(id)?.rare().peek_offset = Some(i32::try_from(next).unwrap_or(i32::MAX));
        Ok(received)
    }

    /// A stream that is not connected.
    pub(crate) fn recv_unconnected(&mut self, id: Id) -> Result<Received, Errno> {
        let session = self.get_mut(id)?;
        match session.role {
            Role::Deferred if !session.shut.0 => return Err(Errno::AGAIN),
            Role::Listening(_) => return Err(Errno::NOTCONN),
            _ => session.take_error()?,
        }
        if session.shut.0 { Ok(Received::default()) } else { Err(Errno::NOTCONN) }
    }

    #[inline]
    pub(crate) fn send_stream(
        &mut self,
        id: Id,
        connection: ConnectionId,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        let session = self.get(id)?;
        let is_mute = session.shut.1;
        if session.progress == Progress::Connecting {
            // sk_stream_wait_connect.
            let state = self.stack.state(connection);
            if matches!(state, Some(State::SynSent | State::SynReceived)) {
                return Err(Errno::AGAIN);
            }
        }
        if is_mute {
            // Says why it failed, if it did.
            self.stack.send(connection, &[]).map_err(failed)?;
            return Err(Errno::PIPE);
        }
        self.write(connection, data, outgoing)
    }

    /// Writes, before the connection is established too.
    #[inline]
    fn write(
        &mut self,
        connection: ConnectionId,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        if let [piece] = data {
            let write = Write {
                more: outgoing.more,
                end_of_record: outgoing.end_of_record,
                urgent: outgoing.urgent,
            };
            let taken = self.stack.send_with(connection, piece, write).map_err(failed)?;
            return if taken == 0 && !piece.is_empty() { Err(Errno::AGAIN) } else { Ok(taken) };
        }
        let (mut taken, mut wanted) = (0, 0);
        let last = data.len().saturating_sub(1);
        for (place, piece) in data.iter().enumerate() {
            let whole = place == last;
            let write = Write {
                more: outgoing.more || !whole,
                end_of_record: outgoing.end_of_record && whole,
                urgent: outgoing.urgent,
            };
            let count = self.stack.send_with(connection, piece, write).map_err(failed)?;
            (taken, wanted) = (taken + count, wanted + piece.len());
            if count < piece.len() {
                break;
            }
        }
        if data.is_empty() {
            self.stack.send(connection, &[]).map_err(failed)?;
        }
        if taken == 0 && wanted > 0 { Err(Errno::AGAIN) } else { Ok(taken) }
    }

    /// A stream that is not connected.
    pub(crate) fn send_unconnected(&mut self, id: Id) -> Result<usize, Errno> {
        self.get_mut(id)?.take_error()?;
        Err(Errno::PIPE)
    }

    /// The first data of a connect that has waited for it, as it still does when there is no port to connect from.
    pub(crate) fn send_deferred(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        let deferred = self.get(id)?.rare.as_ref().and_then(|rare| rare.deferred);
        let (source, remote) = deferred.ok_or(Errno::NOTCONN)?;
        let shut = self.get(id)?.shut;
        self.return_to_bound(id);
        // It is connected, not disconnected.
        self.get_mut(id)?.shut = shut;
        let begun = self.begin(id, source, remote);
        if begun == Err(Errno::ADDRNOTAVAIL) {
            self.become_role(id, Role::Deferred);
            self.get_mut(id)?.progress = Progress::Connecting;
        }
        self.write(begun?, data, outgoing)
    }

    /// `MSG_FASTOPEN`: connects and sends in one.
    pub(crate) fn send_opening(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        let session = self.get(id)?;
        match session.role {
            Role::Fresh | Role::Bound(_) => {}
            Role::Listening(_) => return Err(Errno::ISCONN),
            // tcp_sendmsg_fastopen: already under way.
            _ if session.progress == Progress::Connecting => return Err(Errno::ALREADY),
            Role::Connection(connection) => {
                return self.send_stream(id, connection, data, outgoing);
            }
            Role::Deferred | Role::Datagrams(_) => return Err(Errno::ALREADY),
        }
        let remote = outgoing.to.ok_or(Errno::DESTADDRREQ)?;
        let remote = target(session.domain, session.settings.has(flag::V6_ONLY), remote)?;
        let source = outgoing.source.ok_or(Errno::NETUNREACH)?;
        let mut options = session.settings.stream.clone();
        options.fast_open = true;
        let room = self.stack.fast_open_room(self.now, remote.ip(), &options);
        let connection = self.begin_with(id, source, remote, &options)?;
        if room == 0 {
            // No cookie yet: an ordinary connect.
            return Err(Errno::INPROGRESS);
        }
        self.write(connection, data, outgoing)
    }
}

/// Why a stream's call was refused.
fn failed(error: SocketError) -> Errno {
    match error {
        SocketError::Gone => Errno::PIPE,
        SocketError::Failed(failure) => failure.into(),
        error => Errno(error.errno()),
    }
}
