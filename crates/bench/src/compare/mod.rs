//! What changed between two sets of results, in words, and whether it is more than noise.
//!
//! | module | job |
//! | --- | --- |
//! | `pairs` | which result belongs to which |
//! | `statistics` | whether two groups of samples differ, and by how much |
//! | `judge` | better, worse, or noise |
//! | `unit` | which direction is better |
//! | `words`, `environments` | what is said |

mod args;
mod environments;
mod judge;
mod pairs;
mod statistics;
#[cfg(test)]
mod tests;
mod unit;
mod words;

use std::path::Path;

pub(crate) use args::Args;
pub(crate) use judge::{Judged, Verdict};
pub(crate) use words::summary;

use crate::archive::{self, Run};
use crate::failure::Failure;
use crate::results::write_json;
use crate::terminal::{progress, say};

/// Compares, and says what came of it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let [a, b] = args.sides().map_or_else(archive::two_newest, Ok)?;
    let (before, after) = (archive::load(&a)?, archive::load(&b)?);
    for (side, runs, path) in [("A", &before, &a), ("B", &after, &b)] {
        say!("{side}: {}", origin(runs, path));
        runs.iter().filter_map(Run::disturbed).for_each(|words| say!("   {words}"));
    }
    let differences = environments::differences(&before, &after);
    if !differences.is_empty() {
        say!("what differs besides: {}", differences.join("; "));
    }
    let judged = compare(&before, &after);
    say!("");
    judged.iter().for_each(|judged| say!("{}", judged.line()));
    say!("\n{}", summary(&judged));
    if let Some(path) = &args.json {
        write_json(path, &judged)?;
    }
    refuse(&judged, args.fail_on_worse)
}

/// Every case of both sides, judged: what got worse first, then what got better.
pub(crate) fn compare(before: &[Run], after: &[Run]) -> Vec<Judged> {
    let pairs = pairs::pairs(before, after);
    let bar = progress(pairs.len());
    let mut judged = Vec::new();
    for pair in &pairs {
        judged.extend(judge::judge(pair));
        bar.inc(1);
    }
    bar.finish_and_clear();
    judged.sort_by_key(|judged| match judged.verdict {
        Verdict::Worse => 0,
        Verdict::Better => 1,
        Verdict::Different => 2,
        _ => 3,
    });
    judged
}

/// Where a side comes from: `before (3 runs; Xeon, 2 cores)`.
fn origin(runs: &[Run], path: &Path) -> String {
    let mut machines: Vec<String> = runs.iter().map(Run::machine).collect();
    machines.sort();
    machines.dedup();
    let count = runs.len();
    let runs = if count == 1 { "run" } else { "runs" };
    format!("{} ({count} {runs}; {})", path.display(), machines.join("; "))
}

/// Fails if something got worse by more than so many percent.
fn refuse(judged: &[Judged], limit: Option<f64>) -> Result<(), Failure> {
    let Some(percent) = limit else { return Ok(()) };
    let worse = judged.iter().filter_map(Judged::worse_by).filter(|by| *by > percent);
    match worse.count() {
        0 => Ok(()),
        count => Err(Failure::Worse { count, percent }),
    }
}
