//! The stack's side: what a process asks for is done.

use shm::Meta;
use shm::fifo::Chunks;
use tables::PagedQueue;
use transport::Sink;
use transport::moving::{Carried, Reader};

use super::WorkerEnd;
use super::call::{Verb, bare, numbered};
use super::flow::{Closing, Flow, Leaving, Travelling};
use crate::datagram::LONGEST;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::session::{How, Id};
use crate::sessions::Sessions;

/// Commands that are done in one round, before others have their turn.
pub(super) const COMMANDS: usize = 256;

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
    pub(super) holding: PagedQueue<Id>,
    /// Sessions without.
    pub(super) starved: PagedQueue<Id>,
    pub(super) closing: Vec<Closing>,
    /// Sessions that the process has closed, until what goes before their resets is sent.
    pub(super) resetting: Vec<Id>,
    pub(super) bounce: Vec<u8>,
    pub(super) travelling: Travelling,
    /// Since its process is gone.
    pub(super) leaving: Leaving,
    command: Vec<u8>,
    /// Of commands: ns.
    pub(super) now: u64,
    /// Nothing more is taken from the process: its connections hold as much memory as they may.
    pub(super) is_tight: bool,
    /// The process does not keep to the protocol, or does not take what it is told.
    pub(super) is_broken: bool,
    /// Connections that it has begun since they were asked for.
    pub(super) begun: Vec<Id>,
    /// It wants every packet to go by the network.
    pub(super) avoids_paths: bool,
    /// It was told something since it was last rung for that: answers, events.
    answered: bool,
    told: bool,
}

impl Served {
    /// None yet, on a stack of its own.
    #[must_use]
    pub fn new(end: WorkerEnd, sessions: Sessions) -> Self {
        // As in `Remote::new`.
        let mut flows = Vec::new();
        let _ = flows.try_reserve_exact(end.plan.sessions() as usize);
        Self {
            sessions,
            chunks: Chunks::new(end.plan.chunks()),
            end,
            flows,
            holding: PagedQueue::new(),
            starved: PagedQueue::new(),
            closing: Vec::new(),
            resetting: Vec::new(),
            bounce: vec![0; LONGEST],
            travelling: Travelling::default(),
            leaving: Leaving::default(),
            command: Vec::new(),
            now: 0,
            is_tight: false,
            is_broken: false,
            begun: Vec::new(),
            avoids_paths: false,
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

    /// Whether its connections hold as much memory as they may: then nothing more is taken from it.
    pub fn tighten(&mut self, is_tight: bool) {
        self.is_tight = is_tight;
    }

    /// Bytes that it holds for the process beside [`held_bytes`](crate::held_bytes): datagrams that wait or were begun, what
    /// sessions that were closed have left, and connections that travel.
    #[must_use]
    pub fn held_beside(&self) -> usize {
        let left: usize = self.closing.iter().map(|closing| closing.rest.capacity()).sum();
        let datagrams = self.sessions.waiting_datagrams() + self.sessions.begun;
        left + self.travelling.held() + datagrams
    }

    /// Does what the process has asked for, up to a bound. Gives how much that was.
    pub fn serve(&mut self, now: u64) -> usize {
        self.now = self.now.max(now);
        let mut done = 0;
        // Whoever still writes to the memory of a process that is gone asks for nothing.
        let most = if self.leaving.closed.is_none() { COMMANDS } else { 0 };
        while done < most {
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
            self.finish_resetting();
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

    /// Whether a command waits that is to be done.
    #[must_use]
    pub fn has_commands(&self) -> bool {
        self.leaving.closed.is_none() && self.end.commands.has_next()
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

    /// Connections that the process has begun, as long as nothing was sent for them: they may take a path.
    pub fn take_begun(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.begun)
    }

    /// Whether its connections may take paths beside the network.
    #[must_use]
    pub fn takes_paths(&self) -> bool {
        !self.avoids_paths
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
        if self.heed(verb, (id, is_there), &mut from) {
            return;
        }
        let Ok(question) = u64::take(&mut from) else {
            self.is_broken = true;
            return;
        };
        let bytes =
            if is_there { self.perform(verb, id, &mut from) } else { bare(Err(Errno::MFILE)) };
        // Whoever has the answer finds the session as it is afterwards.
        if is_there && self.sessions.has(id) {
            self.attend(id, Mask::NONE);
        }
        self.answered = true;
        if self.end.answers.push(&numbered(question, &bytes), Meta::default()).is_err() {
            self.is_broken = true;
        }
    }

    /// Does what has no answer. `false`: it is a question.
    fn heed(&mut self, verb: Verb, (id, is_there): (Id, bool), from: &mut Reader<'_>) -> bool {
        let has_session = is_there && self.sessions.has(id);
        match verb {
            Verb::Look if has_session => self.attend(id, Mask::NONE),
            Verb::Switch if has_session => self.switch(id, from),
            Verb::Finish if has_session => {
                let _ = self.shutdown(id, How::Write);
                self.attend(id, Mask::NONE);
            }
            Verb::Conclude if has_session => self.sessions.note_connected(id),
            Verb::Close if has_session => {
                self.close(id);
            }
            Verb::OpenLike if is_there => self.open_like(id, from),
            Verb::Look | Verb::Switch | Verb::Finish => {}
            Verb::Conclude | Verb::Close | Verb::OpenLike => {}
            Verb::AvoidPaths => self.avoids_paths = true,
            Verb::KeepQuiet => {
                if let Ok(until) = Carried::take(from) {
                    self.sessions.keep_quiet(until);
                }
            }
            Verb::SpareResets => {
                if let Ok((port, until)) = Carried::take(from) {
                    self.sessions.spare_resets(port, until);
                }
            }
            Verb::FirstLink => {
                if let Ok((remote, mtu)) = Carried::take(from) {
                    self.sessions.note_first_link(remote, mtu);
                }
            }
            _ => return false,
        }
        true
    }
}
