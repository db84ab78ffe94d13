//! The results of a command, each machine's beside the others'.

use super::machines::Machine;
use super::sheet::{DOUBTFUL, Sheet};
use crate::archive::{Case, Cases, Entry, Goal, Results, Run, beside, quantity};
use crate::results::{Better, Samples, verdict};

/// What all runs of one case on one machine come to.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    pub(super) value: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) yardstick: Option<(String, f64)>,
    pub(super) ratio: Option<f64>,
    pub(super) goal: Option<Goal>,
    /// Whether the value is only known to be no less.
    pub(super) is_least: bool,
    /// Whether one of its runs was disturbed.
    pub(super) disturbed: bool,
}

impl Figure {
    /// `None` where nothing was measured.
    pub(super) fn of(results: &Results<'_>, machine: &Machine) -> Option<Self> {
        let own = results.iter().filter(|(run, _)| machine.has(run));
        let disturbed = own.clone().any(|(run, _)| run.disturbed().is_some());
        let own: Vec<&Entry> = own.map(|(_, entry)| *entry).collect();
        let samples = Samples(own.iter().flat_map(|entry| entry.samples()).collect());
        let median = |of: fn(&Entry) -> Option<f64>| {
            let median = Samples(own.iter().filter_map(|entry| of(entry)).collect()).median();
            median.is_finite().then_some(median)
        };
        let name = own.iter().find_map(|entry| entry.yardstick.clone());
        samples.median().is_finite().then(|| Self {
            value: samples.median(),
            least: samples.min(),
            most: samples.max(),
            yardstick: name.zip(median(|entry| entry.yardstick_value)),
            ratio: median(|entry| entry.ratio),
            goal: own.iter().find_map(|entry| entry.goal),
            is_least: own.iter().any(|entry| entry.is_least()),
            disturbed,
        })
    }

    /// What stands in the columns of its machine.
    fn cells(&self, unit: &str) -> [String; 5] {
        let or_nothing = |text: Option<String>| text.unwrap_or_default();
        let yardstick = self.yardstick.as_ref();
        let spread = format!("{} to {}", beside(self.least, unit), beside(self.most, unit));
        let goal = self.goal.map(|goal| {
            let (sign, met) = match goal.better {
                Better::Less => ("at most", self.value <= goal.value),
                Better::More => ("at least", self.value >= goal.value),
            };
            format!("{sign} {}: {}", beside(goal.value, unit), verdict(met))
        });
        let least = if self.is_least { "at least " } else { "" };
        let mark = if self.disturbed { DOUBTFUL } else { "" };
        [
            format!("{least}{} {mark}", quantity(self.value, unit)).trim_end().to_owned(),
            if self.least < self.most { spread } else { String::new() },
            or_nothing(yardstick.map(|(name, its)| format!("{name} {}", beside(*its, unit)))),
            or_nothing(self.ratio.map(|ratio| format!("{ratio:.2}"))),
            or_nothing(goal),
        ]
    }
}

/// The table of a command. The machines' names are in its header.
pub(super) fn sheet(command: &str, runs: &[Run], machines: &[Machine]) -> Sheet {
    let cases = Cases::of(runs);
    let mut header = vec!["what".to_owned()];
    for machine in machines {
        header.push(machine.label.clone());
        let more = ["least to most", "beside", "ratio", "goal"];
        header.extend(more.map(|name| match machines.len() {
            1 => name.to_owned(),
            _ => format!("{name} ({})", machine.label),
        }));
    }
    let row = |(_, results): (&Case, &Results<'_>)| {
        let (_, entry) = results.first()?;
        let figures = machines.iter().map(|machine| Figure::of(results, machine));
        let figures: Vec<Option<Figure>> = figures.collect();
        // What no machine has measured, such as the latency of a path that carried nothing, has no row.
        figures.iter().any(Option::is_some).then(|| {
            let unit = crate::archive::printable(&entry.unit);
            let cells = figures.iter().flat_map(|found| match found {
                Some(found) => found.cells(&unit),
                None => Default::default(),
            });
            std::iter::once(entry.title()).chain(cells).collect::<Vec<String>>()
        })
    };
    let rows = cases.iter().filter_map(row).collect();
    let notes = runs.iter().filter_map(Run::disturbed).collect();
    Sheet { title: format!("millrace-bench {command}"), header, rows, notes }.tidy()
}
