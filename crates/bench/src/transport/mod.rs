//! `millrace-bench transport`: TCP in memory, without I/O. Two stacks of a kind talk; what is measured is the
//! server's share, socket calls and copies included.

mod args;
mod lwip;
mod ours;
mod plots;
mod smoltcp;
mod wire;

pub(crate) use args::Args;

use dpdk::{Eal, EalOptions, Memory};
use serde_json::Value;

use crate::failure::Failure;
use crate::interrupt;
use crate::machine::{self, Environment};
use crate::results::{Better, Outcome, Report, Samples, print};
use crate::terminal::{progress, say};
use crate::turns::alternate;

use ours::Ours;
use smoltcp::Smoltcp;

/// Connections that are served together: what a vector brings.
const BATCH: usize = 64;
/// smoltcp looks at every socket in each poll; with more than so many a run takes minutes, and bursts fill the memory.
const FEW: usize = 10_000;
/// With so many, what a stack takes without any no longer shows in the memory of each.
const MANY: usize = 100_000;
/// A request and its response (docs/transport.md): cycles with 10,000 connections.
const GOAL: f64 = 600.0;
/// What it may cost more with a million.
const GROWTH: f64 = 1.5;
/// Bytes of an idle connection.
const IDLE: f64 = 512.0;

/// What is measured. Each gives TSC cycles of the server per unit.
trait Contestant {
    /// A request and a response of `size` bytes on each connection: per pair.
    fn pairs(&mut self, size: usize) -> Result<f64, Failure>;
    /// A segment of `size` bytes to the server on each connection: per segment.
    fn receive(&mut self, size: usize) -> Result<f64, Failure>;
    /// A segment of `size` bytes from the server on each connection, and its acknowledgment: per segment.
    fn send(&mut self, size: usize) -> Result<f64, Failure>;
    /// Ten full segments from the server on each connection at once, and their acknowledgments: per segment.
    fn burst(&mut self) -> Result<Option<f64>, Failure>;
    /// Open, request, response, close, on new connections: per connection.
    fn short(&mut self, kind: Short) -> Result<Option<f64>, Failure>;
}

/// Segments of a burst: what the initial window lets out.
const BURST: usize = 10;
/// Data of a full segment: bytes.
const FULL: usize = 1448;
/// Listeners of a group: one for each of a server's workers.
const QUEUES: usize = 64;

/// How connections that are used once come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Short {
    /// The client closes first, and waits the time out.
    ClientFirst,
    /// The server does.
    ServerFirst,
    /// The client does; connections are spread over a group of listeners.
    Group,
}

/// One quantity.
#[derive(Debug, Clone, Copy)]
enum What {
    Pair(usize),
    Receive(usize),
    Send(usize),
    Burst,
    Short(Short),
}

const ALL: [What; 9] = [
    What::Pair(64),
    What::Receive(64),
    What::Receive(1448),
    What::Send(64),
    What::Send(1448),
    What::Burst,
    What::Short(Short::ClientFirst),
    What::Short(Short::ServerFirst),
    What::Short(Short::Group),
];

impl What {
    fn name(self) -> (&'static str, usize) {
        match self {
            Self::Pair(size) => ("request and response", size),
            Self::Receive(size) => ("segment received", size),
            Self::Send(size) => ("segment sent", size),
            Self::Burst => ("segment of a burst of ten sent", FULL),
            Self::Short(Short::ClientFirst) => ("open, request, response, close", 64),
            Self::Short(Short::ServerFirst) => ("the same, the server closes first", 64),
            Self::Short(Short::Group) => ("the same, 64 listeners in a group", 64),
        }
    }

    fn measure(self, contestant: &mut dyn Contestant) -> Result<Option<f64>, Failure> {
        match self {
            Self::Pair(size) => contestant.pairs(size).map(Some),
            Self::Receive(size) => contestant.receive(size).map(Some),
            Self::Send(size) => contestant.send(size).map(Some),
            Self::Burst => contestant.burst(),
            Self::Short(kind) => contestant.short(kind),
        }
    }
}

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(folder) = &args.plots {
        return plots::write(folder, args.quick);
    }
    interrupt::keep_results();
    let eal =
        Eal::init(&EalOptions { megabytes: 64, memory: Memory::Plain, ..EalOptions::default() })?;
    let environment = Environment::of(eal, "none");
    say!("{}", environment.line());
    let [_, last] = machine::outermost();
    machine::pin(last)?;
    let rounds = if args.quick { 1 } else { args.rounds };
    let counts: Vec<usize> =
        args.connections.iter().copied().filter(|count| !args.quick || *count <= FEW).collect();
    let lwip = lwip::program().filter(|_| !args.no_yardstick);
    if lwip.is_none() && !args.no_yardstick {
        say!("lwIP is left out: `make bench` builds its program where liblwip-dev is installed");
    }
    let bar = progress(counts.len() * ALL.len());
    let mut results: Vec<Outcome> = Vec::new();
    'all: for count in counts {
        bar.set_message(format!("{count} connections"));
        let before = resident()?;
        let mut ours = Ours::new(count)?;
        let grown = resident()?.saturating_sub(before);
        let mut yardstick = match args.no_yardstick || count > FEW {
            true => None,
            false => Some(Smoltcp::new(count)?),
        };
        // A burst on each of a million connections would lie in 32 GB of buffers.
        for what in ALL.into_iter().filter(|what| count <= FEW || !matches!(what, What::Burst)) {
            let outcome = measure(what, count, rounds, &mut ours, yardstick.as_mut())?;
            let its = lwip.as_ref().filter(|_| count <= FEW);
            let its = its.and_then(|program| lwip::measure(program, what, count, rounds));
            let beside = its.map(|its| {
                outcome_of(what, count, outcome.samples.clone()).against(
                    "lwIP",
                    its.median(),
                    Better::Less,
                )
            });
            results.push(outcome);
            results.extend(beside);
            bar.inc(1);
            if interrupt::came() {
                break 'all;
            }
        }
        if count >= MANY {
            // Both stacks have each connection; the places of data buffers are not the stack's.
            let fifos = size_of::<transport::Pair<transport::Ring>>();
            let bytes = grown as f64 / (2 * count) as f64 - fifos as f64;
            let mut outcome = Outcome::new("idle connection", "bytes", Samples(vec![bytes]))
                .with(&[("connections", count.into())]);
            outcome.goal = Some((IDLE, Better::Less));
            results.push(outcome);
        }
    }
    bar.finish_and_clear();
    set_goals(&mut results);
    print(&results);
    let report = Report { environment, results };
    report.write(args.json.file())
}

fn measure(
    what: What,
    count: usize,
    rounds: u32,
    ours: &mut Ours,
    yardstick: Option<&mut Smoltcp>,
) -> Result<Outcome, Failure> {
    let mut contestants: Vec<&mut dyn Contestant> = vec![ours];
    contestants.extend(yardstick.map(|yardstick| yardstick as &mut dyn Contestant));
    let turns = alternate(&mut contestants, rounds, |contestant| {
        // Each turn begins with what the other has left in the caches, so its first pass does not count.
        what.measure(*contestant)?;
        what.measure(*contestant)
    })?;
    let mut samples = turns.into_iter().map(|turns| Samples(turns.into_iter().flatten().collect()));
    let outcome = outcome_of(what, count, samples.next().unwrap_or_default());
    match samples.next().filter(|its| !its.0.is_empty()) {
        Some(its) => Ok(outcome.against("smoltcp", its.median(), Better::Less)),
        None => Ok(outcome),
    }
}

fn outcome_of(what: What, count: usize, samples: Samples) -> Outcome {
    let (name, size) = what.name();
    let parameters: [(&str, Value); 2] = [("connections", count.into()), ("bytes", size.into())];
    Outcome::new(name, "cycles", samples).with(&parameters)
}

/// The goals of requests: so much with 10,000 connections, and not much more with a million.
fn set_goals(results: &mut [Outcome]) {
    let is_pair = |outcome: &Outcome, count: usize| {
        outcome.name == What::Pair(64).name().0
            && outcome.parameters.get("connections") == Some(&count.into())
    };
    let few = results.iter().find(|outcome| is_pair(outcome, FEW)).map(|outcome| outcome.value);
    for outcome in results {
        if is_pair(outcome, FEW) {
            outcome.goal = Some((GOAL, Better::Less));
        } else if let (true, Some(few)) = (is_pair(outcome, 1_000_000), few) {
            outcome.goal = Some((GROWTH * few, Better::Less));
        }
    }
}

/// Bytes of this process that are in memory.
fn resident() -> Result<u64, Failure> {
    let path = std::path::Path::new("/proc/self/statm");
    let failed = |source| Failure::File { path: path.into(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    Ok(pages.unwrap_or(0) * rustix::param::page_size() as u64)
}
