//! Results in the form of all measurements.

use measure::load::Sizes;
use measure::outcome::{LatencySummary, VariationSummary};
use serde_json::Value;

use super::Measured;
use super::latency::Measured as Latencies;
use super::scenario::Scenario;
use crate::results::{LATENCY_DISTRIBUTION, Outcome, Samples};

/// One of the numbers of a latency trial.
type Quantity = fn(&LatencySummary) -> f64;
const QUANTITIES: [(&str, Quantity); 9] = [
    ("least", |one| one.least as f64),
    ("mean", |one| one.mean),
    ("most", |one| one.most as f64),
    ("p50", |one| one.p50 as f64),
    ("p90", |one| one.p90 as f64),
    ("p99", |one| one.p99 as f64),
    ("p99.9", |one| one.p999 as f64),
    ("p99.99", |one| one.p9999 as f64),
    ("packet delay variation", |one| one.variation as f64),
];
/// And of how it varied from frame to frame.
type Difference = fn(&VariationSummary) -> f64;
const DIFFERENCES: [(&str, Difference); 3] = [
    ("least", |one| one.least as f64),
    ("median", |one| one.median as f64),
    ("most", |one| one.most as f64),
];

/// The results of a scenario.
pub(super) fn outcomes(scenario: &Scenario, all: &[(Sizes, Measured)]) -> Vec<Outcome> {
    all.iter().flat_map(|(sizes, measured)| of_size(scenario, *sizes, measured)).collect()
}

fn of_size(scenario: &Scenario, sizes: Sizes, measured: &Measured) -> Vec<Outcome> {
    let bits = sizes.mean_wire_bits(scenario.frames.least());
    let seen = [
        ("all_trials", Value::from(measured.taken.trials)),
        ("void_trials", measured.taken.void.into()),
        ("disturbed_trials", measured.taken.disturbed.into()),
        ("route_changes", measured.updates.into()),
    ];
    let of = |name: &str, unit, samples: Vec<f64>| {
        Outcome::new(name, unit, Samples(samples))
            .with(&[
                ("scenario", scenario.name().into()),
                ("frame", sizes.to_string().into()),
                ("flows", scenario.flows.count.into()),
                ("both_ways", scenario.trials.both_ways.into()),
            ])
            .seeing(&seen)
    };
    let mut results = vec![of("tester alone", "frames/s", vec![measured.own / bits])];
    if let Some(found) = &measured.throughput {
        let rates: Vec<f64> = found.rates.iter().map(|rate| rate / bits).collect();
        let throughput = with_percentiles(of("throughput", "frames/s", rates));
        results.push(throughput.seeing(&[
            ("share_of_top", (found.rate() / found.top).into()),
            ("trials", found.tried.len().into()),
            ("by_tester", found.by_tester.into()),
            ("cut_short", found.is_cut.into()),
            ("counts", serde_json::to_value(found.counts).unwrap_or(Value::Null)),
            ("tried", serde_json::to_value(&found.tried).unwrap_or(Value::Null)),
        ]));
    }
    results.extend(measured.latency.iter().flat_map(|one| latencies(one, &of)));
    for point in &measured.frame_loss {
        let loss = of("frame loss rate", "share", vec![point.loss])
            .with(&[("share_of_top", point.share.into())])
            .seeing(&[
                ("rate", (point.rate / bits).into()),
                ("counts", serde_json::to_value(point.counts).unwrap_or(Value::Null)),
            ]);
        results.push(loss);
    }
    if let Some(bursts) = &measured.back_to_back {
        results.push(
            of("back-to-back frames", "frames", vec![bursts.mean])
                .seeing(&[("summary", serde_json::to_value(bursts).unwrap_or(Value::Null))]),
        );
    }
    results
}

/// The latencies at one load. `of`: makes a result of a name, a unit and samples.
fn latencies(
    latency: &Latencies,
    of: &dyn Fn(&str, &'static str, Vec<f64>) -> Outcome,
) -> Vec<Outcome> {
    let load = [("load", latency.load.into())];
    let of_trials = |name: String, samples| with_percentiles(of(&name, "ns", samples).with(&load));
    let mut results = Vec::new();
    for (name, quantity) in QUANTITIES {
        let samples = latency.trials.iter().map(quantity).collect();
        results.push(of_trials(format!("latency {name}"), samples));
    }
    for (name, difference) in DIFFERENCES {
        let samples = latency.variations.iter().map(difference).collect();
        results.push(of_trials(format!("inter packet delay variation, {name}"), samples));
    }
    let curve = serde_json::to_value(latency.all.distribution()).unwrap_or(Value::Null);
    let frames = latency.all.summary().map_or(0, |all| all.frames);
    results.push(
        of(LATENCY_DISTRIBUTION, "frames", vec![frames as f64])
            .with(&load)
            .seeing(&[("ns_and_share", curve)]),
    );
    results
}

/// With how far its samples lie apart, which RFC 8219 7 has reported beside their median.
fn with_percentiles(outcome: Outcome) -> Outcome {
    let [p1, p99] = [1.0, 99.0].map(|percent| outcome.samples.percentile(percent));
    outcome.seeing(&[("p1", p1.into()), ("p99", p99.into())])
}

#[cfg(test)]
mod tests {
    use measure::outcome::{Latency, Variation};

    use super::*;

    #[test]
    fn latencies_say_how_far_their_trials_lie_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        std::fs::write(&file, "title = \"x\"\ndevice = { kind = \"none\" }\n").unwrap();
        let scenario = Scenario::read(&file).unwrap().remove(0);
        let trial = |time: u64| {
            let mut latency = Latency::default();
            latency.record(time);
            latency.summary().unwrap()
        };
        let latency = Latencies {
            load: 1.0,
            trials: (1..=20).map(|number| trial(100 * number)).collect(),
            variations: Vec::new(),
            all: Latency::default(),
            variation: Variation::default(),
        };
        let measured = Measured { latency: vec![latency], ..Measured::default() };
        let results = outcomes(&scenario, &[(Sizes::One(64), measured)]);
        let typical = results.iter().find(|result| result.name == "latency p50").unwrap();
        assert_eq!((typical.value, typical.samples.0.len()), (1050.0, 20));
        assert_eq!([&typical.observed["p1"], &typical.observed["p99"]], [&100.0, &2000.0]);
    }
}
