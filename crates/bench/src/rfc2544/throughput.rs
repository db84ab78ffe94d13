//! Throughput (RFC 2544 26.1).

use measure::load::Sizes;
use measure::outcome::Counts;
use measure::search::{Grid, Throughput};

use super::Session;
use crate::failure::Failure;
use crate::results::Samples;

/// The highest load without loss.
#[derive(Debug)]
pub(super) struct Measured {
    /// bit/s on the wire, each way, of each search.
    pub(super) rates: Vec<f64>,
    /// The highest load that was tried.
    pub(super) top: f64,
    /// What the trials at these loads counted together.
    pub(super) counts: Counts,
    /// The trials of the step above the last answer were void: the tester can do no more, the device may.
    pub(super) by_tester: bool,
    pub(super) trials: u32,
}

impl Measured {
    /// The median of the searches: bit/s.
    pub(super) fn rate(&self) -> f64 {
        Samples(self.rates.clone()).median()
    }
}

/// One answer: its step, what the trial there counted, and whether the step above was void.
struct Found {
    step: u32,
    counts: Counts,
    by_tester: bool,
}

/// Searches as often as the scenario says. `None`: it was interrupted before any load had passed.
pub(super) fn measure(
    session: &mut Session<'_>,
    sizes: Sizes,
    top: f64,
) -> Result<Option<Measured>, Failure> {
    let (grid, searches) =
        (Grid::new(top, session.scenario.trials.resolution), session.scenario.trials.searches);
    let none =
        Measured { rates: Vec::new(), top, counts: Counts::default(), by_tester: false, trials: 0 };
    let mut measured = none;
    for number in 1..=searches {
        let which =
            if searches > 1 { format!(", search {number} of {searches}") } else { String::new() };
        let Some(found) = search(session, sizes, &grid, &which, &mut measured.trials)? else {
            break;
        };
        measured.rates.push(grid.load(found.step));
        measured.counts = measured.counts.plus(found.counts);
        measured.by_tester = found.by_tester;
        if session.is_stopped() {
            break;
        }
    }
    Ok((!measured.rates.is_empty()).then_some(measured))
}

/// Searches once. `which`: of how many, for people.
fn search(
    session: &mut Session<'_>,
    sizes: Sizes,
    grid: &Grid,
    which: &str,
    trials: &mut u32,
) -> Result<Option<Found>, Failure> {
    let scenario = &session.scenario.trials;
    let (tolerated, seconds) = (scenario.loss, scenario.seconds);
    let mut search = Throughput::new(scenario.strategy(), grid.steps());
    let (mut found, mut lowest_void, mut latest) = (None, None, None);
    while let Some(step) = search.next() {
        let rate = grid.load(step);
        session.bar.set_message(format!(
            "{sizes} B: throughput at {:.1} %{which}, up to {} trials left",
            100.0 * rate / grid.load(grid.steps()),
            search.left()
        ));
        let load = session.lasting(sizes, rate, seconds);
        let outcome = session.trial(&load, tolerated)?;
        if session.is_stopped() {
            break;
        }
        *trials += 1;
        let passed = outcome.as_ref().is_some_and(|outcome| outcome.loss() <= tolerated);
        if outcome.is_none() {
            lowest_void = Some(step);
        }
        if let Some(outcome) = outcome {
            latest = Some(outcome.total());
            if passed {
                found = Some((step, outcome.total()));
            }
        }
        search.tell(step, passed);
    }
    let answer = search.answer();
    let found = found.filter(|(step, _)| Some(*step) == answer);
    // No load passed: the answer is 0, with what the trial at the lowest load counted. If all trials were void, there is none.
    let none = latest.filter(|_| search.next().is_none()).map(|counts| (0, counts));
    Ok(found.or(none).map(|(step, counts)| Found {
        step,
        counts,
        by_tester: lowest_void == Some(step + 1),
    }))
}
