//! Flows that this stack has, for whoever steers packets to it: [`shm::claims`].

use shm::claims::{ClaimsWriter, tag};
use shm::session::TransportProtocol;
use tables::PagedQueue;
use transport::{Buffers, ConnectionId, Ends, Grant, Opening, Pair};

use crate::fifo::Fifo;

/// The writer's side of the table.
#[derive(Debug)]
struct Claims {
    writer: ClaimsWriter,
    /// Of the tags.
    key: [u64; 2],
}

impl Claims {
    fn tag(&self, ends: &Ends) -> u64 {
        tag(self.key, TransportProtocol::Tcp, ends.local, ends.remote)
    }

    fn claim(&mut self, ends: &Ends) {
        // When the table is full, the flow is this stack's only as long as nobody else serves.
        let _ = self.writer.insert(self.tag(ends));
    }
}

/// Gives connections their FIFOs, and hears which ones come and go.
#[derive(Debug, Default)]
pub(crate) struct Store {
    claims: Option<Box<Claims>>,
    /// Flows that are still claimed, and have gone.
    gone: PagedQueue<Ends>,
    /// Places of connections that have got their FIFOs or given them back.
    pub(crate) changed: PagedQueue<u32>,
}

impl Buffers for Store {
    type Fifo = Fifo;

    fn open(&mut self, opening: &Opening) -> Grant<Fifo> {
        self.changed.push_back(opening.connection.index());
        let (receive, transmit) = (Fifo::new(opening.receive), Fifo::new(opening.transmit));
        Grant::Given(Pair { receive, transmit })
    }

    fn close(&mut self, connection: ConnectionId, _: Pair<Fifo>) {
        self.changed.push_back(connection.index());
    }

    /// A SYN was taken. The claim is there before the answer leaves: the answer to that may come at once.
    fn came(&mut self, ends: &Ends) {
        self.claim(ends);
    }

    /// Nothing is left of the connection but its TIME-WAIT: a claim that lasted longer would take the segments of the next
    /// connection between the same ends, whose SYN went to whoever serves by then.
    fn went(&mut self, ends: &Ends) {
        self.gone.push_back(*ends);
    }
}

impl Store {
    /// Claims flows in this table from now on; see [`shm::session::ClaimsPlace`].
    pub(crate) fn claim_in(&mut self, writer: ClaimsWriter, key: [u64; 2]) {
        self.claims = Some(Box::new(Claims { writer, key }));
    }

    /// From now on packets between these ends are this stack's.
    pub(crate) fn claim(&mut self, ends: &Ends) {
        self.release_gone();
        if let Some(claims) = &mut self.claims {
            claims.claim(ends);
        }
    }

    /// With the next turn: a connection that is exported stays claimed until the caller has handed it over.
    pub(crate) fn release_gone(&mut self) {
        while let Some(ends) = self.gone.pop_front() {
            if let Some(claims) = &mut self.claims {
                claims.writer.remove(claims.tag(&ends));
            }
        }
    }
}
