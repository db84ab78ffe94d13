//! What became of one case: better, worse, or no more than noise.

use serde::Serialize;

use super::pairs::Pair;
use super::statistics::{Interval, least_p, mann_whitney, median, ratio_of_medians};
use super::unit::{PLAIN, RATIO, Wording, wording};
use crate::archive::{Entry, Results};
use crate::results::Better;

/// A difference that would come about by chance more often than this is noise.
pub(super) const CHANCE: f64 = 0.05;
/// From so many runs on each side, each run is a trial; below, each sample is one.
pub(super) const RUNS: usize = 4;

/// What became of one case on one machine.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judged {
    /// Name and parameters.
    pub(crate) what: String,
    pub(crate) unit: String,
    pub(crate) verdict: Verdict,
    pub(crate) before: Option<Side>,
    pub(crate) after: Option<Side>,
    /// Whether the figures are ratios to this yardstick, as those of two machines have to be.
    pub(crate) ratio_to: Option<String>,
    /// By how much: the median after to that before, and its 95 % confidence interval.
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<[f64; 2]>,
    /// Of the test of Mann and Whitney: pairs of trials with the larger one before, and the two-sided chance of that.
    pub(crate) u: Option<f64>,
    pub(crate) p: Option<f64>,
    /// The yardstick's value after to that before, on the same machine: how much the machine itself has changed.
    pub(crate) yardstick_ratio: Option<f64>,
}

/// What one side has.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Side {
    pub(crate) machine: String,
    /// The median of all trials.
    pub(crate) value: f64,
    pub(crate) samples: usize,
    pub(crate) runs: usize,
}

/// What is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Worse,
    Better,
    /// By more than noise, but the unit does not tell which way is better, or figures lie below 0: of a difference, such as that
    /// of two delays, neither more nor less is better.
    Different,
    /// No more than noise.
    Noise,
    /// Both sides have the same figures.
    Same,
    /// Too few trials to tell.
    Few,
    /// Two machines, and no yardstick that both have.
    Machines,
    OnlyBefore,
    OnlyAfter,
}

/// The figures of a side, run by run.
struct Trials {
    machine: String,
    runs: Vec<Vec<f64>>,
}

impl Trials {
    fn of(results: &Results<'_>, machine: &str, figures: impl Fn(&Entry) -> Vec<f64>) -> Self {
        let own = results.iter().filter(|(run, _)| run.machine() == machine);
        let runs = own.map(|(_, entry)| figures(entry)).filter(|run| !run.is_empty());
        Self { machine: machine.to_owned(), runs: runs.collect() }
    }

    /// A figure for each run.
    fn by_run(&self) -> Vec<Vec<f64>> {
        self.runs.iter().map(|run| vec![median(&mut run.clone())]).collect()
    }

    fn side(&self) -> Option<Side> {
        let mut all = self.runs.concat();
        let (samples, runs) = (all.len(), self.runs.len());
        let value = median(&mut all);
        value.is_finite().then(|| Side { machine: self.machine.clone(), value, samples, runs })
    }
}

/// Judges a pair: once for each machine that both sides have results of, or else across machines. What neither side could
/// measure is not judged.
pub(super) fn judge(pair: &Pair<'_>) -> Vec<Judged> {
    let Some((_, entry)) = pair.before.first().or(pair.after.first()) else { return Vec::new() };
    let new = Judged {
        what: entry.title(),
        unit: crate::archive::printable(&entry.unit),
        verdict: Verdict::Few,
        before: None,
        after: None,
        ratio_to: None,
        ratio: None,
        interval: None,
        u: None,
        p: None,
        yardstick_ratio: None,
    };
    let (before, after) = (machines(&pair.before), machines(&pair.after));
    let one_sided = |results: &Results<'_>, machines: &[String]| {
        machines.first().and_then(|machine| Trials::of(results, machine, Entry::samples).side())
    };
    if before.is_empty() && after.is_empty() {
        return Vec::new();
    }
    if after.is_empty() {
        let before = one_sided(&pair.before, &before);
        return vec![Judged { verdict: Verdict::OnlyBefore, before, ..new }];
    }
    if before.is_empty() {
        let after = one_sided(&pair.after, &after);
        return vec![Judged { verdict: Verdict::OnlyAfter, after, ..new }];
    }
    let both: Vec<_> = before.iter().filter(|machine| after.contains(machine)).collect();
    if both.is_empty() {
        return vec![across(pair, &before[0], &after[0], new)];
    }
    both.into_iter().map(|machine| on_one(pair, machine, new.clone())).collect()
}

/// The machines of results that have figures, in their order.
fn machines(results: &Results<'_>) -> Vec<String> {
    let mut machines: Vec<String> = Vec::new();
    for (run, _) in results.iter().filter(|(_, entry)| !entry.samples().is_empty()) {
        let machine = run.machine();
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    machines
}

fn on_one(pair: &Pair<'_>, machine: &str, new: Judged) -> Judged {
    let of = |results| Trials::of(results, machine, Entry::samples);
    let wording = wording(&new.unit);
    let judged = weigh(&of(&pair.before), &of(&pair.after), wording, new);
    let yardstick = |results: &Results<'_>| {
        let own = results.iter().filter(|(run, _)| run.machine() == machine);
        median(&mut own.filter_map(|(_, entry)| entry.yardstick_value).collect::<Vec<_>>())
    };
    let same = |(_, entry): &(_, &Entry)| entry.yardstick.clone();
    let ratio = yardstick(&pair.after) / yardstick(&pair.before);
    let is_sound = pair.before.first().map(same) == pair.after.first().map(same);
    let yardstick_ratio = (is_sound && ratio.is_finite() && ratio > 0.0).then_some(ratio);
    Judged { yardstick_ratio, ..judged }
}

/// Figures of two machines say nothing of the code; their ratios to a yardstick that was measured in the same run do.
fn across(pair: &Pair<'_>, before: &str, after: &str, new: Judged) -> Judged {
    let yardstick = |results: &Results<'_>| results.first()?.1.yardstick.clone();
    let common = yardstick(&pair.before).filter(|own| yardstick(&pair.after).as_ref() == Some(own));
    let ratios =
        |results, machine| Trials::of(results, machine, |entry| entry.ratio.into_iter().collect());
    let (own, other) = (ratios(&pair.before, before), ratios(&pair.after, after));
    if let (Some(common), false, false) = (common, own.runs.is_empty(), other.runs.is_empty()) {
        let ratio_to = Some(crate::archive::printable(&common));
        return weigh(&own, &other, RATIO, Judged { ratio_to, ..new });
    }
    let of = |results, machine| Trials::of(results, machine, Entry::samples).side();
    let (before, after) = (of(&pair.before, before), of(&pair.after, after));
    Judged { verdict: Verdict::Machines, before, after, ..new }
}

/// Holds one side against the other.
fn weigh(before: &Trials, after: &Trials, wording: Wording, new: Judged) -> Judged {
    let by_runs = before.runs.len().min(after.runs.len()) >= RUNS;
    let trials = |side: &Trials| if by_runs { side.by_run() } else { side.runs.clone() };
    let (a, b) = (trials(before), trials(after));
    let (all_a, all_b) = (a.concat(), b.concat());
    let (Some(own), Some(other)) = (before.side(), after.side()) else {
        return Judged { before: before.side(), after: after.side(), ..new };
    };
    let value = |side: Side, trials: &[f64]| Side { value: median(&mut trials.to_vec()), ..side };
    let (own, other) = (value(own, &all_a), value(other, &all_b));
    let grown = other.value > own.value;
    let interval = ratio_of_medians(&a, &b);
    let test = mann_whitney(&all_a, &all_b);
    let one = |found: &Interval| found.low <= 1.0 && found.high >= 1.0;
    let is_difference = all_a.iter().chain(&all_b).any(|sample| *sample < 0.0);
    let verdict = if all_a.iter().chain(&all_b).all(|sample| *sample == own.value) {
        Verdict::Same
    } else if least_p(all_a.len(), all_b.len()) > CHANCE {
        Verdict::Few
    } else if test.is_none_or(|test| test.p > CHANCE) || interval.as_ref().is_some_and(one) {
        Verdict::Noise
    } else {
        match wording.better.filter(|_| !is_difference) {
            None => Verdict::Different,
            Some(Better::More) if grown => Verdict::Better,
            Some(Better::Less) if !grown => Verdict::Better,
            Some(_) => Verdict::Worse,
        }
    };
    Judged {
        verdict,
        before: Some(own),
        after: Some(other),
        ratio: interval.map(|found| found.ratio),
        interval: interval.map(|found| [found.low, found.high]),
        u: test.map(|test| test.u),
        p: test.map(|test| test.p),
        ..new
    }
}

impl Judged {
    /// How its change is spoken of.
    pub(super) fn wording(&self) -> Wording {
        match self.verdict {
            Verdict::Different => PLAIN,
            _ if self.ratio_to.is_some() => RATIO,
            _ => wording(&self.unit),
        }
    }

    /// Whether it seems to differ, while a side has too few runs to show how much those of one build do.
    pub(super) fn is_of_few_runs(&self) -> bool {
        let few = |side: &Option<Side>| side.as_ref().is_some_and(|side| side.runs < RUNS);
        matches!(self.verdict, Verdict::Better | Verdict::Worse | Verdict::Different)
            && (few(&self.before) || few(&self.after))
    }

    /// By how much its figures got worse, as far as that is more than noise: percent.
    pub(super) fn worse_by(&self) -> Option<f64> {
        if self.verdict != Verdict::Worse {
            return None;
        }
        // Without a ratio it came from nothing, or went below it.
        Some(self.ratio.map_or(f64::INFINITY, |ratio| (ratio - 1.0).abs() * 100.0))
    }
}
