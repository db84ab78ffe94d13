//! Follows single packets through the nodes, in words.
//!
//! Off, it costs one branch per vector. On, a node gets each traced packet in a list of its own, and
//! what became of it is read off the exits and the lists of the next nodes afterwards, so the fast
//! path records nothing for it.

use rtrb::{Consumer, Producer, RingBuffer};

use crate::pending::Pending;
use crate::{CAPACITY, Exits, Filter, NodeId, PortId, Reason, Slot, StackId, Vector};

/// Steps of one packet at most.
const STEPS: u16 = 64;

/// What became of a packet in a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes on to this node.
    Next(&'static str),
    /// It is in the transmit buffer of this port.
    Transmitted(PortId),
    /// It was handed to the control thread; the number is the node's own.
    Punted(u16),
    /// It was dropped.
    Dropped(Reason),
    /// It was freed: its drop is counted already.
    Freed,
    /// It is a stack's.
    Delivered(StackId),
    /// The node took it out of the vector, to send it again in another form.
    Taken,
}

/// One packet in one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Number of the packet in this trace, from 0.
    pub packet: u32,
    /// TSC cycles when the node began with it.
    pub time: u64,
    /// The node.
    pub node: &'static str,
    /// What the node saw in it.
    pub seen: String,
    /// What became of it there.
    pub fate: Fate,
}

/// Which packets to follow.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// Which ones.
    pub filter: Filter,
    /// How many; then the trace ends by itself.
    pub packets: u32,
    /// Steps that the ring to the control thread holds; more are lost.
    pub ring: usize,
}

/// The worker's end of a trace. One worker has one trace at a time.
#[derive(Debug)]
pub struct Tracer {
    options: TraceOptions,
    ring: Producer<Step>,
    started: u32,
    /// By slot: the packet's number and its steps so far.
    marks: Box<[Option<(u32, u16)>; CAPACITY]>,
    marked: usize,
}

/// Both ends of a trace of one worker. The control thread's end is abandoned when the trace is over
/// (`Consumer::is_abandoned`).
#[must_use]
pub fn trace(options: TraceOptions) -> (Box<Tracer>, Consumer<Step>) {
    let (ring, receiver) = RingBuffer::new(options.ring);
    let marks = Box::new([None; CAPACITY]);
    (Box::new(Tracer { options, ring, started: 0, marks, marked: 0 }), receiver)
}

impl Tracer {
    /// Picks packets of a vector that is about to enter the nodes.
    pub(crate) fn pick(&mut self, vector: &Vector) {
        for (slot, buffer) in (0..=Slot::MAX).zip(&vector.buffers).take(vector.len()) {
            if self.started == self.options.packets {
                break;
            }
            let Some(buffer) = buffer else { continue };
            if self.options.filter.matches(PortId::of(buffer), buffer.data()) {
                self.marks[usize::from(slot)] = Some((self.started, 0));
                self.started += 1;
                self.marked += 1;
            }
        }
    }

    /// Whether packets of the vector are followed.
    pub(crate) fn follows(&self) -> bool {
        self.marked > 0
    }

    pub(crate) fn is_marked(&self, slot: Slot) -> bool {
        self.marks[usize::from(slot)].is_some()
    }

    /// Whether all packets that were asked for have been followed to their end.
    pub(crate) fn is_over(&self) -> bool {
        self.marked == 0 && self.started == self.options.packets
    }

    /// The vector was emptied.
    pub(crate) fn clear(&mut self) {
        self.marks.fill(None);
        self.marked = 0;
    }

    pub(crate) fn record(
        &mut self,
        slot: Slot,
        time: u64,
        node: &'static str,
        seen: String,
        fate: Fate,
    ) {
        let mark = &mut self.marks[usize::from(slot)];
        let Some((packet, steps)) = mark else { return };
        *steps += 1;
        // A full ring loses the step: the trace is bounded, the worker does not wait.
        let _ = self.ring.push(Step { packet: *packet, time, node, seen, fate });
        if !matches!(fate, Fate::Next(_)) || *steps == STEPS {
            *mark = None;
            self.marked -= 1;
        }
    }
}

/// The state of the exits before a node was run on one packet.
pub(crate) struct Before {
    drops: [u64; Reason::COUNT],
    given: Vec<u64>,
    punts: u64,
    freed: u64,
    delivered: u64,
}

impl Before {
    pub(crate) fn of(exits: &Exits) -> Self {
        Self {
            drops: drops(exits),
            given: exits.output.given().map(|(_, given)| given).collect(),
            punts: exits.counters.punts.get(),
            freed: exits.freed(),
            delivered: exits.deliveries.given().0,
        }
    }

    /// What became of the packet in `slot` since.
    pub(crate) fn fate(
        &self,
        slot: Slot,
        vector: &Vector,
        exits: &Exits,
        pending: &Pending,
        names: &[&'static str],
    ) -> Fate {
        if vector.buffer(slot).is_some() {
            let next = pending.holder(slot).and_then(|NodeId(at)| names.get(usize::from(at)));
            return next.map_or(Fate::Dropped(Reason::Forgotten), |name| Fate::Next(name));
        }
        let mut given = exits.output.given().zip(&self.given);
        if let Some(((port, _), _)) = given.find(|((_, now), before)| now != *before) {
            return Fate::Transmitted(port);
        }
        if exits.counters.punts.get() != self.punts {
            return Fate::Punted(exits.last_cause());
        }
        if exits.freed() != self.freed {
            return Fate::Freed;
        }
        match exits.deliveries.given() {
            (count, Some(stack)) if count != self.delivered => return Fate::Delivered(stack),
            _ => {}
        }
        let after = drops(exits);
        let mut changed = Reason::ALL.iter().zip(self.drops.iter().zip(&after));
        let reason = changed.rfind(|(_, (before, after))| before != after);
        reason.map_or(Fate::Taken, |(reason, _)| Fate::Dropped(*reason))
    }
}

fn drops(exits: &Exits) -> [u64; Reason::COUNT] {
    std::array::from_fn(|at| exits.counters.drops[at].get())
}

#[cfg(test)]
mod tests;
