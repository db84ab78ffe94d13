//! How far the answers of several searches and trials lie apart, as RFC 8219 has it reported.

use measure::load::Sizes;
use measure::outcome::LatencySummary;

use crate::results::{Samples, table};
use crate::rfc2544::{Measured, latency};
use crate::terminal::say;

/// Trials of which RFC 8219 7.2 and 7.3 have the median and percentiles reported.
const ENOUGH: usize = 20;

/// Of the throughput.
pub(super) fn searches(all: &[(Sizes, Measured)]) {
    let rows = all.iter().filter_map(|(sizes, measured)| {
        let found = measured.throughput.as_ref().filter(|found| found.rates.len() > 1)?;
        let rates = Samples(found.rates.iter().map(|rate| rate / 1e9).collect());
        let mut row = vec![sizes.to_string(), rates.0.len().to_string()];
        let shown = [rates.median(), rates.percentile(1.0), rates.percentile(99.0)];
        row.extend(shown.map(|rate| format!("{rate:.3}")));
        Some(row)
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let header = ["frame B", "searches", "Gbit/s (median)", "1st percentile", "99th"];
        say!("throughput of all searches, each way:\n{}", table(&header, rows));
    }
}

/// A row for each load at which there are enough trials.
fn rows(all: &[(Sizes, Measured)]) -> Vec<Vec<String>> {
    let row = |sizes: &Sizes, latency: &latency::Measured| {
        let of = |quantity: fn(&LatencySummary) -> u64| {
            let samples = latency.trials.iter().map(|trial| quantity(trial) as f64 / 1e3);
            let samples = Samples(samples.collect());
            let [p1, p99] = [1.0, 99.0].map(|percent| samples.percentile(percent));
            format!("{:.1} ({p1:.1} to {p99:.1})", samples.median())
        };
        vec![
            sizes.to_string(),
            format!("{:.0}", 100.0 * latency.load),
            latency.trials.len().to_string(),
            of(|trial| trial.p50),
            of(|trial| trial.p999),
            of(|trial| trial.variation),
        ]
    };
    let enough = |latency: &&latency::Measured| latency.trials.len() >= ENOUGH;
    let rows = all.iter().flat_map(|(sizes, measured)| {
        measured.latency.iter().filter(enough).map(move |latency| row(sizes, latency))
    });
    rows.collect()
}

/// Of latencies.
pub(super) fn trials(all: &[(Sizes, Measured)]) {
    let rows = rows(all);
    if !rows.is_empty() {
        let header = ["frame B", "load %", "trials", "typical us", "worst case us", "PDV us"];
        say!(
            "latency of all trials, median (1st to 99th percentile); typical: p50, worst case: p99.9:\n{}",
            table(&header, rows)
        );
    }
}

#[cfg(test)]
mod tests {
    use measure::outcome::{Latency, Variation};

    use super::*;

    #[test]
    fn many_trials_have_a_median_and_percentiles() {
        let trial = |time: u64| {
            let mut latency = Latency::default();
            [time, time + 500].into_iter().for_each(|time| latency.record(time));
            latency.summary().unwrap()
        };
        let of = |count: u64| {
            let latency = latency::Measured {
                load: 0.5,
                trials: (1..=count).map(|number| trial(1000 * number)).collect(),
                variations: Vec::new(),
                all: Latency::default(),
                variation: Variation::default(),
            };
            rows(&[(Sizes::One(64), Measured { latency: vec![latency], ..Measured::default() })])
        };
        assert!(of(19).is_empty());
        let row =
            ["64", "50", "20", "10.5 (1.0 to 20.0)", "11.0 (1.5 to 20.5)", "0.5 (0.5 to 0.5)"];
        assert_eq!(of(20), [row]);
    }
}
