//! The stack: tables, and the ways in for packets and time.

mod datagrams;
mod held;
mod icmp;
mod input;
mod open;
mod output;
mod path;
mod slab;
mod time_wait;

use tables::{GrowingFlowTable, NO_FLOW, OutOfMemory};
use wire::Protocol;
use wire::flow::FiveTuple;

use crate::ends::Ends;
use crate::event::{End, Event};
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::options::Config;
use crate::packet::Sink;
use crate::ports::Ports;
use crate::reason::Counters;
use crate::shared::Shared;
use crate::tcp::Tcb;
use crate::tcp::flight::Spares;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;
use crate::time_wait::{TimeWaits, Waiting};
use crate::timer::Timers;
use crate::udp::Sockets;

use held::Held;

use input::Recent;
pub use path::Path;
use slab::Slab;

/// What follows a step on a connection.
enum Next {
    /// Its timer stays as it is.
    Unchanged,
    /// Its timer is to fire before it would have: at ns.
    Earlier(u64),
    /// It is over, or nearly.
    Settle,
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    #[inline(always)]
    fn next_deadline(&mut self) -> Next {
        let deadline = self.hot.deadline();
        let plain = match self.hot.state {
            State::Closed | State::TimeWait => false,
            // Closed here, and all is acknowledged: only the peer's FIN is waited for.
            State::FinWait2 => !(self.hot.has(flag::RELEASED) && self.cold.known),
            _ => true,
        };
        if !plain {
            Next::Settle
        } else if deadline < self.hot.armed_at {
            self.hot.armed_at = deadline;
            Next::Earlier(deadline)
        } else {
            Next::Unchanged
        }
    }
}

/// TCP for one thread: see `docs/transport.md` for how a round goes.
pub struct Stack<B: Buffers> {
    pub(crate) shared: Shared,
    pub(crate) slab: Slab<B::Fifo>,
    pub(crate) buffers: B,
    pub(crate) timers: Timers,
    /// Flights that no connection uses.
    flights: Spares,
    /// Connections in TIME-WAIT that have given their places back.
    pub(crate) time_waits: TimeWaits,
    pub(crate) ports: Ports,
    pub(crate) udp: Sockets,
    pub(crate) udp_ports: Ports,
    /// Of the last datagram that may be fragmented.
    pub(crate) identification: u32,
    /// The latest time that was given: ns.
    pub(crate) now: u64,
    flows_v4: GrowingFlowTable<16>,
    flows_v6: GrowingFlowTable<40>,
    keys_v4: Vec<[u8; 16]>,
    keys_v6: Vec<[u8; 40]>,
    values_v4: Vec<u32>,
    values_v6: Vec<u32>,
    /// Connections that are away.
    pub(crate) held: Held,
    /// A connection left the tables since the batch was looked up.
    moved: bool,
    recent: Recent,
}

impl<B: Buffers> Stack<B> {
    /// Bytes of a connection's place. The FIFOs' own memory, the boxed congestion control, the timer
    /// and the entry in the table of flows come on top.
    pub const PLACE_BYTES: usize = Slab::<B::Fifo>::PLACE;
    /// The same of a UDP socket.
    pub const UDP_PLACE_BYTES: usize = Sockets::PLACE;
    /// And of a connection in TIME-WAIT that nobody holds.
    pub const TIME_WAIT_BYTES: usize = size_of::<Waiting>();
    /// Bytes of memory that UDP sockets keep when all was received.
    pub const UDP_SPARE_BYTES: usize = crate::udp::SPARE;

    /// A stack without sockets.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the tables of connections do not fit.
    pub fn new(config: Config, buffers: B) -> Result<Self, OutOfMemory> {
        let flows_v4 = GrowingFlowTable::new(config.connections_v4 + config.time_waits)?;
        let flows_v6 = GrowingFlowTable::new(config.connections_v6 + config.time_waits)?;
        Ok(Self {
            slab: Slab::new(config.connections_v4 + config.connections_v6 + 1),
            buffers,
            timers: Timers::with_room(config.connections_v4 + config.connections_v6 + 1),
            flights: Spares::default(),
            time_waits: TimeWaits::new(config.time_waits),
            ports: Ports::new(config.ephemeral_ports.clone()),
            udp: Sockets::default(),
            udp_ports: Ports::new(config.ephemeral_ports.clone()),
            identification: config.seed[0] as u32,
            now: 0,
            flows_v4,
            flows_v6,
            keys_v4: Vec::new(),
            keys_v6: Vec::new(),
            values_v4: Vec::new(),
            values_v6: Vec::new(),
            held: Held::default(),
            moved: false,
            recent: Recent::NONE,
            shared: Shared::new(config),
        })
    }

    /// When to call [`expire`](Self::expire): ns. `None`: only after something else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.next().into_iter().chain(self.time_waits.deadline()).min()
    }

    /// The next event, if there is one.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.shared.events.is_empty() { None } else { self.next_event() }
    }

    fn next_event(&mut self) -> Option<Event> {
        let event = self.shared.events.pop_front()?;
        match event {
            Event::Readable(id) => self.untell(id, flag::TOLD_READABLE),
            Event::Writable(id) => self.untell(id, flag::TOLD_WRITABLE),
            Event::Incoming(id) => {
                if let Some(listener) = self.shared.listeners.get_mut(id) {
                    listener.told = false;
                }
            }
            Event::UdpReadable(id) => {
                if let Some(socket) = self.udp.get_mut(id) {
                    socket.told = false;
                }
            }
            _ => {}
        }
        Some(event)
    }

    fn untell(&mut self, id: ConnectionId, told: u64) {
        if let Some((hot, _)) = self.slab.get_mut(id) {
            hot.clear(told);
        }
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// The source of data buffers.
    #[must_use]
    pub fn buffers_mut(&mut self) -> &mut B {
        &mut self.buffers
    }

    /// Connections that there are, those in TIME-WAIT too.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.slab.len() + self.time_waits.len()
    }

    /// Takes a step on the connection at `index`, and draws the consequences.
    #[inline(always)]
    pub(crate) fn step<S: Sink + ?Sized>(
        &mut self,
        index: u32,
        sink: &mut S,
        run: impl FnOnce(&mut Tcb<'_, B::Fifo, S>),
    ) {
        let Some(mut tcb) = self.tcb(index, sink) else { return };
        run(&mut tcb);
        let next = tcb.next_deadline();
        self.conclude(index, next);
    }

    /// The connection at `index` with all that a step on it needs.
    #[inline(always)]
    fn tcb<'a, S: Sink + ?Sized>(
        &'a mut self,
        index: u32,
        sink: &'a mut S,
    ) -> Option<Tcb<'a, B::Fifo, S>> {
        let (hot, cold) = self.slab.at(index)?;
        let Self { shared, flights, buffers, now, .. } = self;
        Some(Tcb { hot, cold, shared, flights, buffers, sink, now: *now, index })
    }

    /// After a step: the timer, or what the connection's end asks for.
    #[inline(always)]
    fn conclude(&mut self, index: u32, next: Next) {
        match next {
            Next::Unchanged => {}
            Next::Earlier(deadline) => self.timers.arm(index, deadline),
            Next::Settle => self.settle(index),
        }
    }

    /// A connection is over, or nearly: gives back what it no longer needs.
    pub(crate) fn settle(&mut self, index: u32) {
        let Some((hot, cold)) = self.slab.at(index) else { return };
        let id = ConnectionId::new(index, hot.generation);
        let over = hot.state == State::Closed;
        let deadline = hot.deadline();
        let released = hot.has(flag::RELEASED);
        let key = cold.key;
        if hot.has(flag::ORPHAN) && (over || hot.state == State::TimeWait) {
            hot.clear(flag::ORPHAN);
            self.shared.orphans -= 1;
        }
        if released {
            if let Some(pair) = cold.fifos.take() {
                self.buffers.close(id, pair);
            }
            if std::mem::take(&mut cold.known) {
                let acknowledged = hot.has(flag::FIN_ACKED);
                let end = End { acknowledged, failure: cold.failure };
                self.shared.events.push_back(Event::Gone(id, end));
            }
        }
        // The last acknowledgment may still be due.
        let due = hot.has(flag::ACK_NOW | flag::RESET_DUE);
        let waits = hot.state == State::TimeWait && !due && released && hot.has(flag::IN_TABLE);
        if waits {
            self.buffers.went(&Ends::of_received(&key));
            if self.shared.config.time_waits > 0 {
                return self.retire(index);
            }
        }
        let listed = over && hot.has(flag::IN_TABLE);
        if listed {
            hot.clear(flag::IN_TABLE);
        }
        hot.armed_at = if over { NEVER } else { deadline };
        if listed {
            self.unlist_key(&key);
        }
        if !over {
            self.timers.arm(index, deadline);
            return;
        }
        self.timers.cancel(index);
        if released {
            self.free(index);
        }
    }

    /// Gives a connection's place back, and its hold on a local port.
    pub(crate) fn free(&mut self, index: u32) {
        let Some((_, cold)) = self.slab.at(index) else { return };
        match cold.listener {
            Some(id) => self.shared.listeners.leave(id),
            None => self.shared.listeners.count_opened(cold.ends().local.port(), false),
        }
        self.slab.free(index);
    }

    pub(crate) fn find(&self, ends: &Ends) -> Option<u32> {
        let value = match ends.key() {
            FiveTuple::V4(flow) => self.flows_v4.lookup(&flow.key()),
            FiveTuple::V6(flow) => self.flows_v6.lookup(&flow.key()),
        };
        (value != NO_FLOW).then_some(value)
    }

    /// Lists a connection that has its place: whether there was room.
    pub(crate) fn list(&mut self, ends: &Ends, index: u32) -> bool {
        debug_assert_ne!(index, NO_FLOW, "the table is full long before");
        let key = ends.key();
        let has_place = self.slab.len() <= self.shared.config.connections;
        has_place && !self.is_crowded(&key) && self.list_key(&key, index)
    }

    /// Lists a connected UDP socket: whether there was room.
    pub(crate) fn list_datagrams(&mut self, ends: &Ends, index: u32) -> bool {
        let key = ends.key_of(Protocol::UDP);
        !self.is_crowded(&key) && self.list_key(&key, index)
    }

    /// Whether a connection more is one too many; those in TIME-WAIT have room of their own.
    fn is_crowded(&self, key: &FiveTuple) -> bool {
        let config = &self.shared.config;
        let (listed, most) = match key {
            FiveTuple::V4(_) => (self.flows_v4.len(), config.connections_v4),
            FiveTuple::V6(_) => (self.flows_v6.len(), config.connections_v6),
        };
        listed - self.time_waits.len_of(matches!(key, FiveTuple::V6(_))) >= most
    }

    fn list_key(&mut self, key: &FiveTuple, index: u32) -> bool {
        self.recent = Recent::NONE;
        match key {
            FiveTuple::V4(flow) => self.flows_v4.insert(&flow.key(), index).is_ok(),
            FiveTuple::V6(flow) => self.flows_v6.insert(&flow.key(), index).is_ok(),
        }
    }

    pub(crate) fn unlist_datagrams(&mut self, ends: &Ends) {
        self.unlist_key(&ends.key_of(Protocol::UDP));
    }

    /// Takes a connection out of the table.
    pub(crate) fn unlist(&mut self, ends: &Ends) {
        self.unlist_key(&ends.key());
    }

    fn unlist_key(&mut self, key: &FiveTuple) {
        self.moved = true;
        self.recent = Recent::NONE;
        let protocol = match key {
            FiveTuple::V4(flow) => {
                self.flows_v4.remove(&flow.key());
                flow.protocol()
            }
            FiveTuple::V6(flow) => {
                self.flows_v6.remove(&flow.key());
                flow.protocol()
            }
        };
        if protocol == Protocol::TCP {
            self.buffers.went(&Ends::of_received(key));
        }
    }
}

impl<B: Buffers> std::fmt::Debug for Stack<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stack").field("connections", &self.slab.len()).finish_non_exhaustive()
    }
}
