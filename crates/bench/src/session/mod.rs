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
use serde_json::Value;

use crate::failure::Failure;
use crate::machine::Environment;
use crate::results::{Better, Outcome, Report, Samples, print};
use crate::terminal::{progress, say};

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

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let eal = Eal::init(&EalOptions { memory: Memory::Plain, ..EalOptions::default() })?;
    let environment = Environment::of(eal, "none");
    say!("{}", environment.line());
    let extent = if args.quick {
        Extent { rounds: 1, time: Duration::from_millis(20), messages: 20_000, most_threads: 2 }
    } else {
        let time = Duration::from_millis(200);
        Extent { rounds: args.rounds, time, messages: 400_000, most_threads: MOST }
    };
    let bar = progress(3);
    bar.set_message("tables of connections");
    let mut results = table::measure(extent)?;
    bar.inc(1);
    bar.set_message("control messages");
    results.extend(control::measure(extent)?);
    bar.inc(1);
    bar.set_message("waiting");
    results.extend(waiting::measure(extent)?);
    bar.finish_and_clear();
    print(&results);
    let report = Report { environment, results };
    report.write(args.json.as_deref())
}

/// Numbers of threads.
fn threads(extent: Extent) -> impl Iterator<Item = usize> {
    (0..).map(|power| 1 << power).take_while(move |count| *count <= extent.most_threads)
}

/// A quantity and that of its yardstick, measured in the same rounds: the ratio is that of the rounds.
fn beside(
    name: &str,
    unit: &'static str,
    parameters: &[(&str, Value)],
    (ours, yardstick, its): (Samples, &str, &Samples),
    better: Better,
) -> Outcome {
    let rounds = ours.0.iter().zip(&its.0);
    let ratios = rounds.map(|(ours, its)| match better {
        Better::More => ours / its,
        Better::Less => its / ours,
    });
    let ratio = Samples(ratios.collect()).median();
    let mut outcome = Outcome::new(name, unit, ours).with(parameters);
    outcome.compare(yardstick, its.median(), better);
    outcome.ratio = Some(ratio).filter(|ratio| ratio.is_finite());
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part gives what it is asked for; how fast depends on the machine.
    #[test]
    fn all_parts_measure() {
        let time = Duration::from_millis(2);
        let extent = Extent { rounds: 1, time, messages: 500, most_threads: 2 };
        let all = [table::measure(extent), control::measure(extent), waiting::measure(extent)];
        let [table, control, waiting] = all.map(|part| part.unwrap());
        assert_eq!((table.len(), control.len()), (2, 4));
        for outcome in table.iter().chain(&control) {
            assert!(outcome.value > 0.0 && outcome.ratio.is_some(), "{}", outcome.name);
        }
        assert!(waiting.len() > 3);
    }

    #[test]
    fn ratios_are_those_of_rounds() {
        let its = Samples(vec![1.0, 10.0]);
        let of = |better| {
            let ours = Samples(vec![2.0, 20.0]);
            beside("x", "1/s", &[], (ours, "y", &its), better).ratio.unwrap()
        };
        assert_eq!((of(Better::More), of(Better::Less)), (2.0, 0.5));
    }
}
