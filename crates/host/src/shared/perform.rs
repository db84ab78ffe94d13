//! The calls that a process asks for, on its stack.

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use transport::ConnectionId;
use transport::moving::{Carried, Reader};

use super::call::{Verb, answer, bare, malformed, plain, take_ends, take_outgoing};
use super::own::Kept;
use super::served::Served;
use crate::close::Lingering;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::Incoming;
use crate::session::{Domain, How, Id, Kind};
use crate::template::Template;

impl Served {
    /// Does what is asked for. Gives the answer.
    pub(super) fn perform(&mut self, verb: Verb, id: Id, from: &mut Reader<'_>) -> Vec<u8> {
        match verb {
            Verb::Receive => bare(self.receive(id)),
            Verb::Send => plain(self.send(id, from)),
            Verb::Shutdown => {
                bare(How::take(from).map_err(malformed).and_then(|how| self.shutdown(id, how)))
            }
            Verb::Accept => self.accept(id, from),
            Verb::Connect => self.connect(id, from).unwrap_or_else(|error| bare(Err(error))),
            Verb::SetOption => self.set_option(id, from),
            Verb::OpenWith => self.open_with(id, from).unwrap_or_else(|error| bare(Err(error))),
            Verb::OpenDatagrams => {
                self.open_datagrams(id, from).unwrap_or_else(|error| bare(Err(error)))
            }
            Verb::Linger => {
                let lingering = self.close(id);
                plain(Ok(lingering.map(|lingering| (lingering.bits(), lingering.timeout))))
            }
            Verb::Option => self.option(id, from),
            Verb::Report => self.report(id, from).unwrap_or_else(|error| bare(Err(error))),
            Verb::ExportUnaccepted => {
                let parcels = self.sessions.export_unaccepted(id, self.now);
                self.give(parcels)
            }
            Verb::ExportWaiting => {
                self.export_waiting(id, from).unwrap_or_else(|error| bare(Err(error)))
            }
            Verb::Export => self.export(id),
            Verb::Import => self.import(id, from).unwrap_or_else(|error| bare(Err(error))),
            Verb::Put => bare(self.take_piece(from)),
            Verb::Get => self.give_piece(from),
            Verb::ImportUnheld => bare(self.import_unheld(from)),
            _ => self.perform_simple(verb, id, from).unwrap_or_else(|error| bare(Err(error))),
        }
    }

    /// Calls that are the stack's as they are.
    fn perform_simple(
        &mut self,
        verb: Verb,
        id: Id,
        from: &mut Reader<'_>,
    ) -> Result<Vec<u8>, Errno> {
        let sessions = &mut self.sessions;
        Ok(match verb {
            Verb::Open => {
                let domain = Domain::take(from).map_err(malformed)?;
                let kind = Kind::take(from).map_err(malformed)?;
                sessions.open(id, domain, kind)?;
                self.begin(id, false);
                self.flow(id).frames = kind == Kind::Datagram;
                bare(Ok(()))
            }
            Verb::Bind => {
                sessions.bind(id, SocketAddr::take(from).map_err(malformed)?)?;
                plain(sessions.name(id))
            }
            Verb::Listen => bare(sessions.listen(id, i32::take(from).map_err(malformed)?)),
            Verb::Disconnect => {
                let epoch = u32::take(from).map_err(malformed)?;
                let done = sessions.disconnect(id);
                if !self.flow(id).frames {
                    self.begin_ahead(id, epoch);
                }
                bare(done)
            }
            Verb::IsLingering => {
                let bits = u64::take(from).map_err(malformed)?;
                let lingering = Lingering::of_bits(bits);
                plain(Ok(sessions.is_lingering(&lingering)))
            }
            Verb::Name => plain(sessions.name(id)),
            Verb::Peer => plain(sessions.peer(id)),
            Verb::Unsent => {
                let (all, never) = sessions.unsent(id)?;
                plain(Ok((all as u64, never as u64)))
            }
            Verb::AddPorts => {
                let (first, count) = Carried::take(from).map_err(malformed)?;
                sessions.add_ports(first, count);
                bare(Ok(()))
            }
            Verb::RemovePorts => {
                sessions.remove_ports(u16::take(from).map_err(malformed)?);
                bare(Ok(()))
            }
            Verb::Hold => {
                let until = u64::take(from).map_err(malformed)?;
                take_ends(from)?.iter().for_each(|ends| sessions.hold(ends, until));
                bare(Ok(()))
            }
            Verb::FallQuiet => {
                sessions.fall_quiet();
                bare(Ok(()))
            }
            Verb::IsDrained => plain(Ok(sessions.is_drained() && self.closing.is_empty())),
            Verb::HasHandshakes => plain(Ok(sessions.has_handshakes(id))),
            _ => return Err(Errno::INVAL),
        })
    }

    /// What a call to receive says when nothing can be read from the FIFO.
    fn receive(&mut self, id: Id) -> Result<(), Errno> {
        if self.flow(id).frames {
            return self.sessions.get_mut(id)?.take_error();
        }
        if self.flow(id).flows {
            self.attend(id, Mask::NONE);
            if self.unread(id) > 0 || self.sessions.pending(id)? > 0 {
                return Err(Errno::AGAIN);
            }
        }
        let mut nothing = [0; 1];
        let mut targets = [IoSliceMut::new(&mut nothing)];
        self.sessions.recv(id, &mut targets, Incoming::default()).map(drop)
    }

    /// Sends where the FIFO is not the way.
    fn send(&mut self, id: Id, from: &mut Reader<'_>) -> Result<u32, Errno> {
        let outgoing = take_outgoing(from)?;
        let data = from.slice(from.left()).map_err(malformed)?;
        if self.flow(id).moves() {
            self.attend(id, Mask::NONE);
            if self.unsent(id) > 0 || self.is_tight {
                return Err(Errno::AGAIN);
            }
        }
        self.sessions.send(id, &[IoSlice::new(data)], outgoing).map(|sent| sent as u32)
    }

    pub(super) fn shutdown(&mut self, id: Id, how: How) -> Result<(), Errno> {
        if self.flow(id).moves() && how.writes() {
            self.attend(id, Mask::NONE);
            if self.unsent(id) > 0 {
                self.flow(id).ending = Some(How::Write);
                return if how.reads() { self.sessions.shutdown(id, How::Read) } else { Ok(()) };
            }
        }
        self.sessions.shutdown(id, how)
    }

    /// Gives how that went, and both addresses of a connection that has begun.
    fn connect(&mut self, id: Id, from: &mut Reader<'_>) -> Result<Vec<u8>, Errno> {
        let source = IpAddr::take(from).map_err(malformed)?;
        let remote = SocketAddr::take(from).map_err(malformed)?;
        let begun = self.sessions.connect(id, self.now, source, remote);
        let is_new = begun == Err(Errno::INPROGRESS);
        let ends = self.sessions.name(id).ok().zip(self.sessions.latest_peer(id));
        self.begun.push(id);
        if self.sessions.is_closed(id) {
            // One that was established before it failed: the next one flows when it is, too.
            self.flow(id).flows = false;
        }
        let error = begun.err().map_or(0, |error| error.0);
        Ok(plain(Ok((error, ends.filter(|_| is_new)))))
    }

    /// Gives both addresses, and what the process goes by itself.
    fn accept(&mut self, listener: Id, from: &mut Reader<'_>) -> Vec<u8> {
        let new = match u32::take(from).map_err(malformed) {
            Ok(new) if new < self.end.plan.sessions() => Id(new),
            Ok(_) => return bare(Err(Errno::MFILE)),
            Err(error) => return bare(Err(error)),
        };
        let accepted = self.sessions.accept(listener, new);
        if accepted.is_ok() {
            self.begin(new, true);
        }
        let kept = self.kept(new);
        answer(accepted, |(local, remote), to| {
            (local, remote).put(to);
            kept.put(to);
        })
    }

    /// Gives what the process goes by itself, and what others may be opened like.
    fn open_with(&mut self, id: Id, from: &mut Reader<'_>) -> Result<Vec<u8>, Errno> {
        let domain = Domain::take(from).map_err(malformed)?;
        self.sessions.open(id, domain, Kind::Stream)?;
        self.begin(id, false);
        self.apply_options(id, from)?;
        let template = self.sessions.template(id)?;
        Ok(plain(Ok((self.kept(id), template))))
    }

    /// The process goes on with it already, and asks about one that is not there otherwise.
    pub(super) fn open_like(&mut self, id: Id, from: &mut Reader<'_>) {
        let Ok((epoch, template)) = <(u32, Template)>::take(from) else { return };
        if self.sessions.has(id) {
            // One of which the process knows nothing: whoever has asked for it did not wait for the answer.
            self.close(id);
        }
        let template = self.sessions.adopt(&template);
        if self.sessions.open_like(id, &template).is_ok() {
            self.begin_ahead(id, epoch);
        }
    }

    /// Gives what the process goes by itself.
    fn open_datagrams(&mut self, id: Id, from: &mut Reader<'_>) -> Result<Vec<u8>, Errno> {
        let domain = Domain::take(from).map_err(malformed)?;
        self.sessions.open(id, domain, Kind::Datagram)?;
        self.begin(id, false);
        self.flow(id).frames = true;
        self.apply_options(id, from)?;
        Ok(plain(Ok(self.kept(id))))
    }

    /// What the process goes by itself.
    pub(super) fn kept(&self, id: Id) -> Kept {
        self.sessions.get(id).map(|session| Kept::of(&session.settings)).unwrap_or_default()
    }

    fn set_option(&mut self, id: Id, from: &mut Reader<'_>) -> Vec<u8> {
        let set = self.apply_option(id, from);
        plain(set.map(|()| self.kept(id)))
    }

    /// A switch takes effect between what was written before it and what is written after it.
    pub(super) fn switch(&mut self, id: Id, from: &mut Reader<'_>) {
        self.attend(id, Mask::NONE);
        let _ = self.apply_option(id, from);
    }

    fn apply_option(&mut self, id: Id, from: &mut Reader<'_>) -> Result<(), Errno> {
        let (at, name) = <(i32, i32)>::take(from).map_err(malformed)?;
        let value = from.slice(from.left()).map_err(malformed)?;
        self.sessions.set_option(id, at, name, value)
    }

    fn apply_options(&mut self, id: Id, from: &mut Reader<'_>) -> Result<(), Errno> {
        while from.left() > 0 {
            let option = <(i32, i32)>::take(from).and_then(|name| Ok((name, from.block()?)));
            let ((at, name), value) = option.map_err(malformed)?;
            // What is the default already, or can't be set here, is as it is.
            let _ = self.sessions.set_option(id, at, name, value);
        }
        Ok(())
    }

    fn option(&mut self, id: Id, from: &mut Reader<'_>) -> Vec<u8> {
        let value = <(i32, (i32, u32))>::take(from).map_err(malformed).and_then(|asked| {
            let (at, (name, room)) = asked;
            self.sessions.option(id, at, name, room as usize)
        });
        answer(value, |value, to| to.bytes.extend_from_slice(&value))
    }
}

impl Lingering {
    pub(super) fn of_bits(bits: u64) -> Self {
        Self { connection: ConnectionId::from_bits(bits), timeout: 0 }
    }

    pub(super) fn bits(&self) -> u64 {
        self.connection.to_bits()
    }
}
