//! `millrace-bench dma`: what a packet costs on the way between a device and its driver, for two ways of
//! speaking: descriptors that are written back, and packets that describe themselves.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | the command line |
//! | `pcie` | the link: transaction layer packets (TLPs) and rates |
//! | `ledger` | what crossed it |
//! | `model` | what a packet costs, by arithmetic |
//! | `contest` | both ways on a link, and which links are compared |
//! | `memory`, `registers` | what device and driver share |
//! | `bus`, `nic` | a soft device: does each transfer and counts it |
//! | `driver`, `frames` | its driver, and packets that both know |
//! | `proof` | counted beside modelled |
//! | `software` | the same between two cores |
//! | `results`, `tables`, `plots` | as JSON, on the terminal, as SVG |

mod args;
mod bus;
mod contest;
mod driver;
mod frames;
mod ledger;
mod memory;
mod model;
mod nic;
mod pcie;
mod plots;
mod proof;
mod registers;
mod results;
mod software;
mod tables;

pub(crate) use args::Args;

use dpdk::{Eal, EalOptions, Memory};

use crate::failure::Failure;
use crate::interrupt;
use crate::load::Random;
use crate::machine::{self, Environment};
use crate::results::Report;
use crate::terminal::{progress, say};

use contest::Contest;
use frames::Frames;
use model::Direction;
use pcie::Generation;
use proof::prove;
use results::Proven;
use software::Measured;

/// Shortest and longest packet: bytes, check sequence included.
const SHORTEST: u64 = 64;
const LONGEST: u64 = 1518;

/// Device and driver do not agree, or one of them does what a link forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Broken {
    #[error("an access at {0:#x}, where there is no memory")]
    Address(u64),
    #[error("a request at {0:#x} that crosses a page")]
    Page(u64),
    #[error("packet {0} did not arrive as it was sent")]
    Packet(u64),
    #[error("the soft device or its driver heard nothing from the other for 10 s")]
    Silent,
    #[error("{0} packets had other transfers than the model's")]
    Differing(u64),
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::Dma(Box::new(broken))
    }
}

/// Calculates, counts, measures and shows everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    interrupt::keep_results();
    let eal =
        Eal::init(&EalOptions { megabytes: 64, memory: Memory::Plain, ..EalOptions::default() })?;
    let environment = Environment::of(eal, "none");
    say!("{}", environment.line());
    let generation = args.generations.first().copied().unwrap_or(Generation::Three);
    let contest = Contest::of(args, generation);
    say!("{}", tables::settings(&contest));
    say!("{}\n", tables::bytes(&contest, &args.sizes));
    let mut results = results::bytes(&contest, &args.sizes);
    let contests = args.generations.iter().map(|generation| Contest::of(args, *generation));
    let contests: Vec<Contest> = contests.collect();
    say!("{}\n", tables::rates(&contests, &args.lanes, &args.sizes));
    results.extend(results::rates(&contests, &args.lanes, &args.sizes));
    let proofs = proofs(&contest, args)?;
    say!("{}\n", tables::proofs(&proofs));
    results.extend(proofs.iter().map(Proven::outcome));
    let measured = between_cores(args)?;
    results.extend(measured.iter().flat_map(results::between_cores));
    if let Some(folder) = &args.plots {
        plots::write(folder, &contests, &args.lanes, &measured)?;
        say!("plots: {}", folder.display());
    }
    let report = Report { environment, results };
    report.write(args.json.file())
}

/// Runs the soft device: packets of every length, then of random lengths.
fn proofs(contest: &Contest, args: &Args) -> Result<Vec<Proven>, Failure> {
    let count = if args.quick { 1000 } else { args.packets };
    let mut random = Random::new(1);
    let span = LONGEST - SHORTEST + 1;
    let sizes = (0..count as u64).map(|number| match number {
        all if all < span => SHORTEST + all,
        _ => SHORTEST + random.below(span as usize) as u64,
    });
    let frames = Frames::new(sizes.collect(), 1);
    let ways = [("descriptors written back", contest.classic), ("self-described", contest.own)];
    let bar = progress(2 * ways.len());
    let mut proven = Vec::new();
    for (way, model) in ways {
        for direction in Direction::BOTH {
            let proof = prove(&model, direction, &frames)?;
            if proof.differing > 0 {
                return Err(Broken::Differing(proof.differing).into());
            }
            proven.push(Proven { way, direction, packets: frames.count(), proof });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(proven)
}

/// Measures the layouts between the first and the last core, and shows it. Nothing where there is one core.
fn between_cores(args: &Args) -> Result<Vec<Measured>, Failure> {
    let [first, last] = machine::outermost();
    if first == last {
        say!("two cores are not measured: this process may use one only");
        return Ok(Vec::new());
    }
    let (rounds, count) = if args.quick { (1, 10_000) } else { (args.rounds, 400_000) };
    let bar = progress(args.sizes.len() * rounds as usize);
    let (measured, probes) =
        software::measure([first, last], &args.sizes, rounds, count, || bar.inc(1))?;
    bar.finish_and_clear();
    say!("{}", tables::between_cores(&measured));
    say!("{}\n", tables::probes(&probes));
    Ok(measured)
}
