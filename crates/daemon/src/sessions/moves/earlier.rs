//! Processes that gave a connection because another one wanted it, and may wait for it still: in an epoll instance they hear nothing
//! of it while it is elsewhere.

use std::time::Instant;

use shm::session::{CarrierId, Event};

use super::super::Sessions;
use super::{Named, Place, RECALL, WAITING};

impl Named {
    /// A process has given the connection: of its own accord, or because another one wants it.
    pub(super) fn given_by(&mut self, process: u32) {
        let is_recalled = std::mem::take(&mut self.is_recalled);
        if is_recalled && self.earlier.len() < WAITING && !self.earlier.contains(&process) {
            self.earlier.push(process);
        }
    }
}

impl Sessions {
    /// Those who had a connection earlier are told what has become of it. Who has no room for news at the moment is told later.
    pub(super) fn tell_earlier(&mut self, id: CarrierId, event: Event) {
        let named = self.moves.named.get_mut(&id);
        let earlier = named.map(|named| std::mem::take(&mut named.earlier));
        let mut earlier = earlier.unwrap_or_default();
        // One that gives it as its last may have ended before that was done.
        earlier.retain(|process| self.list.contains_key(process) && !self.tell(*process, event));
        if let Some(named) = self.moves.named.get_mut(&id) {
            named.earlier = earlier;
        }
    }

    /// A connection is lost: nobody will have it again.
    pub(super) fn tell_lost(&mut self, id: CarrierId) {
        self.tell_waiting(id, Event::Lost(id));
        self.tell_earlier(id, Event::Lost(id));
    }

    /// Those who were not told yet are told of a connection that is lost, or that the daemon keeps though nobody waits for it: who has
    /// asked for it may have ended.
    pub(super) fn remind_earlier(&mut self, now: Instant) {
        let untold = self.moves.named.iter().filter(|(_, named)| !named.earlier.is_empty());
        let untold = untold.filter_map(|(id, named)| match named.place {
            Place::Gone => Some((*id, Event::Lost(*id))),
            Place::Parked(_) if now.saturating_duration_since(named.since) >= RECALL => {
                Some((*id, Event::Parked(*id)))
            }
            _ => None,
        });
        let untold: Vec<(CarrierId, Event)> = untold.collect();
        for (id, event) in untold {
            self.tell_earlier(id, event);
        }
    }
}
