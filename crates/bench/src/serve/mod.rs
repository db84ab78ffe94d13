//! `millrace-bench serve`: NGINX on Millrace beside the same NGINX on the kernel, asked by the same `wrk`.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | the command line |
//! | `cases` | what is asked of NGINX |
//! | `path` | the paths between client and server |
//! | `bed` | namespaces, the daemon, and how programs are started in them |
//! | `nginx`, `wrk` | the server, and the load |
//! | `rounds` | turns |
//! | `idle`, `hold` | what connections cost that do nothing, and who holds them |
//! | `others` | `iperf3` and `redis-benchmark` |
//! | `show` | tables and results |

mod args;
mod bed;
mod cases;
pub(crate) mod hold;
mod idle;
mod nginx;
mod others;
mod path;
mod rounds;
mod show;
mod wrk;

pub(crate) use args::{Args, Hold};

use std::time::Duration;

use dpdk::{Eal, EalOptions, Memory};

use crate::failure::Failure;
use crate::machine::Environment;
use crate::process::{self, Program, is_installed};
use crate::results::Report;
use crate::terminal::{Parts, say};
use crate::{interrupt, namespace};

use bed::Bed;
use idle::Idle;
use others::Other;
use path::Path;
use rounds::{Contest, Servers};

/// Length of a turn: `wrk` counts in seconds.
const TURN: Duration = Duration::from_secs(1);
/// What it takes besides Millrace's own programs.
const PROGRAMS: [Program; 3] = [("nginx", "nginx"), ("wrk", "wrk"), ("taskset", "util-linux")];

/// All that was measured.
struct Findings {
    contests: Vec<Contest>,
    idle: Vec<Idle>,
    others: Vec<Other>,
}

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check(process::is_root(), &is_installed)?;
    interrupt::keep_results();
    let eal = Eal::init(&EalOptions { memory: Memory::Plain, ..EalOptions::default() })?;
    let environment = Environment::of(eal, "none");
    say!("{}", environment.line());
    let bed = Bed::make(args)?;
    say!("{}", bed.line());
    let findings = measure(args, &bed)?;
    show::print(&findings);
    let report = Report { environment, results: show::outcomes(&findings) };
    report.write(args.json.file())
}

/// Refuses where it cannot run. `has`: whether a program is installed.
fn check(is_root: bool, has: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
    let lacking = namespace::lacks(is_root, has).or_else(|| process::lacks(&PROGRAMS, has));
    lacking.map_or(Ok(()), |why| Err(Failure::Serve(format!("serve: {why}"))))
}

fn measure(args: &Args, bed: &Bed) -> Result<Findings, Failure> {
    let cases = cases::of(args, bed.most_workers());
    let all = Path::ALL.into_iter();
    let paths: Vec<Path> =
        all.filter(|path| args.paths.is_empty() || args.paths.contains(path)).collect();
    let rounds = if args.quick { 1 } else { args.rounds };
    let turns = paths.len() * rounds as usize;
    let idle_steps = if args.no_idle { 0 } else { idle::steps(&paths) };
    let other_steps = if args.no_others { 0 } else { others::steps(&paths, rounds) };
    let bar = Parts::new(cases.len() * turns + idle_steps + other_steps);
    let mut contests = Vec::new();
    let mut idle = Vec::new();
    'all: for group in cases.chunk_by(|one, other| one.workers == other.workers) {
        let Some(first) = group.first() else { continue };
        let servers = Servers::start(bed, &paths, first.workers)?;
        for case in group {
            bar.begin(case.to_string(), turns);
            contests.push(Contest::run(bed, &servers, *case, &paths, rounds, &bar)?);
            if interrupt::came() {
                break 'all;
            }
        }
        if idle.is_empty() && !args.no_idle {
            bar.begin("idle connections", idle_steps);
            let connections = if args.quick { 100 } else { args.idle_connections };
            idle = idle::measure(bed, &paths, connections, &bar)?;
        }
    }
    let others = if args.no_others || interrupt::came() {
        Vec::new()
    } else {
        others::measure(bed, &paths, rounds, &bar)?
    };
    bar.finish();
    Ok(Findings { contests, idle, others })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_before_anything_is_started() {
        let said = |is_root, lacks: &str| {
            check(is_root, &|name: &str| name != lacks).map_err(|why| why.to_string())
        };
        assert!(said(false, "").unwrap_err().contains("run this as root"));
        for (program, package) in [("wrk", "wrk"), ("nginx", "nginx"), ("nsenter", "util-linux")] {
            let why = said(true, program).unwrap_err();
            assert!(why.contains(program) && why.contains(package), "{why}");
        }
        assert!(said(true, "").is_ok());
    }
}
