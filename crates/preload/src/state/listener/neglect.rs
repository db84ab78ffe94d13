//! Connections that wait while the application does something else, as a worker of a server does that is busy with a request, or a
//! process whose children are to serve: they are for the processes that share the listener, any of which would take them from the kernel.

use host::Mask;

use super::{Listener, State};
use crate::address::id;
use crate::clock;

/// How long connections wait before they are neglected: ns. The caretaker looks every 10 ms, or every 100 while a thread sleeps in
/// another socket call.
const PATIENCE: u64 = 20_000_000;
/// Between two times that the daemon is asked whether others take them: ns.
const AGAIN: u64 = 200_000_000;
/// Connections that are passed on at a time: who takes them may be busy soon, too.
const AT_ONCE: usize = 16;

/// What the application neglects.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Neglect {
    /// Connections wait that it has not asked for since: ns.
    since: Option<u64>,
    /// They have waited too long: new ones are for others until it asks again.
    pub(super) is_certain: bool,
}

impl Listener {
    /// Whether the daemon, which was told of it last at `told`, is to be asked who takes what waits here.
    pub(super) fn looks_for_others(&self, now: u64) -> bool {
        let Neglect { since, is_certain } = self.neglect;
        is_certain && since.is_some() && now >= self.told + AGAIN
    }
}

impl State {
    /// Looks whether connections wait too long at listeners that other processes may have, too.
    pub(crate) fn look_for_neglect(&mut self) {
        let (now, forked) = (clock::now(), self.forked.is_some());
        let shared = self.listeners.iter().filter(|(_, it)| (forked || it.inherited) && !it.ends);
        let shared: Vec<_> = shared.map(|(fd, _)| *fd).collect();
        for fd in shared {
            // Who watches it hears of them, and takes them in its turn.
            let waits = !self.waiters.is_watched(id(fd)) && self.is_ready(fd, Mask::IN);
            let Some(listener) = self.listeners.get_mut(&fd) else { continue };
            if !waits {
                listener.neglect.since = None;
            } else if now >= *listener.neglect.since.get_or_insert(now) + PATIENCE {
                listener.neglect.is_certain = true;
            }
        }
    }

    /// Other processes take connections of a listener that this one only keeps open, or neglects: those that have waited longest here
    /// are for them.
    pub(in crate::state) fn leave_to_others(&mut self, number: u32) {
        let has_it = |listener: &Listener| listener.number == Some(number) && !listener.ends;
        let takes = |it: &Listener| (it.serves || it.wanted) && !it.neglect.is_certain;
        if self.listeners.values().any(|listener| has_it(listener) && takes(listener)) {
            return;
        }
        // A worker that rests closes its listener soon, and then hands all over.
        let forked = self.forked.is_some();
        let leaves = |it: &Listener| has_it(it) && (forked || it.neglect.is_certain);
        let all = self.listeners.iter().filter(|(fd, it)| leaves(it) && !self.is_changing(**fd));
        let all: Vec<_> = all.map(|(fd, _)| *fd).collect();
        // Some may be among the packets that wait.
        self.run();
        for fd in all {
            let now = clock::now();
            let parcels = self.sessions.export_waiting(id(fd), now, AT_ONCE);
            self.hand(number, &parcels, now);
        }
        self.turn();
    }
}
