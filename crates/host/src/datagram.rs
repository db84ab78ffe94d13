//! Datagrams (`udp_sendmsg`, `udp_recvmsg`).

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use transport::udp::Received as Head;
use transport::{Message, Run, Sink, UdpError, UdpId, UdpOptions, UdpTrouble};

use crate::address::{any, plain, told};
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::{Incoming, Outgoing, Received, Shape};
use crate::session::{Domain, Id, Role, Session};
use crate::sessions::Sessions;
use crate::settings::flag;

/// Ports that are tried for a socket that is connected without one.
const ATTEMPTS: usize = 64;
/// Longest datagram: bytes of data.
pub(crate) const LONGEST: usize = 65_535;

/// How datagrams are taken.
#[derive(Debug, Clone, Copy)]
enum Way {
    One,
    /// One that stays.
    Peek,
    /// One, with those behind it that are alike (`UDP_GRO`).
    Gather,
}

/// What was taken.
struct Taken {
    head: Head,
    bytes: usize,
    /// Of several: bytes of each; 0: it is one.
    segment_size: u16,
}

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

    pub(crate) fn recv_datagram(
        &mut self,
        id: Id,
        socket: Option<UdpId>,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        if incoming.errors {
            return self.recv_report(id, socket, targets);
        }
        self.get_mut(id)?.take_error()?;
        self.take_datagram(id, targets, incoming.peek)
    }

    /// The first datagram, whatever error waits to be told.
    pub(crate) fn take_datagram(
        &mut self,
        id: Id,
        targets: &mut [IoSliceMut<'_>],
        peeks: bool,
    ) -> Result<Received, Errno> {
        let session = self.get(id)?;
        let domain = session.domain;
        let way = match peeks {
            true => Way::Peek,
            false if session.settings.has(flag::GATHERED) => Way::Gather,
            false => Way::One,
        };
        let Role::Datagrams(Some(socket)) = session.role else { return Err(Errno::AGAIN) };
        let Taken { head, bytes, segment_size } = match targets {
            [target] => self.take(socket, target, way)?,
            _ => self.scatter(socket, targets, way)?,
        };
        let shape = Shape {
            length: head.length,
            from: told(domain, head.from),
            to: told(domain, head.to),
            ttl: head.ttl,
            service: head.service,
            segment_size,
            at: head.at,
            report: None,
        };
        Ok(Received { bytes, shape: Some(shape) })
    }

    fn take(&mut self, socket: UdpId, target: &mut [u8], way: Way) -> Result<Taken, Errno> {
        let one = |head: Head, room: usize| {
            let bytes = head.length.min(room);
            Taken { head, bytes, segment_size: 0 }
        };
        let room = target.len();
        let taken = match way {
            Way::Peek => {
                self.stack.udp_peek(socket, target).map(|head| head.map(|it| one(it, room)))
            }
            Way::One => {
                self.stack.udp_recv(socket, target).map(|head| head.map(|it| one(it, room)))
            }
            Way::Gather => self.stack.udp_recv_run(socket, target).map(|run| {
                run.map(|Run { first, count, copied }| match count {
                    1 => one(first, room),
                    _ => {
                        let head = Head { length: copied, ..first };
                        Taken { head, bytes: copied, segment_size: first.length as u16 }
                    }
                })
            }),
        };
        taken.map_err(refused)?.ok_or(Errno::AGAIN)
    }

    /// Into several targets, or into none.
    fn scatter(
        &mut self,
        socket: UdpId,
        targets: &mut [IoSliceMut<'_>],
        way: Way,
    ) -> Result<Taken, Errno> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let room: usize = targets.iter().map(|target| target.len()).sum();
        scratch.resize(room.min(LONGEST), 0);
        let taken = self.take(socket, &mut scratch, way);
        if let Ok(taken) = &taken {
            spread(scratch.get(..taken.bytes).unwrap_or_default(), targets);
        }
        self.scratch = scratch;
        taken
    }

    /// Bytes that taking the next one needs room for at most. `None`: there is none.
    pub(crate) fn next_datagram(&mut self, id: Id) -> Option<usize> {
        let session = self.get(id).ok()?;
        let gathers = session.settings.has(flag::GATHERED);
        let Role::Datagrams(Some(socket)) = session.role else { return None };
        let head = self.stack.udp_peek(socket, &mut []).ok().flatten()?;
        Some(if gathers { LONGEST } else { head.length })
    }

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

    pub(crate) fn datagram_mask(&mut self, id: Id) -> Mask {
        let Ok(session) = self.get(id) else { return Mask::NONE };
        let (shut, error) = (session.shut, session.error != 0 || self.has_reports(session.role));
        let room = session.settings.buffers.1 as usize;
        let waiting = match session.role {
            Role::Datagrams(Some(socket)) => {
                self.stack.udp_peek(socket, &mut []).is_ok_and(|head| head.is_some())
            }
            _ => false,
        };
        // sock_writeable: half of the buffer is free.
        let writable = self.outbox.bytes_of(id) * 2 < room.max(1);
        if !writable {
            self.outbox.starve(id);
        }
        (Mask::WRITE | Mask::WRBAND).when(writable)
            | Mask::READ.when(waiting || shut.0)
            | Mask::RDHUP.when(shut.0)
            | Mask::HUP.when(shut.0 && shut.1)
            | Mask::ERR.when(error)
    }
}

/// Where a datagram goes when it is told an address; IPv4 without a detour over mapping too, as Linux takes it.
fn destination(session: &Session, to: SocketAddr, mixed: Errno) -> Result<SocketAddr, Errno> {
    if session.domain == Domain::V4 && to.is_ipv6() {
        return Err(Errno::AFNOSUPPORT);
    }
    let address = plain(to);
    if session.domain == Domain::V6 && address.is_ipv4() && session.settings.has(flag::V6_ONLY) {
        return Err(if to.is_ipv6() { Errno::NETUNREACH } else { mixed });
    }
    Ok(address)
}

/// Copies bytes into several targets, or as many as they hold. Gives how many.
pub(crate) fn spread(bytes: &[u8], targets: &mut [IoSliceMut<'_>]) -> usize {
    let mut rest = bytes;
    for target in targets {
        let (now, later) = rest.split_at(target.len().min(rest.len()));
        if let Some(place) = target.get_mut(..now.len()) {
            place.copy_from_slice(now);
        }
        rest = later;
    }
    bytes.len() - rest.len()
}

pub(crate) fn told_of(trouble: UdpTrouble) -> Errno {
    match trouble {
        UdpTrouble::Failed(failure) => failure.into(),
        UdpTrouble::TooBig(_) => Errno::MSGSIZE,
    }
}

fn refused(error: UdpError) -> Errno {
    match error {
        UdpError::Gone => Errno::BADF,
        UdpError::InUse => Errno::ADDRINUSE,
        UdpError::NoPort | UdpError::NoBuffer => Errno::AGAIN,
        UdpError::Full => Errno::NOBUFS,
        UdpError::NoDestination => Errno::DESTADDRREQ,
        UdpError::Address => Errno::NETUNREACH,
        UdpError::Broadcast => Errno::ACCES,
        UdpError::TooLong { .. } => Errno::MSGSIZE,
        UdpError::Group => Errno::INVAL,
        UdpError::Trouble(trouble) => told_of(trouble),
    }
}
