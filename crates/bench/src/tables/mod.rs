//! `millrace-bench tables`: look-ups, changes and memory, beside DPDK's tables.

mod args;
mod contest;
mod flow;
mod lpm;
mod updates;

pub(crate) use args::Args;

use ::tables::Prefix;
use dpdk::{Eal, EalOptions};

use crate::failure::Failure;
use crate::interrupt;
use crate::load::{Prefixes, sample};
use crate::machine::{self, Environment};
use crate::results::{Outcome, Report, print};
use crate::terminal::{progress, say};

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

/// Measures one kind of table.
type Part<'a> = &'a dyn Fn() -> Result<Vec<Outcome>, Failure>;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    rounds: u32,
    keys: usize,
    updates: usize,
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
    say!("{}", environment.line());
    if !eal.hugepages() {
        say!(
            "DPDK's tables are in pages of 4 KB, which slows them; for a fair comparison write {} to \
             /proc/sys/vm/nr_hugepages before",
            megabytes.div_ceil(2)
        );
    }
    let [first, last] = machine::outermost();
    machine::pin(last)?;
    let effort = Effort {
        rounds: if quick { args.run.rounds.min(2) } else { args.run.rounds },
        keys: if quick { 1 << 16 } else { 1 << 20 },
        updates: if quick { 20_000 } else { 1_000_000 },
    };
    let few: Vec<Prefix<u32>> = sample(&prefixes.v4, FEW, 5);
    let parts: [(_, Part<'_>); 4] = [
        ("IPv4 routes", &|| lpm::full4(&prefixes.v4, effort, first)),
        ("IPv4 routes, rte_lpm", &|| lpm::few4(&few, effort)),
        ("IPv6 routes", &|| lpm::full6(&prefixes.v6, effort, first)),
        ("flows", &|| flow::measure(entries, effort)),
    ];
    let bar = progress(parts.len());
    let mut results = Vec::new();
    for (name, measure) in parts {
        bar.set_message(name);
        results.extend(measure()?);
        bar.inc(1);
        if interrupt::came() {
            break;
        }
    }
    bar.finish_and_clear();
    print(&results);
    let report = Report { environment, results };
    report.write(args.run.json.file())
}
