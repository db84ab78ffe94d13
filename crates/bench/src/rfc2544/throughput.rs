//! Throughput (RFC 2544 26.1).

use measure::load::Sizes;
use measure::outcome::Counts;
use measure::search::{Grid, Throughput};

use super::trial::{Load, Outcome};
use super::{Session, Tried};
use crate::failure::Failure;
use crate::results::Samples;

/// Frames each way of a trial that can tell that a load is without loss: the search goes no lower.
const FEWEST: u64 = 500;

/// The highest load without loss.
#[derive(Debug)]
pub(super) struct Measured {
    /// bit/s on the wire, each way, of each search. 0: frames were lost at every load down to the least.
    pub(super) rates: Vec<f64>,
    /// The highest load that was tried.
    pub(super) top: f64,
    /// What the trials at these loads counted together.
    pub(super) counts: Counts,
    /// The trials of the step above the last answer were void: the tester can do no more, the device may.
    pub(super) by_tester: bool,
    /// An interrupt, or a device that went away, has cut the only search short: its answer is the highest load that had passed by
    /// then.
    pub(super) is_cut: bool,
    /// All trials, in their order.
    pub(super) tried: Vec<Tried>,
}

impl Measured {
    /// Nothing yet; no load will be above `top`: bit/s.
    fn new(top: f64) -> Self {
        Self {
            rates: Vec::new(),
            top,
            counts: Counts::default(),
            by_tester: false,
            is_cut: false,
            tried: Vec::new(),
        }
    }

    /// The median of the searches: bit/s.
    pub(super) fn rate(&self) -> f64 {
        Samples(self.rates.clone()).median()
    }

    /// Takes the answer of a search. `false`: it was cut short, and says less than those before it.
    fn take(&mut self, found: &Found) -> bool {
        if found.is_cut && !self.rates.is_empty() {
            return false;
        }
        self.rates.push(found.rate);
        self.counts = self.counts.plus(found.counts);
        self.by_tester = found.by_tester;
        self.is_cut = found.is_cut;
        true
    }
}

/// One answer: bit/s on the wire, what the trial there counted, whether the load above was void, and whether loads were left that
/// could be tried.
struct Found {
    rate: f64,
    counts: Counts,
    by_tester: bool,
    is_cut: bool,
}

/// A search of one grid.
struct Search<'a> {
    sizes: Sizes,
    /// The highest load of all: bit/s.
    top: f64,
    /// Which search of how many, for people.
    which: &'a str,
    /// Whether the grid's top is known to fail, and whether all of its trials were void.
    top_fails: bool,
    top_is_void: bool,
}

/// Searches as often as the scenario says. `None`: it was interrupted before any load had passed.
pub(super) fn measure(
    session: &mut Session<'_>,
    sizes: Sizes,
    top: f64,
) -> Result<Option<Measured>, Failure> {
    let searches = session.scenario.trials.searches;
    session.tried.clear();
    let mut measured = Measured::new(top);
    for number in 1..=searches {
        let which =
            if searches > 1 { format!(", search {number} of {searches}") } else { String::new() };
        let Some(found) = search(session, sizes, top, &which)? else { break };
        if !measured.take(&found) || session.is_stopped() {
            break;
        }
    }
    measured.tried = std::mem::take(&mut session.tried);
    Ok((!measured.rates.is_empty()).then_some(measured))
}

/// Searches once: where the lowest step loses frames, in ever finer steps below it, down to a load that offers hardly any.
fn search(
    session: &mut Session<'_>,
    sizes: Sizes,
    top: f64,
    which: &str,
) -> Result<Option<Found>, Failure> {
    let mut grid = Grid::new(top, session.scenario.trials.resolution);
    let mut search = Search { sizes, top, which, top_fails: false, top_is_void: false };
    let mut lossy = None;
    loop {
        let found = search.steps(session, &grid)?;
        if found.as_ref().is_some_and(|found| found.rate > 0.0) {
            return Ok(found);
        }
        if session.is_stopped() {
            // Lower loads were left.
            return Ok(None);
        }
        search.top_is_void = found.as_ref().is_none_or(|found| found.by_tester);
        // If all trials were void there is no answer, not even that the device loses frames at every load.
        lossy = found.or(lossy);
        (grid, search.top_fails) = (grid.below(), true);
        let seconds = session.scenario.trials.seconds;
        if session.lasting(sizes, grid.load(1), seconds).frames < FEWEST {
            return Ok(lossy);
        }
    }
}

impl Search<'_> {
    /// Searches the steps of a grid.
    fn steps(&self, session: &mut Session<'_>, grid: &Grid) -> Result<Option<Found>, Failure> {
        let scenario = &session.scenario.trials;
        let (tolerated, seconds) = (scenario.loss, scenario.seconds);
        let begin = if self.top_fails { Throughput::below } else { Throughput::new };
        let mut search = begin(scenario.strategy(), grid.steps());
        let (mut found, mut lowest_void, mut latest) = (None, None, None);
        while let Some(step) = search.next() {
            let rate = grid.load(step);
            let share = 100.0 * rate / self.top;
            let digits = if share < 1.0 { 4 } else { 1 };
            session.bar.set_message(format!(
                "{} B: throughput at {share:.digits$} %{}, up to {} loads left",
                self.sizes,
                self.which,
                search.left()
            ));
            let load = session.lasting(self.sizes, rate, seconds);
            let outcome = attempt(session, &load, tolerated)?;
            if session.is_stopped() {
                break;
            }
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
            rate: grid.load(step),
            counts,
            by_tester: lowest_void == Some(step + 1)
                || self.top_is_void && step + 1 == grid.steps(),
            is_cut: search.next().is_some(),
        }))
    }
}

/// Trials at a load until one passes, as many as the scenario grants; one that lost frames counts where those that repeat it are
/// void. `None`: all were void, or the user wants no more.
fn attempt(
    session: &mut Session<'_>,
    load: &Load,
    tolerated: f64,
) -> Result<Option<Outcome>, Failure> {
    let mut outcome = None;
    for _ in 0..=session.scenario.trials.repeats {
        let Some(again) = session.trial(load, tolerated)? else { break };
        let passed = again.loss() <= tolerated;
        outcome = Some(again);
        if passed {
            break;
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_was_cut_short_counts_only_alone() {
        let found =
            |rate, is_cut| Found { rate, counts: Counts::default(), by_tester: false, is_cut };
        let mut whole = Measured::new(1e9);
        assert!(whole.take(&found(5e8, false)) && !whole.take(&found(1e8, true)));
        assert_eq!((&whole.rates[..], whole.is_cut), (&[5e8][..], false));
        let mut cut = Measured::new(1e9);
        assert!(cut.take(&found(1e8, true)) && cut.is_cut);
    }
}
