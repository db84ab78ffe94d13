//! The loop of one core.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use dpdk::BufferPool;
use tables::ReaderSlot;

use crate::backoff::{Backoff, Step};
use crate::commands::Commands;
use crate::function::{Function, Functions};
use crate::receive::{Inbound, RxAssignment};
use crate::{
    CAPACITY, Doorbell, Entry, Exits, Graph, NodeId, PollMode, PortId, StackId, StackQueue,
    StackSetup, Stacks, Tap, Tracer, TransmitPath, Vector,
};

/// Packets taken from one ring in one round at most.
const RING_BURST: usize = 64;

/// Rounds over the rings before a worker stops: a sender that goes on must not keep it.
const STOP_ROUNDS: usize = 1024;

/// `spin_loop` hints between two rounds once a worker has been idle for a while.
const PAUSES: usize = 32;

/// The longest sleep when every receive queue has an interrupt, so that somebody rings for
/// everything: a second, so that whoever watches the counters sees that the worker lives.
const RUNG: Duration = Duration::from_secs(1);

/// All that belongs to one worker. Commands get it.
pub struct WorkerState {
    graph: Graph,
    exits: Exits,
    vector: Box<Vector>,
    entry: NodeId,
    burst: usize,
    receive: Vec<RxAssignment>,
    inbound: Vec<Inbound>,
    functions: Functions,
    stacks: Stacks,
    reader: Option<ReaderSlot>,
    /// Rings that are over.
    spent: Vec<Inbound>,
    stop: bool,
}

/// What a worker gives back when it stops.
#[derive(Debug)]
pub struct Stopped {
    /// Its receive queues.
    pub receive: Vec<RxAssignment>,
    /// Its transmit paths by port.
    pub transmit: Vec<(PortId, TransmitPath)>,
}

impl WorkerState {
    pub(crate) fn new(graph: Graph, exits: Exits, entry: NodeId, burst: usize) -> Self {
        let burst = burst.clamp(1, CAPACITY);
        Self {
            graph,
            exits,
            vector: Vector::new(),
            entry,
            burst,
            receive: Vec::new(),
            inbound: Vec::new(),
            functions: Functions::new(),
            stacks: Stacks::default(),
            reader: None,
            spent: Vec::new(),
            stop: false,
        }
    }

    /// Announces on this slot, once per round, that the nodes hold nothing of the tables; parks it
    /// while the worker sleeps. To be given before the first queue or ring.
    pub fn set_reader(&mut self, reader: ReaderSlot) {
        reader.quiescent();
        self.reader = Some(reader);
    }

    /// The graph, to find nodes in.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Polls one more receive queue.
    pub fn add_receive(&mut self, assignment: RxAssignment) {
        self.receive.push(assignment);
    }

    /// Polls a receive queue no longer, and gives it back.
    pub fn remove_receive(&mut self, port: PortId, queue: u16) -> Option<RxAssignment> {
        let is_it = |rx: &RxAssignment| rx.port == port && rx.queue.index() == queue;
        let at = self.receive.iter().position(is_it)?;
        Some(self.receive.remove(at))
    }

    /// The receive queues.
    pub fn receive_mut(&mut self) -> &mut [RxAssignment] {
        &mut self.receive
    }

    /// Takes packets from one more ring, until its sender is gone.
    pub fn add_inbound(&mut self, ring: Inbound) {
        self.inbound.push(ring);
    }

    /// Rings whose senders are gone: to be dropped, and with that freed, by another thread.
    pub fn take_spent(&mut self) -> Vec<Inbound> {
        std::mem::take(&mut self.spent)
    }

    /// Takes packets no longer from rings that are over.
    fn retire_rings(&mut self) {
        let mut at = 0;
        while let Some(ring) = self.inbound.get(at) {
            if ring.is_over() {
                self.spent.push(self.inbound.remove(at));
            } else {
                at += 1;
            }
        }
    }

    /// Lets a packet function see what the receive queues give. `number`: the caller's, to find it again;
    /// lower ones see packets first.
    pub fn add_function(&mut self, number: u64, function: Box<dyn Function>) {
        self.functions.add(number, function);
    }

    /// Takes a packet function away and gives it back. No packet is lost over it.
    pub fn remove_function(&mut self, number: u64) -> Option<Box<dyn Function>> {
        self.functions.remove(number)
    }

    /// Lets nodes deliver packets to a stack, and takes what it sends. Gives back what had its place before.
    pub fn add_stack(&mut self, id: StackId, setup: StackSetup) -> Option<Box<StackQueue>> {
        self.stacks.add(id, setup)
    }

    /// Packets that stacks send and that are too long for their pools' buffers get theirs here; without, they are dropped.
    pub fn lend_long(&mut self, pool: BufferPool) {
        self.stacks.lend_long(pool);
    }

    /// Takes what stacks have sent so far, as much as each one's share allows: one of them is about to go. Gives how much there was.
    pub fn hear_stacks(&mut self) -> usize {
        let Self { graph, exits, vector, stacks, .. } = self;
        stacks.send(graph, vector, exits, dpdk::tsc())
    }

    /// Takes a stack away and gives its queues back, so that another thread drops them. What is for it from now on is
    /// dropped.
    pub fn remove_stack(&mut self, id: StackId) -> Option<Box<StackQueue>> {
        self.stacks.remove(id)
    }

    /// Sets or takes away the way to a port; returns the one before. What waits is sent first.
    pub fn set_path(&mut self, port: PortId, path: Option<TransmitPath>) -> Option<TransmitPath> {
        self.exits.set_path(port, path)
    }

    /// Starts or ends a capture; returns the one that was running.
    pub fn set_tap(&mut self, tap: Option<Box<Tap>>) -> Option<Box<Tap>> {
        self.exits.set_tap(tap)
    }

    /// Starts or ends a trace; returns the one that was running.
    pub fn set_tracer(&mut self, tracer: Option<Box<Tracer>>) -> Option<Box<Tracer>> {
        self.graph.set_tracer(tracer)
    }

    /// Takes everything in and sends everything that waits, then ends the worker's loop after this
    /// command, and gives the queues back.
    pub(crate) fn stop(&mut self) -> Stopped {
        self.stop = true;
        for _ in 0..STOP_ROUNDS {
            if self.take_in_rings(dpdk::tsc()) == 0 {
                break;
            }
        }
        let transmit = self.exits.output.take_paths(&self.exits.counters);
        self.exits.notify_control();
        Stopped { receive: std::mem::take(&mut self.receive), transmit }
    }

    /// One round: every receive queue, every ring, the graph, the transmit buffers. Returns how
    /// many packets there were.
    pub(crate) fn round(&mut self, now: u64) -> usize {
        let mut found = 0;
        let mut full = false;
        for rx in &mut self.receive {
            let functions = &mut self.functions;
            let got = rx.poll(self.burst, &mut self.vector, &mut self.exits, functions, now);
            found += got;
            full |= got == self.burst;
            if self.vector.len() >= self.burst {
                self.graph.enter(&self.vector, self.entry);
                self.graph.run(&mut self.vector, &mut self.exits, now);
                self.stacks.deliver(&mut self.exits, now);
            }
        }
        // What several queues had a little of goes through the graph as one vector.
        if !self.vector.is_empty() {
            self.graph.enter(&self.vector, self.entry);
            self.graph.run(&mut self.vector, &mut self.exits, now);
            self.stacks.deliver(&mut self.exits, now);
        }
        if !self.functions.is_empty() {
            found += self.send_for_functions(full, now);
        }
        if !self.stacks.is_empty() {
            found += self.stacks.send(&mut self.graph, &mut self.vector, &mut self.exits, now);
        }
        let taken = self.take_in_rings(now);
        found += taken;
        if full {
            self.exits.output.flush_due(now, &self.exits.counters);
        } else {
            self.exits.output.flush(&self.exits.counters);
        }
        self.exits.notify_control();
        self.exits.busy = full;
        found
    }

    /// Sends what the packet functions have to send.
    #[cold]
    #[inline(never)]
    fn send_for_functions(&mut self, busy: bool, now: u64) -> usize {
        let Self { graph, exits, vector, functions, stacks, entry, .. } = self;
        let found = functions.send(busy, now);
        for (buffer, port) in functions.outgoing.transmit.drain(..) {
            exits.transmit(buffer, port, now);
        }
        let mut entering = functions.outgoing.enter.drain(..);
        let mut next = |_: &mut Exits| entering.next().map(|buffer| Entry::of(buffer, *entry));
        while graph.admit(vector, exits, &mut next) > 0 {
            graph.run(vector, exits, now);
            stacks.deliver(exits, now);
        }
        found
    }

    fn take_in_rings(&mut self, now: u64) -> usize {
        let Self { graph, exits, vector, stacks, inbound, entry, .. } = self;
        let mut found = 0;
        for ring in inbound.iter_mut() {
            let mut left = RING_BURST;
            match ring {
                Inbound::Enter(ring) => {
                    let next = |_: &mut Exits| {
                        left = left.checked_sub(1)?;
                        ring.pop().ok()
                    };
                    let taken = graph.admit(vector, exits, next);
                    if taken > 0 {
                        graph.run(vector, exits, now);
                        stacks.deliver(exits, now);
                    }
                    found += taken;
                }
                Inbound::Received(ring) => {
                    let packets = std::iter::from_fn(|| ring.pop().ok()).take(left);
                    // A vector has room for more than that.
                    let taken = packets.filter_map(|packet| vector.push(packet).ok()).count();
                    if taken > 0 {
                        graph.enter(vector, *entry);
                        graph.run(vector, exits, now);
                        stacks.deliver(exits, now);
                    }
                    found += taken;
                }
                Inbound::Transmit(port, ring) => {
                    for packet in std::iter::from_fn(|| ring.pop().ok()).take(left) {
                        found += 1;
                        exits.transmit(packet, *port, now);
                    }
                }
            }
        }
        found
    }
}

/// What the control thread sends to a worker, run between two vectors.
pub(crate) type Command = Box<dyn FnOnce(&mut WorkerState) + Send>;

/// The loop of one core: runs until a command stops it.
pub(crate) fn run(
    mut state: WorkerState,
    commands: &Commands<Command>,
    doorbell: &Arc<Doorbell>,
    mode: PollMode,
) {
    let mut backoff = Backoff::new(mode, dpdk::tsc_hz());
    let counters = Arc::clone(&state.exits.counters);
    let mut now = dpdk::tsc();
    loop {
        let found = visit(&mut state, commands, now);
        if state.stop {
            break;
        }
        let after = dpdk::tsc();
        let spent = after.wrapping_sub(now);
        counters.rounds.add(1);
        if found > 0 {
            counters.packets.add(found as u64);
            counters.busy_cycles.add(spent);
        } else {
            counters.idle_rounds.add(1);
            counters.idle_cycles.add(spent);
        }
        now = after;
        match backoff.after(found > 0, now) {
            Step::Go => {}
            Step::Pause => (0..PAUSES).for_each(|_| std::hint::spin_loop()),
            Step::Yield => std::thread::yield_now(),
            Step::Sleep(longest) => {
                sleep(&mut state, commands, doorbell, longest);
                if state.stop {
                    break;
                }
                now = dpdk::tsc();
                counters.sleeps.add(1);
                counters.sleep_cycles.add(now.wrapping_sub(after));
            }
        }
    }
}

/// Commands, then a round.
fn visit(state: &mut WorkerState, commands: &Commands<Command>, now: u64) -> usize {
    if commands.have_come() {
        while let Some(command) = commands.next() {
            command(state);
            state.retire_rings();
            if state.stop {
                return 0;
            }
        }
    }
    if let Some(reader) = &state.reader {
        reader.quiescent();
    }
    state.round(now)
}

/// Says that it sleeps, looks once more, and sleeps if there is still nothing.
fn sleep(
    state: &mut WorkerState,
    commands: &Commands<Command>,
    doorbell: &Doorbell,
    longest: Duration,
) {
    doorbell.announce();
    // Every queue is armed, so no short cut.
    let rung = state.receive.iter_mut().fold(true, |rung, rx| rx.arm() & rung);
    let rung = state.functions.arm() & rung;
    let rung = state.stacks.arm() & rung;
    let found = visit(state, commands, dpdk::tsc());
    if found == 0 && !state.stop {
        if let Some(reader) = &state.reader {
            reader.park();
        }
        let events: Vec<BorrowedFd<'_>> = state
            .receive
            .iter()
            .flat_map(RxAssignment::events)
            .chain(state.functions.events())
            .chain(state.stacks.events())
            .collect();
        if !doorbell.wait(&events, if rung { RUNG } else { longest }) {
            // A socket whose interface went down would end every wait at once.
            doorbell.wait(&[], longest);
        }
        if let Some(reader) = &state.reader {
            // The next command may send packets through the graph.
            reader.quiescent();
        }
    }
    state.receive.iter_mut().for_each(RxAssignment::disarm);
    state.functions.disarm();
    state.stacks.disarm();
    doorbell.awake();
}

#[cfg(test)]
mod tests;
