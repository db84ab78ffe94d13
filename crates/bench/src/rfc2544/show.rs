//! Tables for people, and results in the form of all measurements.

use measure::frame::Transport;
use measure::load::Sizes;
use measure::outcome::LatencySummary;
use serde_json::Value;

use super::Measured;
use super::scenario::{Device, Forwarding, Scenario};
use crate::results::{Outcome, Samples, table};
use crate::terminal::say;

/// One of the numbers of a latency trial.
type Quantity = fn(&LatencySummary) -> f64;

/// What will be measured, in a few lines.
pub(super) fn plan(scenario: &Scenario) -> String {
    let Scenario { about, device, frames, flows, trials, .. } = scenario;
    let device = match device {
        Device::None {} => "the tester itself".into(),
        Device::External { ports, .. } => format!("the device between {}", ports.join(" and ")),
        Device::Millraced { forwarding, .. } => {
            let by = match forwarding {
                Forwarding::Routes => "routes",
                Forwarding::FlowTable => "exact match of 5-tuples",
                Forwarding::Bridge => "a bridge",
            };
            format!("millraced forwards by {by} between two memif ports")
        }
        Device::Kernel {} => "the kernel between two veth pairs (afpacket)".into(),
        Device::Testpmd { .. } => "dpdk-testpmd (io) between two memif ports".into(),
        Device::Impaired { faults, .. } => format!("a device with known faults: {faults:?}"),
    };
    let sizes = scenario.sizes().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let family = if frames.layout().ipv6 { "IPv6" } else { "IPv4" };
    let transport = if frames.transport() == Transport::Udp { "UDP" } else { "TCP" };
    let ways = if trials.both_ways { "both ways" } else { "one way" };
    let about = if about.is_empty() { String::new() } else { format!("\n{about}") };
    format!(
        "{}: {device}{about}\n{family}, {transport}, {} flows, {ways}; frames of {sizes} B; trials of {} s",
        scenario.name(),
        flows.count,
        trials.seconds
    )
}

/// Prints the tables; gives the results.
pub(super) fn print(scenario: &Scenario, all: &[(Sizes, Measured)]) -> Vec<Outcome> {
    let least = scenario.frames.layout().least();
    let bits = |sizes: &Sizes| sizes.mean_wire_bits(least);
    let millions = |rate: f64, sizes: &Sizes| format!("{:.3}", rate / bits(sizes) / 1e6);
    let mut results = Vec::new();
    let mut rows = Vec::new();
    for (sizes, measured) in all {
        let of = |name: &str, unit, samples: Vec<f64>| {
            Outcome::new(name, unit, Samples(samples)).with(&[
                ("scenario", scenario.name().into()),
                ("frame", sizes.to_string().into()),
                ("flows", scenario.flows.count.into()),
                ("both_ways", scenario.trials.both_ways.into()),
            ])
        };
        results.push(of("tester alone", "frames/s", vec![measured.own / bits(sizes)]));
        let mut row = vec![sizes.to_string(), millions(measured.own, sizes)];
        match &measured.throughput {
            None => row.extend(["-", "-", "-", ""].map(String::from)),
            Some(found) => {
                let rate = found.rate / bits(sizes);
                results.push(of("throughput", "frames/s", vec![rate]).seeing(&[
                    ("share_of_top", (found.rate / found.top).into()),
                    ("trials", found.trials.into()),
                    ("by_tester", found.by_tester.into()),
                    ("counts", serde_json::to_value(found.counts).unwrap_or(Value::Null)),
                ]));
                let limit = if found.by_tester || found.rate >= found.top {
                    "tester or line"
                } else {
                    "device"
                };
                row.push(millions(found.rate, sizes));
                row.push(format!("{:.3}", found.rate / 1e9));
                row.push(format!("{:.1}", 100.0 * found.rate / found.top));
                row.push(limit.into());
            }
        }
        rows.push(row);
        for latency in &measured.latency {
            let samples =
                |quantity: Quantity| -> Vec<f64> { latency.trials.iter().map(quantity).collect() };
            let quantities: [(&str, Quantity); 9] = [
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
            for (name, quantity) in quantities {
                let name = format!("latency {name}");
                results.push(
                    of(&name, "ns", samples(quantity)).with(&[("load", latency.load.into())]),
                );
            }
            let curve = latency.all.distribution();
            let curve = serde_json::to_value(curve).unwrap_or(Value::Null);
            let frames = latency.all.summary().map_or(0, |all| all.frames);
            results.push(
                of("latency distribution", "frames", vec![frames as f64])
                    .with(&[("load", latency.load.into())])
                    .seeing(&[("ns_and_share", curve)]),
            );
        }
        for point in &measured.frame_loss {
            let loss = of("frame loss rate", "share", vec![point.loss])
                .with(&[("share_of_top", point.share.into())])
                .seeing(&[
                    ("rate", (point.rate / bits(sizes)).into()),
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
    }
    let header =
        ["frame B", "tester alone Mpps", "throughput Mpps", "Gbit/s", "% of top", "limited by"];
    say!("each way:\n{}", table(&header, rows));
    latencies(all);
    losses(all, least);
    bursts(all);
    results
}

fn latencies(all: &[(Sizes, Measured)]) {
    let microseconds = |ns: f64| format!("{:.1}", ns / 1e3);
    let rows = all.iter().flat_map(|(sizes, measured)| {
        measured.latency.iter().filter_map(move |latency| {
            let all = latency.all.summary()?;
            let mut row = vec![sizes.to_string(), format!("{:.0}", 100.0 * latency.load)];
            let times = [all.least, all.p50, all.p90, all.p99, all.p999, all.p9999, all.most];
            row.extend(times.map(|ns| microseconds(ns as f64)));
            row.insert(3, microseconds(all.mean));
            row.push(microseconds(all.variation as f64));
            Some(row)
        })
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let header = [
            "frame B", "load %", "least us", "mean", "p50", "p90", "p99", "p99.9", "p99.99",
            "most", "PDV",
        ];
        say!("latency at a share of the throughput:\n{}", table(&header, rows));
    }
}

fn losses(all: &[(Sizes, Measured)], least: u16) {
    let rows = all.iter().flat_map(|(sizes, measured)| {
        measured.frame_loss.iter().map(move |point| {
            let counts = point.counts;
            vec![
                sizes.to_string(),
                format!("{:.0}", 100.0 * point.share),
                format!("{:.3}", point.rate / sizes.mean_wire_bits(least) / 1e6),
                format!("{:.4}", 100.0 * point.loss),
                counts.lost.to_string(),
                counts.corrupted.to_string(),
                counts.duplicated.to_string(),
                counts.reordered.to_string(),
            ]
        })
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let header =
            ["frame B", "load %", "Mpps", "loss %", "lost", "corrupted", "duplicated", "reordered"];
        say!("frame loss rate:\n{}", table(&header, rows));
    }
}

fn bursts(all: &[(Sizes, Measured)]) {
    let rows = all.iter().filter_map(|(sizes, measured)| {
        let found = measured.back_to_back.as_ref()?;
        Some(vec![
            sizes.to_string(),
            format!("{:.0}", found.mean),
            found.least.to_string(),
            found.most.to_string(),
            format!("{:.1}", found.deviation),
            found.buffer.map_or_else(|| "-".into(), |seconds| format!("{:.1}", seconds * 1e6)),
        ])
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let header = ["frame B", "burst (mean)", "least", "most", "deviation", "buffer us"];
        say!("back-to-back frames:\n{}", table(&header, rows));
    }
}
