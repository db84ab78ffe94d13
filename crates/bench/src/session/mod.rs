//! `millrace-bench session`: three problems of sockets in user space, and what answers cost beside what they replace.
//!
//! | module | problem |
//! | --- | --- |
//! | `table` | finding a session: a table behind a lock, or the descriptor as its index |
//! | `control` | control messages of many threads for one: one lock, tokens, or a queue per pair |
//! | `waiting` | waiting for sessions and the kernel's files: polling, or sleeping |

mod args;
mod control;
mod table;
mod waiting;

pub(crate) use args::Args;

use std::time::Duration;

use dpdk::{Eal, EalOptions, Memory};

use crate::failure::Failure;
use crate::interrupt;
use crate::machine::Environment;
use crate::results::{Outcome, Report, print};
use crate::terminal::{Parts, say};

/// Most threads at a time.
const MOST: usize = 8;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Extent {
    rounds: u32,
    /// Of a turn that has a length.
    time: Duration,
    /// Messages of a turn that has a number of them.
    messages: usize,
    most_threads: usize,
}

/// What measures a part.
type Part = fn(Extent, &Parts) -> Result<Vec<Outcome>, Failure>;

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    interrupt::keep_results();
    let eal = Eal::init(&EalOptions { memory: Memory::Plain, ..EalOptions::default() })?;
    let environment = Environment::of(eal, "none");
    say!("{}", environment.line());
    let extent = if args.quick {
        Extent { rounds: 1, time: Duration::from_millis(20), messages: 20_000, most_threads: 2 }
    } else {
        let time = Duration::from_millis(200);
        Extent { rounds: args.rounds, time, messages: 400_000, most_threads: MOST }
    };
    let parts: [(_, usize, Part); 3] = [
        ("tables of connections", table::steps(extent), table::measure),
        ("control messages", control::steps(extent), control::measure),
        ("waiting", waiting::steps(extent), waiting::measure),
    ];
    let bar = Parts::new(parts.iter().map(|(_, steps, _)| steps).sum());
    let mut results = Vec::new();
    for (name, steps, measure) in parts {
        bar.begin(name, steps);
        results.extend(measure(extent, &bar)?);
        if interrupt::came() {
            break;
        }
    }
    bar.finish();
    print(&results);
    let report = Report { environment, results };
    report.write(args.json.file())
}

/// Numbers of threads.
fn threads(extent: Extent) -> impl Iterator<Item = usize> {
    (0..).map(|power| 1 << power).take_while(move |count| *count <= extent.most_threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part gives what it is asked for; how fast depends on the machine.
    #[test]
    fn all_parts_measure() {
        let time = Duration::from_millis(2);
        let extent = Extent { rounds: 1, time, messages: 500, most_threads: 2 };
        let parts: [Part; 3] = [table::measure, control::measure, waiting::measure];
        let [table, control, waiting] =
            parts.map(|measure| measure(extent, &Parts::new(0)).unwrap());
        assert_eq!((table.len(), control.len()), (2, 4));
        for outcome in table.iter().chain(&control) {
            assert!(outcome.value > 0.0 && outcome.ratio.is_some(), "{}", outcome.name);
        }
        assert!(waiting.len() > 3);
    }
}
