//! A connection arrives.

use super::connection::Connection;
use super::contents::{self, Data};
use super::export::{LOCAL, pending, place};
use super::{MAGIC, VERSION};
use crate::carried::Carried;
use crate::carried::ImportError;
use crate::carried::Reader;
use crate::event::Event;
use crate::fifo::{Buffers, ByteFifo, Grant, Opening, Pair};
use crate::handle::{ConnectionId, ListenerId};
use crate::isn::timestamp_offset;
use crate::packet::{PacketList, Sink};
use crate::stack::Stack;
use crate::tcp::Tcb;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;

/// What the bytes say.
pub(super) struct Arrival<'a, F> {
    pub(super) connection: Connection<F>,
    pending: u8,
    pub(super) data: Option<Data<'a>>,
    pub(super) in_place: bool,
}

impl<B: Buffers> Stack<B> {
    /// Takes a connection in that [`export`](Self::export) gave, of another stack with another clock. `age`: how
    /// long ago that was, in ns: its timers have gone on. `fifos`: those that came along when the data was left
    /// in place; they are taken out when the connection is taken, and given to this stack's
    /// [`Buffers`] at its end. What was due is sent with the next flush; `Readable`, `Writable` and events that
    /// were not told yet follow. A connection that waited to be accepted waits for the listener at its address;
    /// a stack that keeps connections for others ([`Config::custody`](crate::Config::custody)) needs none.
    ///
    /// A clock that began less than the age of the connection's segments ago (seconds) distorts what is measured
    /// by them.
    ///
    /// # Errors
    /// [`ImportError`]; nothing has changed then. The bytes may come from anybody.
    pub fn import(
        &mut self,
        now: u64,
        age: u64,
        bytes: &[u8],
        fifos: &mut Option<Pair<B::Fifo>>,
    ) -> Result<ConnectionId, ImportError> {
        self.now = self.now.max(now);
        let arrival = read(&mut Reader::new(bytes, self.now, age))?;
        if arrival.in_place != fifos.is_some() {
            return Err(ImportError::Fifos);
        }
        let lengths = fifos.as_ref().map(|pair| pair.transmit.len().min(1 << 30) as u32);
        let queued = lengths.or(arrival.data.as_ref().map(|data| data.queued.len() as u32));
        arrival.connection.check(queued)?;
        let ends = arrival.connection.cold.ends();
        let lives = arrival.connection.hot.state != State::Closed;
        if lives && self.find(&ends).is_some() {
            return Err(ImportError::InUse);
        }
        let listener = self.listener_of(&arrival.connection)?;
        let Arrival { connection, pending, data, .. } = arrival;
        let due = connection.hot.has(flag::DIRTY);
        let id = self.settle_in(connection, listener, lives)?;
        let pair = match &data {
            None => Ok(fifos.take()),
            Some(data) => self.refill(id, listener, data).map(Some),
        };
        match pair {
            Ok(pair) => {
                if let Some((_, cold)) = self.slab.get_mut(id) {
                    cold.fifos = pair;
                }
            }
            Err(error) => {
                if lives {
                    self.unlist(&ends);
                }
                self.free(id.index());
                return Err(error);
            }
        }
        self.held.release(&ends);
        self.begin(id, listener, pending, due);
        Ok(id)
    }

    /// The listener that a connection nobody has accepted yet belongs to here.
    fn listener_of(
        &mut self,
        connection: &Connection<B::Fifo>,
    ) -> Result<Option<ListenerId>, ImportError> {
        let Connection { hot, cold } = connection;
        let opening = hot.state == State::SynReceived && hot.has(flag::PASSIVE);
        let ends = cold.ends();
        let hash = self.group_hash(&ends);
        let found = self.shared.listeners.find(&ends, hash).map(|listener| listener.id);
        let waits = opening || hot.has(flag::QUEUED);
        if waits && found.is_none() && !self.shared.config.custody {
            return Err(ImportError::NoListener);
        }
        Ok(found.filter(|_| hot.has(flag::PASSIVE)))
    }

    /// A place, and an entry in the table.
    fn settle_in(
        &mut self,
        connection: Connection<B::Fifo>,
        listener: Option<ListenerId>,
        lives: bool,
    ) -> Result<ConnectionId, ImportError> {
        let Connection { mut hot, mut cold } = connection;
        let ends = cold.ends();
        cold.listener = listener;
        cold.options = self.shared.sets.share(&cold.options);
        let id = self.slab.add(cold);
        if lives && !self.list(&ends, id.index()) {
            self.slab.free(id.index());
            return Err(ImportError::Full);
        }
        hot.generation = id.generation();
        hot.armed_at = NEVER;
        hot.clear(LOCAL);
        if lives {
            hot.set(flag::IN_TABLE);
            if listener.is_some() {
                self.buffers.came(&ends);
            }
        }
        let own = timestamp_offset(&self.shared.secret, &ends) == hot.ts_offset;
        if own {
            hot.clear(flag::MOVED)
        } else {
            hot.set(flag::MOVED)
        }
        match listener {
            Some(listener) => self.shared.listeners.enter(listener),
            None => self.shared.listeners.count_opened(ends.local.port(), true),
        }
        if let Some((place, _)) = self.slab.get_mut(id) {
            *place = hot;
        }
        Ok(id)
    }

    /// FIFOs with the data that the bytes hold.
    fn refill(
        &mut self,
        connection: ConnectionId,
        listener: Option<ListenerId>,
        data: &Data<'_>,
    ) -> Result<Pair<B::Fifo>, ImportError> {
        let ends = self.slab.get(connection).map(|(_, cold)| cold.ends());
        let ends = ends.ok_or(ImportError::NoBuffers)?;
        let (receive, transmit) = (data.capacities.0 as usize, data.capacities.1 as usize);
        let opening = Opening { connection, ends, listener, receive, transmit };
        let Grant::Given(mut pair) = self.buffers.open(&opening) else {
            return Err(ImportError::NoBuffers);
        };
        if data.fill(&mut pair) {
            return Ok(pair);
        }
        self.buffers.close(connection, pair);
        Err(ImportError::NoBuffers)
    }

    /// It goes on: listener, events, timers.
    fn begin(&mut self, id: ConnectionId, listener: Option<ListenerId>, pending: u8, due: bool) {
        let Some((hot, cold)) = self.slab.get_mut(id) else { return };
        self.shared.orphans += usize::from(hot.has(flag::ORPHAN));
        let half_open = hot.state == State::SynReceived && hot.has(flag::PASSIVE);
        let fast_open = hot.has(flag::FAST_PENDING);
        let queued = hot.has(flag::QUEUED);
        if half_open && !fast_open {
            hot.set(flag::HALF_OPEN);
        }
        let failure = cold.failure;
        if let Some(listener) = listener.and_then(|id| self.shared.listeners.get_mut(id)) {
            listener.half_open += usize::from(half_open && !fast_open);
            listener.fast_open += usize::from(fast_open);
            if queued {
                listener.queue.push_back(id);
                if !std::mem::replace(&mut listener.told, true) {
                    self.shared.events.push_back(Event::Incoming(listener.id));
                }
            }
        }
        let failed = failure.filter(|_| pending & pending::FAILED != 0);
        let untold = [
            (pending & pending::CONNECTED != 0).then_some(Event::Connected(id)),
            (pending & pending::URGENT != 0).then_some(Event::Urgent(id)),
            (pending & pending::WRITABLE != 0).then_some(Event::Writable(id)),
            (pending & pending::PEER_CLOSED != 0).then_some(Event::PeerClosed(id)),
            failed.map(|failure| Event::Failed(id, failure)),
        ];
        self.step(id.index(), &mut PacketList::default(), |tcb| {
            untold.into_iter().flatten().for_each(|event| tcb.tell(event));
            tcb.arrive(due);
        });
    }
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// What this stack has different, and what the bytes did not say.
    fn arrive(&mut self, due: bool) {
        let mtu = self.shared.config.mtu;
        if self.cold.path_mtu > mtu {
            self.cold.path_mtu = mtu;
            self.update_mss();
        }
        let fifos = self.cold.fifos.as_ref();
        if fifos.is_some_and(|pair| !pair.receive.is_empty()) || self.hot.has(flag::PEER_CLOSED) {
            self.tell_readable();
        }
        let sends = !matches!(self.hot.state, State::Closed | State::TimeWait);
        let untimed = sends && !self.cold.flight.is_empty() && self.hot.retransmit_at == NEVER;
        if untimed {
            self.restart_timer();
        }
        if due || untimed {
            self.touch();
        }
    }
}

pub(super) fn read<'a, F: ByteFifo>(from: &mut Reader<'a>) -> Result<Arrival<'a, F>, ImportError> {
    if u32::take(from)? != MAGIC {
        return Err(ImportError::Format);
    }
    match u16::take(from)? {
        VERSION => {}
        other => return Err(ImportError::Version(other)),
    }
    let (place, pending) = (u8::take(from)?, u8::take(from)?);
    let connection = Connection { hot: Carried::take(from)?, cold: Carried::take(from)? };
    let data = match place {
        place::NOWHERE | place::FIFOS => None,
        place::BYTES => {
            let (next, gaps) = (connection.hot.rcv_nxt, &connection.cold.gaps);
            Some(contents::take(from, gaps, next)?)
        }
        _ => return Err(ImportError::Value("place")),
    };
    match from.left() {
        0 => Ok(Arrival { connection, pending, data, in_place: place == place::FIFOS }),
        surplus => Err(ImportError::Surplus(surplus)),
    }
}
