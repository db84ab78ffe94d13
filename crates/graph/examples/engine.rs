//! What the engine itself costs: packets pass through nodes that do nothing, one by one or in
//! lists, and then are dropped or put into a port's transmit buffer.
//!
//! `cargo run --release -p millrace-graph --example engine [PACKETS-PER-VECTOR]`

use std::error::Error;
use std::sync::Arc;

use dpdk::{BufferPool, Eal, EalOptions, Memory};
use millrace_graph::{
    Context, Counters, Doorbell, Exits, Graph, GraphBuilder, NoEdge, Node, NodeId, Output, PortId,
    Reason, Slot, TransmitPath, Vector, ring,
};

const NAMES: [&str; 9] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "end"];
const ROUNDS: u64 = 20_000;
const REPEATS: usize = 15;

millrace_graph::edges! { Onward { Next => "next" } }

/// Passes packets on, in a list or one by one.
struct Pass {
    at: usize,
    to: usize,
    list: bool,
}

impl Node for Pass {
    type Next = Onward;

    fn name(&self) -> &'static str {
        NAMES[self.at]
    }

    fn edges(&self) -> Vec<(Onward, &'static str)> {
        vec![(Onward::Next, NAMES[self.to])]
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Onward>) {
        if self.list {
            cx.send_all(slots, Onward::Next);
        } else {
            for slot in slots {
                cx.send(*slot, Onward::Next);
            }
        }
    }

    fn describe(&self, _: &Vector, _: Slot) -> String {
        String::new()
    }
}

/// Drops packets, or transmits them.
struct End {
    transmit: bool,
}

impl Node for End {
    type Next = NoEdge;

    fn name(&self) -> &'static str {
        NAMES[8]
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, NoEdge>) {
        for slot in slots {
            if self.transmit {
                cx.transmit(*slot, PortId::new(0));
            } else {
                cx.drop(*slot, Reason::Blackhole);
            }
        }
    }

    fn describe(&self, _: &Vector, _: Slot) -> String {
        String::new()
    }
}

fn graph(nodes: usize, list: bool, transmit: bool) -> Result<Graph, Box<dyn Error>> {
    let mut builder = GraphBuilder::default();
    for at in 0..nodes {
        let to = if at + 1 == nodes { 8 } else { at + 1 };
        builder = builder.with(Pass { at, to, list });
    }
    Ok(builder.with(End { transmit }).build()?)
}

/// Cycles per packet through `nodes` passing nodes and the end, buffers taken and freed included.
fn measure(
    pool: &BufferPool,
    packets: usize,
    nodes: usize,
    list: bool,
    transmit: bool,
) -> Result<f64, Box<dyn Error>> {
    let doorbell = Arc::new(Doorbell::new()?);
    let (punts, _from_worker) = ring(64, Arc::clone(&doorbell));
    let counters = Arc::new(Counters::new(NAMES.len(), 1));
    let mut exits = Exits::new(Output::new(1, u64::MAX), counters, punts);
    let (to_port, mut from_port) = ring(1024, doorbell);
    exits.set_path(PortId::new(0), Some(TransmitPath::Worker(to_port)));
    let mut graph = graph(nodes, list, transmit)?;
    let mut vector = Vector::new();
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let mut cycles = 0;
        for _ in 0..ROUNDS {
            let got = pool.alloc_bulk(&mut vector.free_slots()[..packets]);
            vector.fill(got);
            let before = dpdk::tsc();
            graph.enter(&vector, NodeId(0));
            graph.run(&mut vector, &mut exits, before);
            cycles += dpdk::tsc() - before;
            while from_port.pop().is_ok() {}
        }
        best = best.min(cycles as f64 / (ROUNDS * packets as u64) as f64);
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn Error>> {
    let packets = std::env::args().nth(1).map_or(Ok(64), |text| text.parse())?;
    Eal::init(&EalOptions { megabytes: 64, memory: Memory::Auto, ..EalOptions::default() })?;
    let pool = BufferPool::new("engine", 8191, 2048, 256, None)?;
    println!("{packets} packets per vector; TSC cycles per packet, best of {REPEATS}");
    for (name, list) in [("one by one", false), ("in lists", true)] {
        let few = measure(&pool, packets, 1, list, false)?;
        let many = measure(&pool, packets, 5, list, false)?;
        let transmit = measure(&pool, packets, 1, list, true)?;
        println!(
            "passed on {name}: {:.2} per node; enter, 1 node and drop {few:.2}, and transmit {transmit:.2}",
            (many - few) / 4.0
        );
    }
    Ok(())
}
