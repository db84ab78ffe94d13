//! Telling the daemon whether a listener gets its share of new connections, while others have the state.

use std::ffi::c_int;
use std::sync::Arc;

use shm::session::{Listen, Listening};

use super::neglect::Neglect;
use super::{Listener, State};
use crate::address::id;
use crate::clock;
use crate::state::changing::Change;
use crate::state::proving::show;

/// Between two times that the daemon is told that a listener rests, at least: ns.
const SELDOM: u64 = 10_000_000;

/// What a thread tells the daemon of a listener.
pub(crate) struct Telling {
    /// Its own descriptor stays open meanwhile.
    change: Change,
    serves: bool,
    busy: bool,
    stack: u32,
    /// How many it had been shown before.
    shown: u64,
}

impl Telling {
    /// Tells it. Gives what the daemon says of the listener.
    pub(crate) fn tell(&self) -> Option<Listening> {
        let how = Listen { stack: self.stack, weight: u8::from(self.serves), busy: self.busy };
        show(&self.change.link, how, self.change.own)
    }
}

impl Listener {
    /// Whether the daemon is to be told that it serves.
    fn is_to_serve(&self) -> bool {
        self.wanted && !self.serves && self.number.is_some()
    }

    /// The same of that it rests, but not too often.
    fn is_to_rest(&self, now: u64) -> bool {
        self.serves && !self.wanted && now >= self.told + SELDOM
    }
}

impl State {
    /// The application takes connections from `fd`: new ones are for this process too. Gives whether the daemon is to be told.
    pub(crate) fn serve(&mut self, fd: c_int) -> bool {
        let fd = self.own(fd);
        let Some(listener) = self.listeners.get_mut(&fd) else { return false };
        listener.wanted = true;
        listener.neglect = Neglect::default();
        (listener.is_to_serve() || listener.busy) && !self.is_changing(fd)
    }

    /// The application has stopped waiting for connections at `fd`: new ones are for other processes, if there are any, as soon as
    /// the daemon is told.
    pub(crate) fn rest(&mut self, fd: c_int) {
        let fd = self.own(fd);
        if self.waiters.is_watched(id(fd)) {
            return;
        }
        if let Some(listener) = self.listeners.get_mut(&fd) {
            listener.wanted = false;
        }
    }

    /// A thread is about to tell the daemon of a listener, which nobody ends until it has. `None`: there is nothing to tell, or others
    /// do it.
    pub(crate) fn begin_telling(&mut self) -> Option<Telling> {
        let now = clock::now();
        let rests = |listener: &Listener| {
            listener.is_to_rest(now) && listener.number.is_none_or(|it| !self.is_wanted(it))
        };
        let is_due = |listener: &Listener| {
            let asks = listener.looks_for_others(now) || self.changes_busy(listener);
            listener.is_to_serve() || rests(listener) || asks
        };
        let mut due = self.listeners.iter().filter(|(_, listener)| is_due(listener));
        let (fd, listener) = due.find(|(fd, _)| !self.is_changing(**fd))?;
        let (fd, serves, busy) = (*fd, listener.wanted, self.is_busy(listener.number));
        let (stack, shown) = (self.attachment.number(), self.shown);
        Some(Telling { change: self.begin_change(fd), serves, busy, stack, shown })
    }

    /// Whether the application takes connections from one of those that are this listener to the daemon: they share a port
    /// (`SO_REUSEPORT`).
    fn is_wanted(&self, number: u32) -> bool {
        self.listeners.values().any(|listener| listener.number == Some(number) && listener.wanted)
    }

    /// Whether the application neglects all of those that are this listener to the daemon, as far as it takes connections from them.
    fn is_busy(&self, number: Option<u32>) -> bool {
        let all = self.listeners.values().filter(|it| it.number == number && number.is_some());
        let mut all = all.filter(|it| it.wanted || it.neglect.is_certain).peekable();
        all.peek().is_some() && all.all(|listener| listener.neglect.is_certain)
    }

    /// Whether the daemon believes another thing.
    fn changes_busy(&self, listener: &Listener) -> bool {
        let may_differ = listener.busy || listener.neglect.is_certain;
        may_differ && listener.busy != self.is_busy(listener.number)
    }

    /// The daemon was shown a listener, as one that serves or not: that holds for all with its number. `shown`: how many it had been
    /// shown before.
    pub(in crate::state) fn note_shown(&mut self, number: Option<u32>, serves: bool, shown: u64) {
        self.note_told(number, (serves, false), shown);
    }

    /// The same, or as one that the application neglects.
    fn note_told(&mut self, number: Option<u32>, (serves, busy): (bool, bool), shown: u64) {
        let is_last = self.shown == shown;
        self.shown += 1;
        let Some(number) = number else { return };
        // If other threads have shown it some meanwhile, nobody knows which was last: it is told again.
        let serves = if is_last { serves } else { !self.is_wanted(number) };
        let now = clock::now();
        for listener in self.listeners.values_mut().filter(|other| other.number == Some(number)) {
            (listener.serves, listener.busy, listener.told) = (serves, busy, now);
        }
    }

    /// The daemon has answered. Gives whether others wait for that.
    pub(crate) fn end_telling(&mut self, telling: &Telling, answer: Option<Listening>) -> bool {
        let Change { own, link } = &telling.change;
        // A daemon that has come since was shown the listener as it was before.
        let is_same = Arc::ptr_eq(link, &self.attachment.link);
        let number = answer.map(|answer| answer.listener);
        if let Some(listener) = self.listeners.get_mut(own).filter(|_| is_same) {
            (listener.number, listener.serves) = (number, telling.serves);
            self.note_told(number, (telling.serves, telling.busy), telling.shown);
        }
        self.rest_or_work();
        if is_same {
            // What it has said meanwhile, no other thread has heard.
            self.heed();
        }
        let ended = self.end_change(&telling.change);
        if let Some(Listening { listener, taken: true, .. }) = answer.filter(|_| is_same) {
            self.leave_to_others(listener);
        }
        ended
    }
}
