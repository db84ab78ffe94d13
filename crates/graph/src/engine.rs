//! Nodes joined into a graph, and the graph run on a vector.

use thiserror::Error;

use crate::edge::by_number;
use crate::pending::{List, NODES, Pending};
use crate::trace::{Before, Tracer};
use crate::vector::SLOTS;
use crate::{CAPACITY, Context, Entry, Exits, Node, NodeId, Reason, Slot, Vector};

/// Node calls for one vector at most. The longest sensible way through the graph is far shorter;
/// what still goes round after that is dropped as [`Reason::Loop`].
const CALLS: usize = 4 * NODES;

/// Every so many vectors the cycles of each node are measured.
const SAMPLE: u64 = 16;

/// Why nodes could not be joined.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GraphError {
    /// Two nodes have one name.
    #[error("two nodes are named {0}; names must differ")]
    Duplicate(&'static str),
    /// A node names an edge twice, or leaves one out.
    #[error("node {0} must say for each of its edges, once, where it leads")]
    Edges(&'static str),
    /// An edge leads nowhere.
    #[error("node {from} sends to {to}, which is not in the graph")]
    UnknownTarget {
        /// The node with the edge.
        from: &'static str,
        /// The name that no node has.
        to: &'static str,
    },
    /// More nodes than the ready set holds.
    #[error("a graph holds at most {NODES} nodes")]
    TooManyNodes,
}

/// When a node is run, and whether a trace follows packets of the vector.
#[derive(Clone, Copy)]
struct Turn {
    /// TSC cycles.
    now: u64,
    traced: bool,
}

/// A node with its edges resolved, behind one virtual call per vector.
trait Stage: Send {
    fn name(&self) -> &'static str;
    /// Names of the next nodes, by the numbers of the edges. `None`: not each edge has one.
    fn targets(&self) -> Option<Vec<&'static str>>;
    fn link(&mut self, targets: Vec<NodeId>);
    fn run(
        &mut self,
        slots: &[Slot],
        vector: &mut Vector,
        turn: Turn,
        exits: &mut Exits,
        pending: &mut Pending,
    );
    fn describe(&self, vector: &Vector, slot: Slot) -> String;
}

struct Linked<N: Node> {
    node: N,
    targets: Vec<NodeId>,
}

impl<N: Node> Stage for Linked<N> {
    fn name(&self) -> &'static str {
        self.node.name()
    }

    fn targets(&self) -> Option<Vec<&'static str>> {
        by_number(self.node.edges())
    }

    fn link(&mut self, targets: Vec<NodeId>) {
        self.targets = targets;
    }

    fn run(
        &mut self,
        slots: &[Slot],
        vector: &mut Vector,
        Turn { now, traced }: Turn,
        exits: &mut Exits,
        pending: &mut Pending,
    ) {
        let mut context = Context::new(vector, (now, traced), exits, pending, &self.targets);
        self.node.process(slots, &mut context);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        self.node.describe(vector, slot)
    }
}

/// Collects nodes; the order in which they are added is the order in which ready nodes run, so a
/// node is best added before the ones it sends to.
#[derive(Default)]
pub struct GraphBuilder {
    stages: Vec<Box<dyn Stage>>,
}

impl GraphBuilder {
    /// Adds a node.
    #[must_use]
    pub fn with(mut self, node: impl Node) -> Self {
        self.stages.push(Box::new(Linked { node, targets: Vec::new() }));
        self
    }

    /// Resolves the edges.
    ///
    /// Errors: [`GraphError`] when a name is taken twice, an edge leads nowhere or is not named once, or there are more
    /// than 64 nodes.
    pub fn build(mut self) -> Result<Graph, GraphError> {
        if self.stages.len() > NODES {
            return Err(GraphError::TooManyNodes);
        }
        let names: Vec<&'static str> = self.stages.iter().map(|stage| stage.name()).collect();
        if let Some((_, name)) =
            names.iter().enumerate().find(|(at, name)| names[..*at].contains(name))
        {
            return Err(GraphError::Duplicate(name));
        }
        for stage in &mut self.stages {
            let find = |to: &'static str| {
                let at = names.iter().position(|name| *name == to);
                let unknown = GraphError::UnknownTarget { from: stage.name(), to };
                at.map(|at| NodeId(at as u16)).ok_or(unknown)
            };
            let targets = stage.targets().ok_or(GraphError::Edges(stage.name()))?;
            let targets = targets.into_iter().map(find).collect::<Result<_, _>>()?;
            stage.link(targets);
        }
        Ok(Graph {
            stages: self.stages,
            names,
            pending: Pending::new(),
            spare: Some(List::new()),
            vectors: 0,
            tracer: None,
        })
    }
}

/// The nodes of one worker.
pub struct Graph {
    stages: Vec<Box<dyn Stage>>,
    names: Vec<&'static str>,
    pending: Pending,
    /// The list that is exchanged for one in `pending`.
    spare: Option<Box<List>>,
    vectors: u64,
    tracer: Option<Box<Tracer>>,
}

impl Graph {
    /// Names of the nodes, in the order of their ids.
    #[must_use]
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// The node of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.iter().position(|known| *known == name).map(|at| NodeId(at as u16))
    }

    /// Takes packets off `next` into a vector until it is full, each to enter at its own node.
    pub fn admit(
        &mut self,
        vector: &mut Vector,
        exits: &mut Exits,
        mut next: impl FnMut(&mut Exits) -> Option<Entry>,
    ) -> usize {
        let mut taken = 0;
        while vector.len() < CAPACITY {
            let Some(Entry { node, packet }) = next(exits) else { break };
            taken += 1;
            let known = usize::from(node.0) < self.stages.len();
            match vector.push(packet.buffer) {
                Ok(slot) if known => {
                    let at = usize::from(slot);
                    vector.interface[at] = packet.interface;
                    vector.egress[at] = packet.egress;
                    vector.vrf[at] = packet.vrf;
                    vector.network[at] = packet.network;
                    vector.next_hop[at] = packet.next_hop;
                    vector.icmp_error[at] = packet.icmp_error;
                    vector.stack[at] = packet.stack;
                    self.pending.push(node, slot);
                }
                Ok(_) => {}
                Err(buffer) => exits.drop(buffer, Reason::NoRoom),
            }
        }
        taken
    }

    /// Lets every slot of the vector enter at `entry`.
    pub fn enter(&mut self, vector: &Vector, entry: NodeId) {
        self.pending.extend(entry, &SLOTS[..vector.len()]);
    }

    /// Runs the nodes until no slot waits; leaves the vector empty. Packets that nodes originated
    /// are run too. `now`: TSC cycles.
    pub fn run(&mut self, vector: &mut Vector, exits: &mut Exits, now: u64) {
        let mut calls = CALLS;
        loop {
            match self.tracer.take() {
                None => self.run_pending(vector, exits, now, &mut calls),
                Some(tracer) => self.run_traced(tracer, vector, exits, now, &mut calls),
            }
            settle(vector, exits);
            if !exits.has_originated() {
                break;
            }
            self.admit(vector, exits, Exits::next_originated);
        }
        exits.free_dropped();
    }

    fn run_pending(&mut self, vector: &mut Vector, exits: &mut Exits, now: u64, calls: &mut usize) {
        self.vectors = self.vectors.wrapping_add(1);
        let sample = self.vectors % SAMPLE == 0;
        let mut before = if sample { dpdk::tsc() } else { 0 };
        let Some(mut list) = self.spare.take() else { return };
        while let Some(at) = self.pending.take(&mut list) {
            let slots = list.slots();
            if *calls == 0 {
                drop_all(slots, vector, exits);
                continue;
            }
            *calls -= 1;
            let Some(stage) = self.stages.get_mut(at) else { continue };
            let turn = Turn { now, traced: false };
            stage.run(slots, vector, turn, exits, &mut self.pending);
            let Some(counters) = exits.counters.nodes.get(at) else { continue };
            counters.vectors.add(1);
            counters.packets.add(slots.len() as u64);
            if sample {
                let after = dpdk::tsc();
                counters.sampled_packets.add(slots.len() as u64);
                counters.sampled_cycles.add(after.wrapping_sub(before));
                before = after;
            }
        }
        self.spare = Some(list);
    }

    /// As [`Self::run_pending`], with an eye on the packets that the tracer picks.
    #[cold]
    fn run_traced(
        &mut self,
        mut tracer: Box<Tracer>,
        vector: &mut Vector,
        exits: &mut Exits,
        now: u64,
        calls: &mut usize,
    ) {
        tracer.pick(vector);
        let mut list = List::new();
        while tracer.follows() {
            let Some(at) = self.pending.take(&mut list) else { break };
            let slots = list.slots();
            if *calls == 0 {
                drop_all(slots, vector, exits);
                continue;
            }
            *calls -= 1;
            let marks = |slot: &Slot| tracer.is_marked(*slot);
            let marked: Vec<bool> = slots.iter().map(marks).collect();
            let mut from = 0;
            for (place, slot) in slots.iter().enumerate().filter(|(place, _)| marked[*place]) {
                self.run_stage(at, &slots[from..place], vector, exits, now);
                let seen = self.describe(NodeId(at as u16), vector, *slot);
                let before = Before::of(exits);
                let begun = dpdk::tsc();
                self.run_stage(at, &[*slot], vector, exits, now);
                let fate = before.fate(*slot, vector, exits, &self.pending, &self.names);
                tracer.record(*slot, begun, self.names[at], seen, fate);
                from = place + 1;
            }
            self.run_stage(at, &slots[from..], vector, exits, now);
        }
        self.run_pending(vector, exits, now, calls);
        tracer.clear();
        self.tracer = (!tracer.is_over()).then_some(tracer);
    }

    /// Runs one node on packets of a vector of which some are traced.
    fn run_stage(
        &mut self,
        at: usize,
        slots: &[Slot],
        vector: &mut Vector,
        exits: &mut Exits,
        now: u64,
    ) {
        let Some(stage) = self.stages.get_mut(at).filter(|_| !slots.is_empty()) else { return };
        let turn = Turn { now, traced: true };
        stage.run(slots, vector, turn, exits, &mut self.pending);
        if let Some(counters) = exits.counters.nodes.get(at) {
            counters.vectors.add(1);
            counters.packets.add(slots.len() as u64);
        }
    }

    /// Starts or ends (`None`) a trace; returns the one that was running.
    pub fn set_tracer(&mut self, tracer: Option<Box<Tracer>>) -> Option<Box<Tracer>> {
        std::mem::replace(&mut self.tracer, tracer)
    }

    /// What the node says of a packet it is about to process.
    #[must_use]
    pub fn describe(&self, node: NodeId, vector: &Vector, slot: Slot) -> String {
        let stage = self.stages.get(usize::from(node.0));
        stage.map(|stage| stage.describe(vector, slot)).unwrap_or_default()
    }
}

/// Drops what a node forgot, and empties the vector.
fn settle(vector: &mut Vector, exits: &mut Exits) {
    let len = vector.len();
    let used = &mut vector.buffers[..len];
    // Without an early end the compiler makes this a few vector instructions.
    if used.iter().fold(false, |any, buffer| any | buffer.is_some()) {
        for buffer in used.iter_mut().filter_map(Option::take) {
            exits.drop(buffer, Reason::Forgotten);
        }
    }
    vector.clear();
}

fn drop_all(slots: &[Slot], vector: &mut Vector, exits: &mut Exits) {
    for slot in slots {
        if let Some(buffer) = vector.buffers[usize::from(*slot)].take() {
            exits.drop(buffer, Reason::Loop);
        }
    }
}

#[cfg(test)]
mod tests;
