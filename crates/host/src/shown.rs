//! Showing the connections and UDP sockets to others: see [`journal`](crate::journal) and [`claims`](crate::claims).

use shm::claims::ClaimsWriter;
use shm::connections::ConnectionsWriter;
use transport::Transport;

use crate::journal::{Beside, Journal, Owner};
use crate::session::Id;
use crate::sessions::Sessions;

impl Sessions {
    /// Shows the connections in a table from now on, those that there are already too; UDP sockets from the next look on.
    pub fn show_in(&mut self, writer: ConnectionsWriter) {
        self.journal = Some(Box::new(Journal::new(writer, self.now, &self.stack)));
    }

    /// Claims flows in a table from now on: those that come in through listeners, and all that there are already, those
    /// that were opened from here too. `key`: see [`shm::session::ClaimsPlace`].
    pub fn claim_in(&mut self, writer: ClaimsWriter, key: [u64; 2]) {
        let all = self.stack.all_connections().into_iter();
        let all: Vec<_> = all.filter_map(|id| Transport::ends(&self.stack, id)).collect();
        let store = self.stack.buffers_mut();
        store.claim_in(writer, key);
        all.iter().for_each(|ends| store.claim(ends));
    }

    /// Brings the table up to date: to be called often, does something every 100 ms at most.
    pub fn look(&mut self, now: u64) {
        self.look_beside(now, |_| (0, 0));
    }

    /// The same with what waits for a session's application, and to be sent, where neither the stack nor this knows of it.
    pub(crate) fn look_beside(&mut self, now: u64, mut beside: impl FnMut(Id) -> Beside) {
        self.now = self.now.max(now);
        let Some(mut journal) = self.journal.take() else { return };
        journal.look_beside(now, &self.stack, |owner| {
            let id = match owner {
                Owner::Connection(connection) => self.of_connection(connection),
                Owner::Udp(socket) => self.of_socket(socket),
            };
            let Some(id) = id else { return (0, 0) };
            let (unread, unsent) = beside(id);
            (unread, unsent + self.outbox.bytes_of(id))
        });
        self.journal = Some(journal);
    }

    /// So many packets were refused so far on links, before the stack saw them.
    pub fn note_refused(&mut self, packets: u64) {
        if let Some(journal) = &mut self.journal {
            journal.refused = packets;
        }
    }

    /// Connections came or went.
    pub(crate) fn note_changes(&mut self) {
        while let Some(place) = self.stack.buffers_mut().changed.pop_front() {
            if let Some(journal) = &mut self.journal {
                journal.note(self.now, place, &self.stack);
            }
        }
    }
}
