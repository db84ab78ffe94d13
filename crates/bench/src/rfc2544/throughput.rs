//! Throughput (RFC 2544 26.1).

use measure::load::Sizes;
use measure::outcome::Counts;
use measure::search::{Grid, Throughput};

use super::Session;
use crate::failure::Failure;

/// The highest load without loss.
#[derive(Debug)]
pub(super) struct Measured {
    /// bit/s on the wire, each way.
    pub(super) rate: f64,
    /// The highest load that was tried.
    pub(super) top: f64,
    /// What the trial at that load counted.
    pub(super) counts: Counts,
    /// The next step's trials were void: the tester can do no more, the device may.
    pub(super) by_tester: bool,
    pub(super) trials: u32,
}

/// Searches. `None`: it was interrupted before any load had passed.
pub(super) fn measure(
    session: &mut Session<'_>,
    sizes: Sizes,
    top: f64,
) -> Result<Option<Measured>, Failure> {
    let trials = &session.scenario.trials;
    let (tolerated, seconds) = (trials.loss, trials.seconds);
    let grid = Grid::new(top, trials.resolution);
    let mut search = Throughput::new(trials.strategy(), grid.steps());
    let (mut found, mut lowest_void, mut count, mut latest) = (None, None, 0, Counts::default());
    while let Some(step) = search.next() {
        let rate = grid.load(step);
        session.bar.set_message(format!(
            "{sizes} B: throughput at {:.1} %, up to {} trials left",
            100.0 * rate / top,
            search.left()
        ));
        let load = session.lasting(sizes, rate, seconds);
        let outcome = session.trial(&load)?;
        if session.is_stopped() {
            break;
        }
        count += 1;
        let passed = outcome.as_ref().is_some_and(|outcome| outcome.loss() <= tolerated);
        if outcome.is_none() {
            lowest_void = Some(step);
        }
        if let Some(outcome) = outcome {
            latest = outcome.total();
            if passed {
                found = Some((step, latest));
            }
        }
        search.tell(step, passed);
    }
    let answer = search.answer();
    let found = found.filter(|(step, _)| Some(*step) == answer);
    // No load passed: the answer is 0, with what the trial at the lowest load counted.
    let none = search.next().is_none().then_some((0, latest));
    let found = found.or(none);
    Ok(found.map(|(step, counts)| Measured {
        rate: grid.load(step),
        top,
        counts,
        by_tester: lowest_void == Some(step + 1),
        trials: count,
    }))
}
