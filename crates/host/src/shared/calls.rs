//! The calls that are questions to the stack's worker.

use std::io::IoSlice;
use std::net::SocketAddr;

use transport::Ends;
use transport::moving::{Carried, Writer};

use super::PIECE;
use super::call::{Verb, command, malformed, put_ends, put_options, put_outgoing};
use super::own::{Datagrams, Kept, Status};
use super::remote::Remote;
use crate::close::Lingering;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::Outgoing;
use crate::options::{Setting, Value, is_error, switch_sends};
use crate::session::{Domain, How, Id, Kind};
use crate::template::Template;

/// The calls of [`Sessions`](crate::Sessions), with its errors. [`Errno::NETDOWN`]: nobody answers any more.
#[expect(clippy::missing_errors_doc, reason = "as those of `Sessions`")]
impl Remote {
    /// Whether there is a session at this place.
    #[must_use]
    pub fn has(&self, id: Id) -> bool {
        self.own.get(id.0 as usize).is_some_and(|own| own.is_there)
    }

    /// Opens a socket at a place that is free.
    pub fn open(&mut self, id: Id, domain: Domain, kind: Kind) -> Result<(), Errno> {
        self.tell(Verb::Open, id, |to| {
            domain.put(to);
            kind.put(to);
        })?;
        self.begin(id);
        self.own(id)?.datagrams = (kind == Kind::Datagram).then(|| Datagrams::new(domain));
        Ok(())
    }

    /// No connection takes a path beside the network, from now on.
    pub fn avoid_paths(&mut self) {
        self.say(command(Verb::AvoidPaths, Id(0), |_| {}));
    }

    /// Opens a stream at a place that is free, with options; those that cannot be set are as they are. Gives what others may be
    /// opened like.
    pub fn open_with(
        &mut self,
        id: Id,
        domain: Domain,
        options: &[Setting],
    ) -> Result<Template, Errno> {
        let (kept, template): (Kept, Template) = self.call(Verb::OpenWith, id, |to| {
            domain.put(to);
            put_options(options, to);
        })?;
        self.begin(id);
        self.own(id)?.kept = kept;
        Ok(template)
    }

    /// Opens a stream at a place that is free, with the same options. Nobody waits for it: whatever could be wrong is known here.
    pub fn open_like(&mut self, id: Id, template: &Template) -> Result<(), Errno> {
        if self.is_lost {
            return Err(Errno::NETDOWN);
        }
        if id.0 >= self.end.plan.sessions() {
            return Err(Errno::MFILE);
        }
        if self.has(id) {
            return Err(Errno::EXIST);
        }
        let epoch = self.next_epoch();
        self.begin_ahead(id, Kept::of(template.settings()), epoch);
        self.own(id)?.template = Some(template.clone());
        self.say_along(command(Verb::OpenLike, id, |to| {
            epoch.put(to);
            template.put(to);
        }));
        Ok(())
    }

    /// Gives a socket an address.
    pub fn bind(&mut self, id: Id, local: SocketAddr) -> Result<(), Errno> {
        let name: SocketAddr = self.call(Verb::Bind, id, |to| local.put(to))?;
        if let Some(known) = self.datagrams(id) {
            known.name = Some(name).filter(|name| name.port() != 0);
        }
        Ok(())
    }

    /// Has a bound stream listen.
    pub fn listen(&mut self, id: Id, backlog: i32) -> Result<(), Errno> {
        self.tell(Verb::Listen, id, |to| backlog.put(to))
    }

    /// Takes the connection that has waited longest as session `new`; gives its local and its remote address.
    pub fn accept(&mut self, listener: Id, new: Id) -> Result<(SocketAddr, SocketAddr), Errno> {
        type Accepted = ((SocketAddr, SocketAddr), Kept);
        self.find(listener)?;
        let accepted = self.call(Verb::Accept, listener, |to| new.0.put(to));
        let (ends, kept): Accepted = accepted?;
        self.begin(new);
        let own = self.own(new)?;
        (own.kept, own.ends) = (kept, Some(ends));
        Ok(ends)
    }

    /// The ends of a connection, as long as nothing is wrong with it.
    fn ends(&mut self, id: Id) -> Option<(SocketAddr, SocketAddr)> {
        self.in_use(id).filter(|status| status.takes())?;
        self.own(id).ok()?.ends
    }

    /// Sends the pieces, one behind the other; gives how many bytes were taken.
    pub fn send(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        self.find(id)?;
        if self.datagrams(id).is_some() {
            return self.send_datagram(id, data, outgoing);
        }
        if outgoing.urgent {
            return Err(Errno::OPNOTSUPP);
        }
        if outgoing.fast_open {
            self.forget_connection(id);
        }
        let asks = outgoing.fast_open || self.is_answered();
        if let Some(sent) = (!asks).then(|| self.put(id, data)).flatten() {
            return sent;
        }
        let mut bytes = Vec::new();
        for piece in data {
            let room = PIECE - bytes.len();
            bytes.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
        }
        let sent: Result<u32, Errno> = self.call(Verb::Send, id, |to| {
            put_outgoing(&outgoing, to);
            to.bytes.extend_from_slice(&bytes);
        });
        match sent {
            Err(Errno::NETDOWN) if self.is_lost => Err(Errno::PIPE),
            sent => sent.map(|sent| sent as usize),
        }
    }

    /// Ends one or both directions. Nobody is asked where a connection is to send no more, as servers have it before they close it.
    pub fn shutdown(&mut self, id: Id, how: How) -> Result<(), Errno> {
        self.find(id)?;
        let is_sure = how == How::Write && self.in_use(id).is_some_and(Status::takes);
        if let Ok(own) = self.own(id) {
            own.shut.0 |= how.reads();
            own.shut.1 |= how.writes();
            own.connecting = false;
        }
        if is_sure {
            self.say(command(Verb::Finish, id, |_| {}));
            return Ok(());
        }
        self.tell(Verb::Shutdown, id, |to| how.put(to))
    }

    /// Whether who closes a session may have to wait (`SO_LINGER` with a time).
    #[must_use]
    pub fn lingers(&self, id: Id) -> bool {
        self.own.get(id.0 as usize).is_some_and(|own| own.is_there && own.kept.lingers)
    }

    /// Closes a session. A call in two parts asks the worker what the application has to wait for, if that lingers; any other waits
    /// for nothing.
    pub fn close(&mut self, id: Id) -> Option<Lingering> {
        self.dead.remove(&id);
        self.own(id).ok()?;
        let lingering = if self.split.is_some() && self.lingers(id) {
            let asked: Result<Option<(u64, u64)>, Errno> = self.call(Verb::Linger, id, |_| {});
            if asked == Err(Errno::IOCBQUEUED) {
                return None;
            }
            let (bits, timeout) = asked.ok().flatten().unwrap_or_default();
            (timeout > 0).then(|| Lingering { timeout, ..Lingering::of_bits(bits) })
        } else {
            self.say(command(Verb::Close, id, |_| {}));
            None
        };
        self.end(id);
        lingering
    }

    /// Whether the peer has not acknowledged all yet.
    #[must_use]
    pub fn is_lingering(&mut self, lingering: &Lingering) -> bool {
        let bits = lingering.bits();
        self.call(Verb::IsLingering, Id(0), |to| bits.put(to)).unwrap_or(false)
    }

    /// Its local address.
    pub fn name(&mut self, id: Id) -> Result<SocketAddr, Errno> {
        // Asked for before each datagram.
        if let Some(name) = self.own(id)?.datagrams.and_then(|known| known.name) {
            return Ok(name);
        }
        // Asked for by many programs as soon as there is one.
        if let Some((local, _)) = self.ends(id) {
            return Ok(local);
        }
        let name: SocketAddr = self.call(Verb::Name, id, |_| {})?;
        if let Some(known) = self.datagrams(id) {
            known.name = Some(name).filter(|name| name.port() != 0);
        }
        Ok(name)
    }

    /// Its remote address.
    pub fn peer(&mut self, id: Id) -> Result<SocketAddr, Errno> {
        self.find(id)?;
        if let Some((_, remote)) = self.ends(id) {
            return Ok(remote);
        }
        self.call(Verb::Peer, id, |_| {})
    }

    /// Bytes that were written and not acknowledged, and those of them never sent.
    pub fn unsent(&mut self, id: Id) -> Result<(usize, usize), Errno> {
        self.find(id)?;
        let (all, never): (u64, u64) = self.call(Verb::Unsent, id, |_| {})?;
        let waiting = self.waiting(id);
        Ok((all as usize + waiting, never as usize + waiting))
    }

    /// Sets an option. Nobody is asked about a switch of a connection: servers use one with each answer that they send
    /// (`TCP_CORK`).
    pub fn set_option(&mut self, id: Id, at: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
        self.find(id)?;
        let fill = |to: &mut Writer| {
            (at, name).put(to);
            to.bytes.extend_from_slice(value);
        };
        let goes_along = self.in_use(id).is_some();
        if let Some(sends) = switch_sends(at, name, value).filter(|_| goes_along) {
            let switch = command(Verb::Switch, id, fill);
            if sends {
                self.say(switch);
            } else {
                self.say_along(switch);
            }
            return Ok(());
        }
        let kept = self.call(Verb::SetOption, id, fill)?;
        if let Ok(own) = self.own(id) {
            own.kept = kept;
        }
        Ok(())
    }

    /// What an option is like. Nobody is asked whether there is an error where none is: clients do that with each connection.
    pub fn option(&mut self, id: Id, at: i32, name: i32, room: usize) -> Result<Value, Errno> {
        self.find(id)?;
        let is_sound = |status: Status| !status.mask().has(Mask::ERR);
        if is_error(at, name) && self.in_use(id).is_some_and(is_sound) {
            return Ok(Value::int(0, room));
        }
        let room = room.min(u32::MAX as usize);
        let mut from = self.ask(Verb::Option, id, |to| (at, (name, room as u32)).put(to))?;
        let value = from.slice(from.left()).map_err(malformed)?;
        Ok(Value::of(value, room))
    }

    /// How long calls that receive and that send may block: ns.
    pub fn timeouts(&self, id: Id) -> Result<(Option<u64>, Option<u64>), Errno> {
        let own = self.own.get(id.0 as usize).filter(|own| own.is_there);
        own.map(|own| own.kept.timeouts).ok_or(Errno::BADF)
    }

    /// `count` ports from `first` on are this process's.
    pub fn add_ports(&mut self, first: u16, count: u16) {
        if self.tell(Verb::AddPorts, Id(0), |to| (first, count).put(to)).is_ok() {
            self.ports.push((first, count));
        }
    }

    /// Its ports.
    #[must_use]
    pub fn ports(&self) -> &[(u16, u16)] {
        &self.ports
    }

    /// The range that begins there is this process's no more.
    pub fn remove_ports(&mut self, first: u16) {
        self.ports.retain(|range| range.0 != first);
        let _ = self.tell(Verb::RemovePorts, Id(0), |to| first.put(to));
    }

    /// Answers nothing with a reset until `until`: ns.
    pub fn keep_quiet(&mut self, until: u64) {
        self.say(command(Verb::KeepQuiet, Id(0), |to| until.put(to)));
        self.ring();
    }

    /// As [`Sessions::fall_quiet`](crate::Sessions::fall_quiet), before this returns.
    pub fn fall_quiet(&mut self) {
        let _ = self.tell(Verb::FallQuiet, Id(0), |_| {});
    }

    /// Answers nothing that comes to `port` with a reset until `until`: ns.
    pub fn spare_resets(&mut self, port: u16, until: u64) {
        self.say(command(Verb::SpareResets, Id(0), |to| (port, until).put(to)));
        self.ring();
    }

    /// What comes for a connection that was given away is dropped until `until`: ns.
    pub fn hold(&mut self, ends: &Ends, until: u64) {
        let _ = self.tell(Verb::Hold, Id(0), |to| {
            until.put(to);
            put_ends(Some(ends), to);
        });
    }

    /// Whether a process that ends now loses nothing.
    #[must_use]
    pub fn is_drained(&mut self) -> bool {
        self.call(Verb::IsDrained, Id(0), |_| {}).unwrap_or(true)
    }

    /// Whether handshakes are under way at a socket that listens.
    #[must_use]
    pub fn has_handshakes(&mut self, id: Id) -> bool {
        self.call(Verb::HasHandshakes, id, |_| {}).unwrap_or(false)
    }
}
