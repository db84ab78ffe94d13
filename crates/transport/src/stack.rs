//! The stack: tables, and the ways in for packets and time.

mod icmp;
mod input;
mod open;
mod slab;
mod time_wait;

use tables::{FlowReader, FlowTable, NO_FLOW, OutOfMemory};
use wire::Protocol;
use wire::flow::FiveTuple;

use crate::ends::Ends;
use crate::event::{End, Event};
use crate::fifo::Buffers;
use crate::handle::ConnectionId;
use crate::moving::Held;
use crate::options::Config;
use crate::packet::Sink;
use crate::ports::Ports;
use crate::reason::Counters;
use crate::shared::Shared;
use crate::tcp::Tcb;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;
use crate::time_wait::TimeWaits;
use crate::timer::Timers;
use crate::udp::Sockets;

use slab::Slab;

/// Segments that a connection sends in one turn when turns are counted.
const QUOTA: usize = 32;

/// TCP for one thread: see `docs/transport.md` for how a round goes.
pub struct Stack<B: Buffers> {
    pub(crate) shared: Shared,
    pub(crate) slab: Slab<B::Fifo>,
    pub(crate) buffers: B,
    pub(crate) timers: Timers,
    /// Connections in TIME-WAIT that have given their places back.
    pub(crate) time_waits: TimeWaits,
    pub(crate) ports: Ports,
    pub(crate) udp: Sockets,
    pub(crate) udp_ports: Ports,
    /// Of the last datagram that may be fragmented.
    pub(crate) identification: u16,
    /// The latest time that was given: ns.
    pub(crate) now: u64,
    flows_v4: FlowTable<16>,
    flows_v6: FlowTable<40>,
    reader_v4: FlowReader<16>,
    reader_v6: FlowReader<40>,
    keys_v4: Vec<[u8; 16]>,
    keys_v6: Vec<[u8; 40]>,
    values_v4: Vec<u32>,
    values_v6: Vec<u32>,
    /// Connections that are away.
    pub(crate) held: Held,
    /// A connection left the tables since the batch was looked up.
    moved: bool,
    /// Key and value of the last packet that came alone.
    recent: ([u8; 16], u32),
}

impl<B: Buffers> Stack<B> {
    /// Bytes of a connection's place. The FIFOs' own memory, the boxed congestion control, the timer
    /// and the entry in the table of flows come on top.
    pub const PLACE_BYTES: usize = Slab::<B::Fifo>::PLACE;

    /// A stack without sockets.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the tables of connections do not fit.
    pub fn new(config: Config, buffers: B) -> Result<Self, OutOfMemory> {
        let flows_v4 = FlowTable::new(config.connections_v4 + config.time_waits)?;
        let flows_v6 = FlowTable::new(config.connections_v6 + config.time_waits)?;
        Ok(Self {
            slab: Slab::new(config.connections_v4 + config.connections_v6 + 1),
            buffers,
            timers: Timers::with_room(config.connections_v4 + config.connections_v6 + 1),
            time_waits: TimeWaits::new(config.time_waits),
            ports: Ports::new(config.ephemeral_ports.clone()),
            udp: Sockets::default(),
            udp_ports: Ports::new(config.ephemeral_ports.clone()),
            identification: config.seed[0] as u16,
            now: 0,
            reader_v4: flows_v4.reader(),
            reader_v6: flows_v6.reader(),
            flows_v4,
            flows_v6,
            keys_v4: Vec::new(),
            keys_v6: Vec::new(),
            values_v4: Vec::new(),
            values_v6: Vec::new(),
            held: Held::default(),
            moved: false,
            recent: ([0; 16], NO_FLOW),
            shared: Shared::new(config),
        })
    }

    /// Sends what packets, timers and calls have left to send. When the sink is full, the rest waits for
    /// the next flush: [`is_flush_due`](Self::is_flush_due).
    pub fn flush(&mut self, now: u64, sink: &mut dyn Sink) {
        self.flush_within(now, usize::MAX, sink);
    }

    /// The same, `budget` segments at most. What is left goes on with the next flush, with the connections that
    /// had no turn; one that has much to send gives way to others after a few dozen segments. Gives what is left
    /// of the budget: 0 when there is more to send.
    pub fn flush_within(&mut self, now: u64, budget: usize, sink: &mut dyn Sink) -> usize {
        self.now = self.now.max(now);
        if self.shared.dirty.is_empty() {
            return budget;
        }
        self.shared.offloads = sink.offloads();
        self.shared.sink_is_full = false;
        // Who is interrupted goes to the list's end, and has its next turn there.
        let mut turns = if budget == usize::MAX { self.shared.dirty.len() } else { usize::MAX };
        let mut left = budget;
        while turns > 0 && left > 0 {
            let Some(index) = self.shared.dirty.pop_front() else { break };
            turns -= 1;
            let quota = if budget == usize::MAX { left } else { left.min(QUOTA) };
            self.shared.allowance = quota;
            self.step(index, sink, |tcb| {
                tcb.hot.clear(flag::DIRTY);
                tcb.output();
            });
            left -= quota - self.shared.allowance;
            let interrupted = std::mem::take(&mut self.shared.sink_is_full);
            if interrupted && self.shared.allowance > 0 {
                break;
            }
        }
        self.shared.allowance = usize::MAX;
        left
    }

    /// Whether a connection waits for the next flush: something happened to it since the last, or the sink
    /// was full.
    #[must_use]
    pub fn is_flush_due(&self) -> bool {
        !self.shared.dirty.is_empty()
    }

    /// Acts on timers whose time has come.
    pub fn expire(&mut self, now: u64, sink: &mut dyn Sink) {
        self.expire_within(now, usize::MAX, sink);
    }

    /// The same, for `budget` timers at most, the earliest first. Gives what is left of the budget: 0 when more
    /// may be due.
    pub fn expire_within(&mut self, now: u64, budget: usize, sink: &mut dyn Sink) -> usize {
        self.now = self.now.max(now);
        let mut left = budget;
        while left > 0 {
            let Some(index) = self.timers.expired(self.now) else { break };
            self.shared.offloads = sink.offloads();
            left -= 1;
            self.shared.allowance = if budget == usize::MAX { budget } else { QUOTA };
            self.step(index, sink, |tcb| {
                tcb.hot.armed_at = NEVER;
                tcb.on_timer();
            });
        }
        self.shared.allowance = usize::MAX;
        self.expire_time_waits(left)
    }

    /// When to call [`expire`](Self::expire): ns. `None`: only after something else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.next().into_iter().chain(self.time_waits.deadline()).min()
    }

    /// The next event, if there is one.
    pub fn poll_event(&mut self) -> Option<Event> {
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
    pub(crate) fn step(
        &mut self,
        index: u32,
        sink: &mut dyn Sink,
        run: impl FnOnce(&mut Tcb<'_, B::Fifo>),
    ) {
        let Some((hot, cold)) = self.slab.at(index) else { return };
        let mut tcb = Tcb {
            hot,
            cold,
            shared: &mut self.shared,
            buffers: &mut self.buffers,
            sink,
            now: self.now,
            index,
        };
        run(&mut tcb);
        let deadline = tcb.hot.deadline();
        let plain = match tcb.hot.state {
            State::Closed | State::TimeWait => false,
            // Closed here, and all is acknowledged: only the peer's FIN is waited for.
            State::FinWait2 => !(tcb.hot.has(flag::RELEASED) && tcb.cold.known),
            _ => true,
        };
        if plain {
            if deadline < tcb.hot.armed_at {
                tcb.hot.armed_at = deadline;
                self.timers.arm(index, deadline);
            }
        } else {
            self.settle(index);
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
        // The last acknowledgment may still be due; the short form knows this stack's time stamps only.
        let due = hot.has(flag::ACK_NOW | flag::RESET_DUE);
        let other = hot.has(flag::MOVED) && hot.has(flag::TIMESTAMPS);
        let waits = hot.state == State::TimeWait && !due && !other;
        if released && waits && hot.has(flag::IN_TABLE) && self.shared.config.time_waits > 0 {
            return self.retire(index);
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
        match ends.key() {
            FiveTuple::V4(flow) => self.flows_v4.get(&flow.key()),
            FiveTuple::V6(flow) => self.flows_v6.get(&flow.key()),
        }
    }

    /// Whether there was room.
    pub(crate) fn list(&mut self, ends: &Ends, index: u32) -> bool {
        debug_assert_ne!(index, NO_FLOW, "the table is full long before");
        let key = ends.key();
        !self.is_crowded(&key) && self.list_key(&key, index)
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
        self.recent = ([0; 16], NO_FLOW);
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
        self.recent = ([0; 16], NO_FLOW);
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
