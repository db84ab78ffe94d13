//! The stack's side: what a process asks for is done.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use shm::Meta;
use shm::fifo::Chunks;
use transport::moving::{Carried, Reader};
use transport::{ConnectionId, Sink};

use super::call::{Verb, answer, bare, malformed, plain, put_ends, take_ends, take_outgoing};
use super::flow::{Closing, Flow};
use super::{PIECE, WorkerEnd};
use crate::close::Lingering;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::Incoming;
use crate::moving::Parcel;
use crate::options::level;
use crate::session::{Domain, How, Id, Kind};
use crate::sessions::Sessions;

/// Commands that are done in one round, before others have their turn.
const COMMANDS: usize = 256;
/// Bytes of connections that travel at most: as many as the daemon takes from a process in one file.
const LONGEST: usize = 16 << 20;

/// The sessions of a process, on a stack of another.
#[derive(Debug)]
pub struct Served {
    pub(super) sessions: Sessions,
    pub(super) end: WorkerEnd,
    /// Chunks for what comes.
    pub(super) chunks: Chunks,
    /// By session.
    pub(super) flows: Vec<Flow>,
    /// Sessions with chunks.
    pub(super) holding: VecDeque<Id>,
    /// Sessions without.
    pub(super) starved: VecDeque<Id>,
    pub(super) closing: Vec<Closing>,
    pub(super) bounce: Vec<u8>,
    /// Pieces of what a later call takes, and what an earlier one gave.
    put: Vec<u8>,
    got: Vec<u8>,
    command: Vec<u8>,
    /// Of commands: ns.
    now: u64,
    /// Nothing more is taken from the process: its connections hold as much memory as they may.
    pub(super) is_tight: bool,
    /// The process does not keep to the protocol, or does not take what it is told.
    pub(super) is_broken: bool,
    /// The process leaves what comes to others.
    rests: bool,
    /// It was told something since it was last rung for that: answers, events.
    answered: bool,
    told: bool,
}

impl Served {
    /// None yet, on a stack of its own.
    #[must_use]
    pub fn new(end: WorkerEnd, sessions: Sessions) -> Self {
        Self {
            sessions,
            chunks: Chunks::new(end.plan.chunks()),
            end,
            flows: Vec::new(),
            holding: VecDeque::new(),
            starved: VecDeque::new(),
            closing: Vec::new(),
            bounce: vec![0; PIECE],
            put: Vec::new(),
            got: Vec::new(),
            command: Vec::new(),
            now: 0,
            is_tight: false,
            is_broken: false,
            rests: false,
            answered: false,
            told: false,
        }
    }

    /// The stack: for packets, timers, claims and the table of connections.
    pub fn sessions(&mut self) -> &mut Sessions {
        &mut self.sessions
    }

    /// The process has not kept to the protocol: its sessions are to be taken away.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether the process leaves what comes to others: packets are to be dropped.
    #[must_use]
    pub fn rests(&self) -> bool {
        self.rests
    }

    /// Whether its connections hold as much memory as they may: then nothing more is taken from it.
    pub fn tighten(&mut self, is_tight: bool) {
        self.is_tight = is_tight;
    }

    /// Does what the process has asked for, up to a bound. Gives how much that was.
    pub fn serve(&mut self, now: u64) -> usize {
        self.now = self.now.max(now);
        let mut done = 0;
        while done < COMMANDS {
            let Some(taken) = self.end.commands.next() else { break };
            let mut command = std::mem::take(&mut self.command);
            command.resize(taken.length(), 0);
            self.end.commands.copy(&taken, &mut command);
            self.end.commands.release(taken);
            done += 1;
            self.obey(&command);
            self.command = command;
        }
        if self.end.commands.malformed() > 0 {
            self.is_broken = true;
        }
        done
    }

    /// Sends what is to be sent, acts on timers, and tells the process what has happened.
    pub fn turn(&mut self, now: u64, sink: &mut dyn Sink) {
        self.now = self.now.max(now);
        self.feed();
        // What the process reads may widen a window, and what becomes of that may be something to tell.
        for _ in 0..2 {
            self.sessions.turn(now, sink);
            while let Some(ready) = self.sessions.next_ready() {
                if ready.id.0 < self.end.plan.sessions() {
                    self.attend(ready.id, ready.woken);
                } else {
                    self.go_on_closing(ready.id);
                }
            }
            if !self.sessions.wants_turn() {
                break;
            }
        }
    }

    /// Whether a command waits.
    #[must_use]
    pub fn has_commands(&self) -> bool {
        self.end.commands.has_next()
    }

    /// Where the worker says that it sleeps.
    #[must_use]
    pub fn sleeps(&self) -> shm::SleepWord<'_> {
        self.end.commands.sleeps()
    }

    /// Rings for answers, and for events, as far as the process sleeps and there are new ones.
    pub fn ring(
        &mut self,
        mut answers: impl FnMut(shm::SleepWord<'_>),
        mut events: impl FnMut(shm::SleepWord<'_>),
    ) {
        if std::mem::take(&mut self.answered) {
            answers(self.end.answers.consumer_sleeps());
        }
        if std::mem::take(&mut self.told) {
            events(self.end.events.consumer_sleeps());
        }
    }

    /// Whether something waits that only time will change.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Something has happened to a session since the process has looked.
    pub(super) fn tell(&mut self, id: Id) {
        self.told = true;
        if self.end.events.push(&id.0.to_le_bytes(), Meta::default()).is_err() {
            // There is a place for each session: it clears its records, and does not take out what it is told.
            self.is_broken = true;
        }
    }

    fn obey(&mut self, command: &[u8]) {
        let mut from = Reader::new(command, 0, 0);
        let (Ok(verb), Ok(number)) = (Verb::take(&mut from), u32::take(&mut from)) else {
            self.is_broken = true;
            return;
        };
        let id = Id(number);
        let is_there = number < self.end.plan.sessions();
        let bytes = match verb {
            Verb::Look => {
                if is_there && self.sessions.has(id) {
                    self.attend(id, Mask::NONE);
                }
                return;
            }
            Verb::Close => {
                if is_there {
                    self.close(id);
                }
                return;
            }
            _ if is_there => self.perform(verb, id, &mut from),
            _ => bare(Err(Errno::MFILE)),
        };
        // Whoever has the answer finds the session as it is afterwards.
        if is_there && self.sessions.has(id) {
            self.attend(id, Mask::NONE);
        }
        self.answered = true;
        if self.end.answers.push(&bytes, Meta::default()).is_err() {
            self.is_broken = true;
        }
    }

    fn perform(&mut self, verb: Verb, id: Id, from: &mut Reader<'_>) -> Vec<u8> {
        match verb {
            Verb::Receive => bare(self.receive(id)),
            Verb::Send => plain(self.send(id, from)),
            Verb::Shutdown => bare(self.shutdown(id, from)),
            Verb::Accept => self.accept(id, from),
            Verb::SetOption => self.set_option(id, from),
            Verb::Linger => {
                let lingering = self.close(id);
                plain(Ok(lingering.map(|lingering| (lingering.bits(), lingering.timeout))))
            }
            Verb::Option => self.option(id, from),
            Verb::ExportClosed => {
                let parcels = self.sessions.export_closed(self.now);
                self.give(parcels)
            }
            Verb::ExportUnaccepted => {
                let parcels = self.sessions.export_unaccepted(id, self.now);
                self.give(parcels)
            }
            Verb::Put => bare(self.take_piece(from)),
            Verb::Get => self.give_piece(from),
            Verb::ImportUnheld => bare(self.import_unheld(from)),
            Verb::Rest => {
                let rests = bool::take(from).map_err(malformed);
                bare(rests.map(|rests| self.rests = rests))
            }
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
        let Self { sessions, now, .. } = self;
        Ok(match verb {
            Verb::Open => {
                let domain = Domain::take(from).map_err(malformed)?;
                sessions.open(id, domain, Kind::Stream)?;
                self.begin(id, false);
                bare(Ok(()))
            }
            Verb::Bind => bare(sessions.bind(id, SocketAddr::take(from).map_err(malformed)?)),
            Verb::Listen => bare(sessions.listen(id, i32::take(from).map_err(malformed)?)),
            Verb::Connect => {
                let source = IpAddr::take(from).map_err(malformed)?;
                let remote = SocketAddr::take(from).map_err(malformed)?;
                bare(sessions.connect(id, *now, source, remote))
            }
            Verb::Disconnect => {
                let done = sessions.disconnect(id);
                self.begin(id, false);
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
            Verb::KeepQuiet => {
                sessions.keep_quiet(u64::take(from).map_err(malformed)?);
                bare(Ok(()))
            }
            Verb::Hold => {
                let until = u64::take(from).map_err(malformed)?;
                take_ends(from)?.iter().for_each(|ends| sessions.hold(ends, until));
                bare(Ok(()))
            }
            Verb::IsDrained => plain(Ok(sessions.is_drained() && self.closing.is_empty())),
            Verb::HasHandshakes => plain(Ok(sessions.has_handshakes(id))),
            _ => return Err(Errno::INVAL),
        })
    }

    /// What a call to receive says when nothing can be read from the FIFO.
    fn receive(&mut self, id: Id) -> Result<(), Errno> {
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
        if self.flow(id).flows {
            self.attend(id, Mask::NONE);
            if self.unsent(id) > 0 || self.is_tight {
                return Err(Errno::AGAIN);
            }
        }
        self.sessions.send(id, &[IoSlice::new(data)], outgoing).map(|sent| sent as u32)
    }

    fn shutdown(&mut self, id: Id, from: &mut Reader<'_>) -> Result<(), Errno> {
        let how = How::take(from).map_err(malformed)?;
        if self.flow(id).flows && how.writes() {
            self.attend(id, Mask::NONE);
            if self.unsent(id) > 0 {
                self.flow(id).ending = Some(How::Write);
                return if how.reads() { self.sessions.shutdown(id, How::Read) } else { Ok(()) };
            }
        }
        self.sessions.shutdown(id, how)
    }

    /// Gives both addresses, the two time limits and the low-water mark.
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

    /// What the process goes by itself.
    fn kept(&self, id: Id) -> ((Option<u64>, Option<u64>), u32) {
        let low_water = self.sessions.receive_low_water(id).unwrap_or(1);
        (self.sessions.timeouts(id).unwrap_or_default(), low_water as u32)
    }

    fn set_option(&mut self, id: Id, from: &mut Reader<'_>) -> Vec<u8> {
        let set = <(i32, i32)>::take(from).map_err(malformed).and_then(|(at, name)| {
            let value = from.slice(from.left()).map_err(malformed)?;
            self.sessions.set_option(id, at, name, value).map(|()| at)
        });
        let kept = self.kept(id);
        answer(set, |at, to| (at == level::SOCKET).then_some(kept).put(to))
    }

    fn option(&mut self, id: Id, from: &mut Reader<'_>) -> Vec<u8> {
        let value = <(i32, (i32, u32))>::take(from).map_err(malformed).and_then(|asked| {
            let (at, (name, room)) = asked;
            self.sessions.option(id, at, name, room as usize)
        });
        answer(value, |value, to| to.bytes.extend_from_slice(&value))
    }

    /// Connections that leave: how many bytes there are to be fetched.
    fn give(&mut self, parcels: Vec<Parcel>) -> Vec<u8> {
        let mut to = transport::moving::Writer::new(0);
        let mut count = 0;
        for parcel in parcels {
            // The others end here.
            if to.bytes.len() + parcel.bytes.len() > LONGEST {
                break;
            }
            put_ends(parcel.ends.as_ref(), &mut to);
            to.block(&parcel.bytes);
            count += 1;
        }
        self.got = to.bytes;
        plain(Ok((count as u32, self.got.len() as u32)))
    }

    fn give_piece(&mut self, from: &mut Reader<'_>) -> Vec<u8> {
        let at = u32::take(from).map_err(malformed);
        let piece = at.map(|at| {
            let rest = self.got.get(at as usize..).unwrap_or_default();
            rest.get(..rest.len().min(PIECE)).unwrap_or_default()
        });
        answer(piece, |piece, to| to.bytes.extend_from_slice(piece))
    }

    fn take_piece(&mut self, from: &mut Reader<'_>) -> Result<(), Errno> {
        let is_first = bool::take(from).map_err(malformed)?;
        let piece = from.slice(from.left()).map_err(malformed)?;
        if is_first {
            self.put.clear();
        }
        if self.put.len() + piece.len() > LONGEST {
            return Err(Errno::NOBUFS);
        }
        self.put.extend_from_slice(piece);
        Ok(())
    }

    fn import_unheld(&mut self, from: &mut Reader<'_>) -> Result<(), Errno> {
        let age = u64::take(from).map_err(malformed)?;
        let bytes = std::mem::take(&mut self.put);
        self.sessions.import_unheld(self.now, age, &bytes).map(drop).map_err(malformed)
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
