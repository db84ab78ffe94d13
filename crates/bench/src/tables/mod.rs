//! `millrace-bench tables`: look-ups, changes and memory, beside DPDK's tables.

mod args;
mod contest;
mod flow;
mod lpm;
mod updates;

pub(crate) use args::Args;

use std::time::Instant;

use ::tables::Prefix;
use dpdk::{Eal, EalOptions};

use crate::failure::Failure;
use crate::interrupt;
use crate::load::{Prefixes, sample};
use crate::machine::{self, Environment};
use crate::results::{Outcome, Report, print};
use crate::terminal::{Parts, say};

/// Entries of the flow tables: the goal's, by default, and of a short run.
const FULL: usize = 1 << 25;
const USUAL: usize = 1 << 22;
const QUICK: usize = 1 << 18;
/// Prefixes of the comparison with rte_lpm, which takes seconds to be told 50,000 routes and
/// minutes for 900,000: it looks through all of one length to add one.
const FEW: usize = 50_000;
/// DPDK's memory for rte_fib and rte_lpm: MB; and for each entry of rte_hash: bytes.
const BASE: usize = 700;
const ENTRY: usize = 72;

/// Steps of the bar while a table is filled.
const SLICES: usize = 10;

/// Measures one kind of table.
type Part<'a> = &'a dyn Fn() -> Result<Vec<Outcome>, Failure>;

/// How long to measure, and what shows how far it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort<'a> {
    rounds: u32,
    keys: usize,
    updates: usize,
    bar: &'a Parts,
}

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let quick = args.run.quick;
    let size = if args.full { FULL } else { [USUAL, QUICK][usize::from(quick)] };
    let entries = args.entries.unwrap_or(size);
    let prefixes = Prefixes::load(args.run.prefixes.as_deref())?;
    let megabytes = u32::try_from(BASE + ((entries * ENTRY) >> 20)).unwrap_or(u32::MAX);
    let memory = args.run.memory();
    interrupt::keep_results();
    let eal = Eal::init(&EalOptions { megabytes, memory, ..EalOptions::default() })?;
    let environment = Environment::of(eal, &prefixes.origin);
    say!("{}", environment.lines());
    let [first, last] = machine::outermost();
    machine::pin(last)?;
    let rounds = if quick { args.run.rounds.min(2) } else { args.run.rounds };
    let ([full4, few4, full6], flows) = (lpm::steps(rounds), flow::steps(rounds));
    let bar = &Parts::new(full4 + few4 + full6 + flows);
    let effort = Effort {
        rounds,
        keys: if quick { 1 << 16 } else { 1 << 20 },
        updates: if quick { 20_000 } else { 1_000_000 },
        bar,
    };
    let few: Vec<Prefix<u32>> = sample(&prefixes.v4, FEW, 5);
    let parts: [(_, usize, Part<'_>); 4] = [
        ("IPv4 routes", full4, &|| lpm::full4(&prefixes.v4, effort, first)),
        ("IPv4 routes, rte_lpm", few4, &|| lpm::few4(&few, effort)),
        ("IPv6 routes", full6, &|| lpm::full6(&prefixes.v6, effort, first)),
        ("flows", flows, &|| flow::measure(entries, effort)),
    ];
    let mut results = Vec::new();
    for (name, steps, measure) in parts {
        bar.begin(name, steps);
        results.extend(measure()?);
        if interrupt::came() {
            break;
        }
    }
    bar.finish();
    print(&results);
    let report = Report { environment, results };
    report.write(args.run.json.file())
}

/// Does something for each of these, and moves the bar after every tenth of them. Gives how long it took: s.
fn each<T>(
    all: impl ExactSizeIterator<Item = T>,
    bar: &Parts,
    mut work: impl FnMut(T) -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let slice = all.len().div_ceil(SLICES);
    let mut left = slice;
    let start = Instant::now();
    for one in all {
        work(one)?;
        left -= 1;
        if left == 0 {
            bar.step();
            left = slice;
        }
    }
    Ok(start.elapsed().as_secs_f64())
}
