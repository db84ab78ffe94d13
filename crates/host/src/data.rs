//! Receiving and sending, whatever the kind of socket.

use std::io::{IoSlice, IoSliceMut};

use crate::errno::Errno;
use crate::message::{Incoming, Outgoing, Received};
use crate::session::{Id, Role};
use crate::sessions::Sessions;

impl Sessions {
    /// Receives into the targets, one after the other. 0 bytes of a stream are its end, unless none were asked
    /// for.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when nothing has come; why a connection failed, once; [`Errno::NOTCONN`],
    /// [`Errno::INVAL`] for urgent data where there is none; [`Errno::BADF`].
    #[inline]
    pub fn recv(
        &mut self,
        id: Id,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        let session = self.get(id)?;
        match session.role {
            Role::Connection(connection) if session.rare.is_none() => {
                self.recv_stream(connection, targets, incoming)
            }
            Role::Connection(connection) => {
                self.recv_from_offset(id, connection, targets, incoming)
            }
            Role::Datagrams(socket) => self.recv_datagram(id, socket, targets, incoming),
            _ => self.recv_unconnected(id),
        }
    }

    /// Sends the pieces, one behind the other; gives how many bytes were taken: of a stream as many as there
    /// is room for, of a datagram all. They leave with the next turn.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when there is no room, or the connection is not established yet; [`Errno::PIPE`], for
    /// which the caller raises `SIGPIPE`, of streams; why a connection failed, once;
    /// [`Errno::ADDRNOTAVAIL`] as of [`connect`](Self::connect) where that has waited for data. Of datagrams
    /// [`Errno::DESTADDRREQ`], [`Errno::MSGSIZE`], [`Errno::ACCES`] (broadcast), [`Errno::NETUNREACH`],
    /// [`Errno::INVAL`], [`Errno::AFNOSUPPORT`]. [`Errno::OPNOTSUPP`] for urgent datagrams. [`Errno::BADF`].
    #[inline]
    pub fn send(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        match self.get(id)?.role {
            Role::Datagrams(_) => self.send_datagram(id, data, outgoing),
            _ if outgoing.fast_open => self.send_opening(id, data, outgoing),
            Role::Connection(connection) => self.send_stream(id, connection, data, outgoing),
            Role::Deferred => self.send_deferred(id, data, outgoing),
            _ => self.send_unconnected(id),
        }
    }
}
