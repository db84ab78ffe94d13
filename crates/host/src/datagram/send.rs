//! Sending datagrams (`udp_sendmsg`).

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;

use transport::{Message, Sink, UdpId, UdpOptions};

use super::{LONGEST, destination, refused};
use crate::address::plain;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::Outgoing;
use crate::session::{Domain, Id, Role};
use crate::sessions::Sessions;
use crate::settings::flag;

impl Sessions {
    /// Sends what a call has taken over before. An error that waited goes on waiting, and a new one is for the next call.
    pub(crate) fn send_taken(
        &mut self,
        id: Id,
        data: &[u8],
        outgoing: Outgoing,
    ) -> Result<(), Errno> {
        let error = std::mem::take(&mut self.get_mut(id)?.error);
        let sent = self.send_datagram(id, &[IoSlice::new(data)], outgoing);
        let failed = sent.err().filter(|failed| *failed != Errno::AGAIN);
        self.get_mut(id)?.error = failed.map_or(error, |failed| failed.0);
        if failed.is_some() {
            self.wake(id, Mask::ERR);
        }
        if sent == Err(Errno::AGAIN) { Err(Errno::AGAIN) } else { Ok(()) }
    }

    pub(crate) fn send_datagram(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        let length: usize = data.iter().map(|piece| piece.len()).sum();
        if length > LONGEST {
            return Err(Errno::MSGSIZE);
        }
        let session = self.get(id)?;
        // udp_sendmsg; udpv6_sendmsg ignores it.
        let four = outgoing.to.map_or(session.domain == Domain::V4, |to| plain(to).is_ipv4());
        if outgoing.urgent && four {
            return Err(Errno::OPNOTSUPP);
        }
        let more = outgoing.more || session.settings.has(flag::CORK);
        let to = if self.is_corked(id) { None } else { self.destined(id, outgoing.to)? };
        let socket = self.bound_datagrams(id)?;
        let session = self.get_mut(id)?;
        // sock_alloc_send_pskb.
        session.take_error()?;
        if session.shut.1 {
            return Err(Errno::PIPE);
        }
        let room = session.settings.buffers.1 as usize;
        if self.outbox.bytes_of(id) >= room {
            self.outbox.starve(id);
            return Err(Errno::AGAIN);
        }
        if more || self.is_corked(id) {
            self.append(id, data, to, outgoing)?;
            if !more {
                self.push(id)?;
            }
            return Ok(length);
        }
        match data {
            [piece] => self.emit(id, socket, piece, to, outgoing)?,
            _ => {
                let mut scratch = std::mem::take(&mut self.scratch);
                scratch.clear();
                data.iter().for_each(|piece| scratch.extend_from_slice(piece));
                let sent = self.emit(id, socket, &scratch, to, outgoing);
                self.scratch = scratch;
                sent?;
            }
        }
        Ok(length)
    }

    /// Where a datagram goes; `None`: to the peer.
    fn destined(&self, id: Id, to: Option<SocketAddr>) -> Result<Option<SocketAddr>, Errno> {
        let session = self.get(id)?;
        match to {
            Some(to) => match destination(session, to, Errno::NETUNREACH)? {
                to if to.port() == 0 => Err(Errno::INVAL),
                to => Ok(Some(to)),
            },
            None if self.has_peer(id) => Ok(None),
            None => Err(Errno::DESTADDRREQ),
        }
    }

    /// Sends the datagram that was written in pieces, if there is one.
    pub(crate) fn push(&mut self, id: Id) -> Result<(), Errno> {
        let Some(corked) = self.uncork(id) else { return Ok(()) };
        let Role::Datagrams(Some(socket)) = self.get(id)?.role else { return Ok(()) };
        self.emit(id, socket, &corked.bytes, corked.to, corked.outgoing)
    }

    fn emit(
        &mut self,
        id: Id,
        socket: UdpId,
        data: &[u8],
        to: Option<SocketAddr>,
        outgoing: Outgoing,
    ) -> Result<(), Errno> {
        let settings = Arc::clone(&self.get(id)?.settings);
        let segment = settings.segment;
        let (local, peer) = self.stack.udp_ends(socket).ok_or(Errno::BADF)?;
        let remote = to.or(peer).ok_or(Errno::DESTADDRREQ)?;
        let source = outgoing.source.map(|source| source.to_canonical());
        let from = source.filter(|_| local.ip().is_unspecified() || to.is_some());
        let from = from.filter(|from| local.ip().is_unspecified() || *from == local.ip());
        let segment_size = if outgoing.segment_size == 0 { segment } else { outgoing.segment_size };
        if let Err(error) = self.admit(id, data.len(), segment_size, remote.ip()) {
            if error == Errno::MSGSIZE && segment_size == 0 {
                self.note_refusal(id, to, remote);
            }
            return Err(error);
        }
        let ecn = outgoing.service.map(|service| service & 3);
        let message = Message { to, from, data, segment_size, ecn };
        // This one alone may have another code point, or live longer.
        let usual = &settings.datagrams;
        let dscp = outgoing.service.map_or(usual.dscp, |service| service >> 2);
        let ttl = outgoing.ttl.unwrap_or(usual.ttl);
        let multicast_ttl = outgoing.ttl.unwrap_or(usual.multicast_ttl);
        let options = UdpOptions { dscp, ttl, multicast_ttl, ..usual.clone() };
        let is_other = options != *usual;
        if is_other {
            self.stack.udp_set_options(socket, &options).map_err(refused)?;
        }
        let sink = self.outbox.of(id);
        let sent = self.stack.udp_send(self.now, socket, &message, sink);
        if is_other {
            self.stack.udp_set_options(socket, &settings.datagrams).map_err(refused)?;
        }
        sent.map(|_| ()).map_err(refused)
    }

    /// Sends the datagrams that wait, as far as there is room.
    pub(crate) fn flush_datagrams<S: Sink + ?Sized>(&mut self, sink: &mut S) {
        if self.outbox.drain(sink) {
            while let Some(id) = self.outbox.next_starved() {
                self.wake(id, Mask::WRITABLE);
            }
        }
    }
}
