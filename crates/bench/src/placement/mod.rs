//! `millrace-bench placement`: the forwarding rate by where the threads that receive, work and transmit are, by the pages and the
//! amount of DPDK's memory, and by the memory channels that DPDK is told.
//!
//! Each turn is a process of its own, as DPDK starts once in each.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | the command lines |
//! | `pair`, `places` | how cores lie to each other, and the placements that come of it |
//! | `memory` | pages, amounts, channels |
//! | `rows` | what is measured, and what this machine cannot |
//! | `turn`, `stage` | a turn: this process, and its own |
//! | `pipeline` | workers on the cores of a placement |
//! | `measured`, `show` | results |

mod args;
mod measured;
mod memory;
mod pair;
mod pipeline;
mod places;
mod rows;
mod show;
pub(crate) mod stage;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use args::{Args, Stage};

use std::fmt::Write as _;
use std::path::Path;

use doctor::Machine;
use dpdk::{Eal, EalOptions, Memory};
use tables::Prefix;

use crate::failure::Failure;
use crate::interrupt;
use crate::load::{Destination as _, Prefixes, sample};
use crate::machine::{self, Environment};
use crate::results::Report;
use crate::terminal::{progress, say};
use crate::turns::Rounds;
use measured::Measured;
use memory::Pages;
use rows::{Row, Setup};
use turn::{Load, Turn};

/// Routes: the usual case of `millrace-bench forward`.
const ROUTES: usize = 10_000;
/// Samples of a turn.
const SAMPLES: u32 = 10;
const SAMPLES_QUICK: u32 = 3;
/// Rounds of a short run.
const ROUNDS_QUICK: u32 = 2;

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let machine = Machine::read(Path::new("/"), None);
    let rows = rows::rows(&machine, &machine::cores(), args);
    let prefixes = Prefixes::load(args.run.prefixes.as_deref())?;
    if args.check {
        show::plan(&rows);
        return Ok(());
    }
    interrupt::keep_results();
    // Turns have memory of their own; this process needs none but DPDK's clock.
    let options = EalOptions { megabytes: 64, memory: Memory::Plain, ..EalOptions::default() };
    let is_huge = |setup: &Setup| setup.memory.pages != Pages::Ordinary;
    let hugepages = rows.first().and_then(|row| row.setup.as_ref().ok()).is_some_and(is_huge);
    let environment =
        Environment::of(Eal::init(&options)?, &prefixes.origin).with_hugepages(hugepages);
    say!("{}", environment.line());
    let folder = tempfile::tempdir()?;
    let routes = folder.path().join("routes");
    write(&routes, &sample(&prefixes.v4, ROUTES, 2))?;
    let samples = if args.run.quick { SAMPLES_QUICK } else { SAMPLES };
    let load = Load { frame: args.frame, samples, routes: &routes };
    let rounds = if args.run.quick { args.run.rounds.min(ROUNDS_QUICK) } else { args.run.rounds };
    let all = measure(rows, load, rounds)?;
    show::print(&all);
    let report = Report { environment, results: measured::outcomes(&all, args.frame) };
    report.write(args.run.json.file())
}

/// Rounds, in each of which every row has a turn that this machine can run; another one begins in each.
fn measure(rows: Vec<Row>, load: Load<'_>, rounds: u32) -> Result<Vec<Measured>, Failure> {
    let numbered = rows.iter().enumerate();
    let can: Vec<(usize, Setup)> =
        numbered.filter_map(|(number, row)| Some((number, *row.setup.as_ref().ok()?))).collect();
    let mut turns: Rounds<(usize, Setup), Turn> = Rounds::new(&can);
    let bar = progress(can.len() * rounds as usize);
    for round in 0..rounds as usize {
        turns.round(round, |(number, setup)| {
            bar.set_message(rows.get(number).map(|row| row.what.words()).unwrap_or_default());
            let turn = Turn::take(&setup, load);
            bar.inc(1);
            turn
        })?;
        if interrupt::came() {
            break;
        }
    }
    bar.finish_and_clear();
    let mut taken = turns.into_turns().into_iter().peekable();
    let numbered = rows.into_iter().enumerate();
    let measured = numbered.map(|(number, row)| {
        let turns = taken.next_if(|((other, _), _)| *other == number);
        Measured { row, turns: turns.map(|(_, turns)| turns).unwrap_or_default() }
    });
    Ok(measured.collect())
}

/// Writes the routes as the processes of turns read them.
fn write(path: &Path, routes: &[Prefix<u32>]) -> Result<(), Failure> {
    let mut text = String::new();
    for route in routes {
        // A string has room for everything.
        let _ = writeln!(text, "{}/{}", route.bits().address(), route.len());
    }
    if text.is_empty() {
        return Err(Failure::NoPrefixes("IPv4"));
    }
    std::fs::write(path, text).map_err(|source| Failure::File { path: path.into(), source })
}
