//! `millrace-bench clients`: what a client process costs everybody else, whatever it does.
//!
//! A worker forwards packets as in `millrace-bench forward`, and has a client's queues beside them as the
//! daemon would give them. On the other core a thread does what a client could do with its end.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | the command line |
//! | `conduct` | what a client may do, and what it asks for before |
//! | `deeds` | doing it |
//! | `given` | what the worker has of it |
//! | `turn` | one turn, measured |
//! | `show` | results |

mod args;
mod conduct;
mod deeds;
mod given;
mod show;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use args::Args;

use std::time::Duration;

use tables::Prefix;

use crate::failure::Failure;
use crate::load::{Frames, Packets, sample};
use crate::machine::round_trip;
use crate::results::{Report, Samples};
use crate::terminal::progress;
use crate::turns::Rounds;
use crate::worker::{self, Bed, Router, Source, mac};
use conduct::Conduct;
use turn::{Stage, Turn};

/// Flows and routes: the usual case of `millrace-bench forward`.
const FLOWS: usize = 10_000;
const ROUTES: usize = 10_000;
/// Packets that the receive queue is asked for at once, as in the daemon.
const BURST: u16 = 64;
/// Length of a sample.
const SAMPLE: Duration = Duration::from_millis(20);

/// All turns of one client.
struct Finding {
    conduct: Conduct,
    channels: u16,
    turns: Vec<Turn>,
    /// By round: its cycles per packet to those without a client.
    ratios: Samples,
}

impl Finding {
    fn of(&self, what: impl Fn(&Turn) -> f64) -> Samples {
        Samples(self.turns.iter().map(what).collect())
    }

    /// TSC cycles per packet.
    fn median(&self) -> f64 {
        self.of(|turn| turn.cycles).median()
    }

    fn least(&self) -> f64 {
        self.of(|turn| turn.least).min()
    }

    /// Packets of everybody else that were not forwarded.
    fn lost(&self) -> u64 {
        self.turns.iter().map(Turn::lost).sum()
    }
}

/// Measures every client.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (prefixes, mut bed, environment) = worker::begin(&args.run)?;
    let before = round_trip(bed.cores)?;
    let findings = measure(args, &mut bed, &sample(&prefixes.v4, ROUTES, 2))?;
    let after = round_trip(bed.cores)?;
    show::print(&findings, [before, after]);
    let report = Report { environment, results: show::outcomes(&findings) };
    report.write(args.run.json.file())
}

fn measure(args: &Args, bed: &mut Bed, routes: &[Prefix<u32>]) -> Result<Vec<Finding>, Failure> {
    if routes.is_empty() {
        return Err(Failure::NoPrefixes("IPv4"));
    }
    let Source { mut rx, tx: _tx } = bed.open()?;
    let router = Router::new(routes, bed.egress_ports())?;
    let packets = Packets::new(routes, FLOWS, Frames::Fixed(64), mac(rx.port()))?;
    dpdk::yardstick::attach_source(&mut rx, &bed.pool, packets.templates, packets.lengths)?;
    let contestants: Vec<(Conduct, u16)> = Conduct::ALL
        .into_iter()
        .flat_map(|conduct| {
            let own = conduct.channels().map(|channels| vec![channels]);
            let channels = own.unwrap_or_else(|| args.channels.clone());
            channels.into_iter().map(move |channels| (conduct, channels))
        })
        .collect();
    let rounds = if args.run.quick { 1 } else { args.run.rounds };
    let samples = if args.run.quick { 2 } else { args.samples };
    let bar = progress(rounds as usize * contestants.len());
    let worker = bed.start(&router, BURST)?;
    let mut stage = Stage::new(&worker, bed, rx, samples);
    let all = Rounds::take(&contestants, rounds, |(conduct, channels)| {
        bar.set_message(conduct.name());
        let turn = stage.turn(conduct, channels)?;
        bar.inc(1);
        Ok(turn)
    })?;
    bar.finish_and_clear();
    // Its transmit queues go with it: there is no measurement after this one.
    drop(worker);
    let alone = contestants.into_iter().find(|(conduct, _)| *conduct == Conduct::Nobody);
    let alone = alone.map(|alone| all.samples(alone, |turn| turn.cycles)).unwrap_or_default();
    let findings = all.into_turns().into_iter().map(|((conduct, channels), turns)| {
        let cycles = Samples(turns.iter().map(|turn| turn.cycles).collect());
        Finding { conduct, channels, ratios: cycles.ratios(&alone), turns }
    });
    Ok(findings.collect())
}
