//! `millrace-bench queue`: packet queues between two processes, each on a core of its own, beside
//! `dpdk-testpmd` over memif and over vhost-user.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | the command line |
//! | `cases` | what is measured |
//! | `memory`, `orders` | what the two processes share, and say to each other |
//! | `carry`, `look`, `wake` | what they do with packets |
//! | `ours`, `peer` | this process, and the other |
//! | `pair` | two dpdk-testpmd |
//! | `rounds` | turns, in one phase of the machine |
//! | `show` | results |

mod args;
mod carry;
mod cases;
mod look;
mod memory;
mod orders;
mod ours;
mod pair;
pub(crate) mod peer;
mod rounds;
mod show;
mod wake;

pub(crate) use args::{Args, Peer};

use std::time::Duration;

use dpdk::{Eal, EalOptions, Memory};
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::interrupt;
use crate::machine::{self, Environment};
use crate::results::{Report, Samples};
use crate::terminal::{progress, say};
use cases::Case;
use ours::{Ours, WakeUps};
use pair::{Kind, Pair};
use rounds::{Contest, Contestant, Turn};

/// Hugepages that two dpdk-testpmd need: MB.
const MEGABYTES: u32 = 112;
/// Length of a sample: short, so that some have the cores to themselves.
const SAMPLE: Duration = Duration::from_millis(20);
/// Wake-ups that are timed.
const WAKE_UPS: u32 = 500;

/// All that was measured.
struct Findings {
    contests: Vec<Contest>,
    /// By frame size: nanoseconds of round trips of one packet.
    trips: Vec<(u16, Samples)>,
    wake_ups: Vec<WakeUps>,
}

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let memory = if args.no_huge { Memory::Plain } else { Memory::Auto };
    interrupt::keep_results();
    let eal = Eal::init(&EalOptions { megabytes: MEGABYTES, memory, ..EalOptions::default() })?;
    let environment = Environment::of(eal, "none");
    say!("{}", environment.lines());
    let cores = machine::outermost();
    if cores[0] == cores[1] {
        say!("there is one core only: both processes share it, and the numbers mean little");
    }
    let mut ours = Ours::start(cores)?;
    let findings = measure(args, &mut ours, cores, eal.hugepages())?;
    show::print(&findings);
    let report = Report { environment, results: show::outcomes(&findings) };
    report.write(args.json.file())
}

fn measure(
    args: &Args,
    ours: &mut Ours,
    cores: [usize; 2],
    hugepages: bool,
) -> Result<Findings, Failure> {
    let cases = cases::of(args);
    let folder = tempfile::tempdir()?;
    let sizes = cases::sizes(&cases);
    let bar = progress(cases.len() + sizes.len() + wake::PAUSES.len());
    let mut contests = Vec::new();
    let (small, jumbo): (Vec<Case>, Vec<Case>) = cases.iter().partition(|case| !case.is_jumbo());
    for group in [small, jumbo].iter().filter(|group| !group.is_empty()) {
        let jumbo = group.iter().any(|case| case.is_jumbo());
        let mut pairs = Vec::new();
        if !args.no_yardstick {
            bar.set_message("dpdk-testpmd starts");
            for kind in Kind::ALL {
                pairs.push(Pair::start(kind, folder.path(), cores, hugepages, jumbo)?);
            }
        }
        contests.extend(contest(args, group, ours, &mut pairs, cores, &bar)?);
        if interrupt::came() {
            break;
        }
    }
    let (mut trips, mut wake_ups) = (Vec::new(), Vec::new());
    for size in sizes {
        if interrupt::came() {
            break;
        }
        bar.set_message(format!("{size} B: single packets"));
        trips.push((size, ours.trips(size)?));
        bar.inc(1);
    }
    let packets = if args.quick { WAKE_UPS / 10 } else { WAKE_UPS };
    for pause in wake::PAUSES {
        if interrupt::came() {
            break;
        }
        bar.set_message(format!("wake-up, a packet every {pause:?}"));
        wake_ups.push(ours.wake_ups(packets, pause)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Findings { contests, trips, wake_ups })
}

fn contest(
    args: &Args,
    cases: &[Case],
    ours: &mut Ours,
    pairs: &mut [Pair],
    cores: [usize; 2],
    bar: &ProgressBar,
) -> Result<Vec<Contest>, Failure> {
    let turn = Turn { samples: if args.quick { 2 } else { 5 }, sample: SAMPLE };
    let rounds = if args.quick { 1 } else { args.rounds };
    let mut contests = Vec::new();
    for case in cases {
        bar.set_message(case.to_string());
        let mut yardsticks: Vec<&mut dyn Contestant> = Vec::new();
        yardsticks.extend(pairs.iter_mut().map(|pair| pair as &mut dyn Contestant));
        contests.push(Contest::run(*case, turn, rounds, cores, ours, &mut yardsticks)?);
        bar.inc(1);
        if interrupt::came() {
            break;
        }
    }
    Ok(contests)
}
