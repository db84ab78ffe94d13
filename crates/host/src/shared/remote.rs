//! The process's side: calls go to the stack's worker, data through the FIFOs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use shm::fifo::{self, Chunks};
use shm::{Meta, PushError, SleepWord};
use tables::PagedQueue;
use transport::moving::{Carried, Reader, Writer};

use super::asking::{Asking, Split, Wire};
use super::call::{Verb, command, malformed};
use super::own::Own;
use super::plan::{ProcessEnd, ProcessSide};
use crate::errno::Errno;
use crate::mask::Mask;
use crate::readiness::Ready;
use crate::session::Id;

/// Commands that wait for room in the ring at most. There may be one for each session, and options that are switched.
const BACKLOG: usize = 1 << 17;

/// The sessions of this process, on a stack of another.
#[derive(Debug)]
pub struct Remote {
    pub(super) end: ProcessSide,
    pub(super) asking: Arc<Asking>,
    /// A call in two parts is made.
    pub(super) split: Option<Split>,
    /// Chunks for what is sent.
    pub(super) chunks: Chunks,
    /// By session.
    pub(super) own: Vec<Own>,
    /// Sessions with chunks.
    pub(super) holding: PagedQueue<Id>,
    /// Of sessions that have ended: what their records said of the beginning, and what was written and the worker has not read, as
    /// far as is known.
    pub(super) ended: BTreeMap<Id, (u32, fifo::Writer)>,
    /// The last number of a beginning that the worker was to come to.
    pub(super) epoch: u32,
    /// One of them had no chunk for what it was to send.
    pub(super) starving: bool,
    /// Commands without an answer for which there was no room, in order.
    backlog: VecDeque<Vec<u8>>,
    ready: PagedQueue<Ready>,
    pub(super) ports: Vec<(u16, u16)>,
    /// Commands were written since the worker was last rung for.
    pub(super) touched: bool,
    /// There is nobody any more who answers.
    pub(super) is_lost: bool,
    /// Sessions of a stack that is no more: whoever has them still is to know.
    pub(super) dead: BTreeSet<Id>,
    answer: Vec<u8>,
}

impl Remote {
    /// None yet.
    #[must_use]
    pub fn new(end: ProcessEnd, wire: Box<dyn Wire>) -> Self {
        let ProcessEnd { answers, side: end } = end;
        // Addresses for all there can be, so that none is ever copied; memory comes a page at a time. An error leaves it
        // as it was: it grows when it must.
        let mut own = Vec::new();
        let _ = own.try_reserve_exact(end.plan.sessions() as usize);
        Self {
            chunks: Chunks::new(end.plan.chunks()),
            end,
            asking: Arc::new(Asking::new(answers, wire)),
            split: None,
            own,
            holding: PagedQueue::new(),
            ended: BTreeMap::new(),
            epoch: 0,
            starving: false,
            backlog: VecDeque::new(),
            ready: PagedQueue::new(),
            ports: Vec::new(),
            touched: false,
            is_lost: false,
            dead: BTreeSet::new(),
            answer: Vec::new(),
        }
    }

    /// Nobody answers any more: every connection is reset.
    pub fn lose(&mut self) {
        self.is_lost = true;
        self.asking.lose();
        self.backlog.clear();
        for (number, _) in self.own.iter().enumerate().filter(|(_, own)| own.is_there) {
            self.ready.push_back(Ready { id: Id(number as u32), woken: Mask::ALL });
        }
    }

    /// The sessions of another stack, which is no more, are reset.
    pub fn bury(&mut self, old: &Self) {
        // Sockets for datagrams are opened anew.
        let streams = |own: &Own| own.is_there && own.datagrams.is_none();
        let there = old.own.iter().enumerate().filter(|(_, own)| streams(own));
        self.dead = there.map(|(number, _)| Id(number as u32)).collect();
        self.dead.extend(&old.dead);
        let dead = self.dead.iter().map(|id| Ready { id: *id, woken: Mask::ALL });
        dead.for_each(|ready| self.ready.push_back(ready));
    }

    /// Whether it is of a stack that is no more.
    pub(super) fn is_dead(&self, id: Id) -> bool {
        !self.dead.is_empty() && self.dead.contains(&id)
    }

    /// Whether nobody answers any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Takes in what the worker has told. Gives how much that was.
    pub fn hear(&mut self) -> usize {
        self.catch_up();
        let mut count = 0;
        while let Some(taken) = self.end.events.next() {
            let mut number = [0; 4];
            self.end.events.copy(&taken, &mut number);
            self.end.events.release(taken);
            count += 1;
            let id = Id(u32::from_le_bytes(number));
            let Some(record) = self.end.records.get(id.0) else { continue };
            let woken = Mask(record.woken() & Mask::ALL.0);
            // What was told before the worker has come to its beginning happened to the session before.
            if self.here(id).is_some_and(|here| here.own.awaited.is_none()) {
                self.ready.push_back(Ready { id, woken });
            }
        }
        if std::mem::take(&mut self.starving) {
            self.reclaim();
            self.starving = self.chunks.free() == 0;
            if !self.starving {
                let all = self.own.iter().enumerate().filter(|(_, own)| own.is_there);
                let woken = Mask::WRITABLE;
                let all = all.map(|(id, _)| Ready { id: Id(id as u32), woken });
                all.for_each(|ready| self.ready.push_back(ready));
            }
        }
        count
    }

    /// Whether there is a chunk for what a session writes. If not, all are told when there is one, as after a write.
    pub(super) fn has_chunks(&mut self, id: Id) -> bool {
        if self.takes(id) {
            return true;
        }
        // Whoever is starving has looked for some, and does so again.
        if !self.starving {
            self.reclaim();
            self.starving = !self.takes(id);
        }
        !self.starving
    }

    /// Whether a session can write into a chunk, or has ended.
    fn takes(&mut self, id: Id) -> bool {
        self.here(id).is_none_or(|here| here.own.outward.takes(here.chunks) > 0)
    }

    /// A session that something happened to.
    pub fn next_ready(&mut self) -> Option<Ready> {
        self.ready.pop_front()
    }

    /// Whether it is to be looked again soon, though nobody rings.
    #[must_use]
    pub fn is_starving(&self) -> bool {
        self.starving || !self.backlog.is_empty()
    }

    /// Whether something waits to be told.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.ready.is_empty() || self.end.events.has_next()
    }

    /// Where the process says that it sleeps until something is told.
    #[must_use]
    pub fn sleeps(&self) -> SleepWord<'_> {
        self.end.events.sleeps()
    }

    /// Wakes the worker if it was given something.
    pub fn ring(&mut self) {
        if std::mem::take(&mut self.touched) {
            self.asking.wire.ring(self.end.commands.consumer_sleeps());
        }
    }

    /// Writes a command that has no answer, at once or when there is room.
    pub(super) fn say(&mut self, command: Vec<u8>) {
        if self.is_lost {
            self.lose();
            return;
        }
        self.touched = true;
        if self.backlog.len() < BACKLOG {
            self.backlog.push_back(command);
            self.catch_up();
        } else {
            let _ = self.push(&command);
        }
    }

    /// The same of one that is early enough with what comes next: the worker is not woken for it.
    pub(super) fn say_along(&mut self, command: Vec<u8>) {
        let touched = self.touched || !self.backlog.is_empty();
        self.say(command);
        self.touched = touched;
    }

    /// Writes what there was no room for. Gives whether nothing is left.
    fn catch_up(&mut self) -> bool {
        while let Some(command) = self.backlog.front() {
            if matches!(self.end.commands.push(command, Meta::default()), Err(PushError::Full)) {
                return false;
            }
            self.touched = true;
            self.backlog.pop_front();
            self.asking.found_room();
        }
        true
    }

    /// Writes a command behind all others. Gives whether there was room.
    fn try_push(&mut self, command: &[u8]) -> Result<bool, Errno> {
        if self.is_lost {
            self.lose();
            return Err(Errno::NETDOWN);
        }
        self.touched = true;
        if !self.catch_up() {
            return Ok(false);
        }
        match self.end.commands.push(command, Meta::default()) {
            Ok(()) => {
                self.asking.found_room();
                Ok(true)
            }
            Err(PushError::Full) => Ok(false),
            Err(_) => Err(Errno::NOBUFS),
        }
    }

    /// The same, when there is room.
    fn push(&mut self, command: &[u8]) -> Result<(), Errno> {
        while !self.try_push(command)? {
            self.ring();
            self.is_lost = !self.asking.pause();
        }
        Ok(())
    }

    /// Asks, and waits for the answer, unless the call is made in two parts.
    pub(super) fn ask(
        &mut self,
        verb: Verb,
        id: Id,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<Reader<'_>, Errno> {
        let given = self.split.as_mut().and_then(|split| split.answer.take());
        let answer = match given {
            Some(answer) => answer,
            None => {
                let mut question = self.asking.question(self.split.is_some());
                if let Some(number) = question.number() {
                    let asked = command(verb, id, |to| {
                        number.put(to);
                        fill(to);
                    });
                    if self.split.is_none() {
                        self.push(&asked)?;
                    } else if !self.try_push(&asked)? {
                        question = self.asking.lacks_room();
                    }
                    self.ring();
                }
                if let Some(split) = &mut self.split {
                    split.question = Some(question);
                    return Err(Errno::IOCBQUEUED);
                }
                question.wait().bytes.flatten()
            }
        };
        let Some(answer) = answer else {
            self.lose();
            return Err(Errno::NETDOWN);
        };
        self.answer = answer;
        let mut from = Reader::new(&self.answer, 0, 0);
        match i32::take(&mut from).map_err(malformed)? {
            0 => Ok(from),
            error => Err(Errno(error)),
        }
    }

    /// A call that gives something simple.
    pub(super) fn call<T: Carried>(
        &mut self,
        verb: Verb,
        id: Id,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<T, Errno> {
        T::take(&mut self.ask(verb, id, fill)?).map_err(malformed)
    }

    /// One that gives nothing.
    pub(super) fn tell(
        &mut self,
        verb: Verb,
        id: Id,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<(), Errno> {
        self.ask(verb, id, fill).map(drop)
    }

    pub(super) fn ask_to_receive(&mut self, id: Id) -> Result<(), Errno> {
        match self.tell(Verb::Receive, id, |_| {}) {
            Err(Errno::NETDOWN) if self.is_lost => Err(Errno::CONNRESET),
            other => other,
        }
    }
}
