//! Tables for people.

mod spread;

use measure::frame::Transport;
use measure::load::Sizes;
use measure::outcome::VariationSummary;

use super::frame_loss::Point;
use super::scenario::{Attach, Device, Forwarding, Millraced, Scenario, Test};
use super::{Measured, Taken};
use crate::results::table;
use crate::terminal::say;

/// What will be measured, in a few lines.
pub(super) fn plan(scenario: &Scenario) -> String {
    let Scenario { about, device, frames, flows, trials, .. } = scenario;
    let device = match device {
        Device::None {} => "the tester itself".into(),
        Device::External { ports, .. } => format!("the device between {}", ports.join(" and ")),
        Device::Millraced(daemon) => of_daemon(daemon),
        Device::Kernel {} => "the kernel between two veth pairs (afpacket)".into(),
        Device::Testpmd { .. } => "dpdk-testpmd (io) between two memif ports".into(),
        Device::Impaired { faults, .. } => format!("a device with known faults ({faults})"),
    };
    let sizes = scenario.sizes().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let family = match frames.tenths() {
        0 => "IPv4".into(),
        10 => "IPv6".into(),
        tenths => format!("IPv4 and {} % IPv6", u32::from(tenths) * 10),
    };
    let transport = if frames.transport() == Transport::Udp { "UDP" } else { "TCP" };
    let ways = if trials.both_ways { "both ways" } else { "one way" };
    let about = if about.is_empty() { String::new() } else { format!("\n{about}") };
    format!(
        "{}: {device}{about}\n{family}, {transport}, {} flow{}, {ways}; frames of {sizes} B; trials of {} s; takes up to {}, without \
         repeated trials",
        scenario.name(),
        flows.count,
        if flows.count == 1 { "" } else { "s" },
        trials.seconds,
        scenario.length()
    )
}

fn of_daemon(daemon: &Millraced) -> String {
    let by = match daemon.forwarding {
        Forwarding::Routes => "routes",
        Forwarding::FlowTable => "exact match of 5-tuples",
        Forwarding::Bridge => "a bridge",
        Forwarding::Guest => "a guest on vhost-user (dpdk-testpmd on virtio-user in its place)",
    };
    let ports = match daemon.attach {
        Attach::Memif => "memif",
        Attach::VhostUser => "vhost-user",
    };
    let Millraced { routes, next_hops, acl, updates, other_node, .. } = daemon;
    let more = [
        (*other_node, "on another NUMA node than the tester".to_owned()),
        (*routes > 1, format!("{routes} routes each way")),
        (*next_hops > 1, format!("{next_hops} next hops each")),
        (*acl > 0, format!("behind an access list of {acl} entries each way")),
        (*updates > 0, format!("{updates} routes changed in a second")),
    ];
    let more: Vec<String> = more.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    format!("millraced forwards by {by}{more} between two {ports} ports")
}

/// Prints the tables.
pub(super) fn print(scenario: &Scenario, all: &[(Sizes, Measured)]) {
    let least = scenario.frames.least();
    let header = [
        "frame B",
        "tester alone Mpps",
        "throughput Mpps",
        "Gbit/s",
        "% of top",
        "limited by",
        "void",
        "disturbed",
    ];
    let rows = all.iter().map(|(sizes, measured)| throughput(*sizes, measured, least));
    say!("each way:\n{}", table(&header, rows.collect()));
    if all.iter().any(|(_, measured)| measured.taken.void > 0) {
        say!(
            "void: trials during which the tester was held up, so that they say nothing of the device; they were repeated up to three times"
        );
    }
    if all.iter().any(|(_, measured)| measured.taken.disturbed > 0) {
        say!(
            "disturbed: trials during which the host or other programs took time; one that lost frames was repeated once"
        );
    }
    remarks(scenario, all).iter().for_each(|remark| say!("{remark}"));
    spread::searches(all);
    updates(all);
    latencies(all);
    spread::trials(all);
    losses(all, least);
    bursts(all);
}

fn throughput(sizes: Sizes, measured: &Measured, least: u16) -> Vec<String> {
    let bits = sizes.mean_wire_bits(least);
    let millions = |rate: f64| digits(rate / bits / 1e6);
    let mut row = vec![sizes.to_string(), millions(measured.own)];
    match &measured.throughput {
        None => row.extend(["-", "-", "-", ""].map(String::from)),
        Some(found) if found.rate() <= 0.0 => {
            row.extend(["none", "-", "-", "device"].map(String::from))
        }
        Some(found) => {
            let rate = found.rate();
            let is_tester = found.by_tester || rate >= found.top;
            row.push(millions(rate));
            row.push(digits(rate / 1e9));
            row.push(format!("{:.1}", 100.0 * rate / found.top));
            let limit = match is_tester {
                _ if found.is_cut => "interrupted",
                true => "tester or line",
                false => "device",
            };
            row.push(limit.into());
        }
    }
    let Taken { trials, void, disturbed } = measured.taken;
    row.extend([void, disturbed].map(|count| match count {
        0 => "-".into(),
        count => format!("{count} of {trials}"),
    }));
    row
}

/// Three digits behind the point, more where the number is small.
fn digits(value: f64) -> String {
    let places = if value > 0.0 && value < 0.01 { 6 } else { 3 };
    format!("{value:.places$}")
}

/// What the tables leave open.
fn remarks(scenario: &Scenario, all: &[(Sizes, Measured)]) -> Vec<String> {
    let mut remarks = Vec::new();
    for (sizes, measured) in all {
        if scenario.trials.tests.contains(&Test::BackToBack) && measured.back_to_back.is_none() {
            remarks.push(format!(
                "{sizes} B: no search for the longest burst has an answer, as it was interrupted, or the tester could not send the next \
                 longer one"
            ));
        }
        let Some(found) = &measured.throughput else { continue };
        if found.rate() <= 0.0 {
            remarks.push(format!(
                "{sizes} B: frames were lost at every load down to {:.0} frames/s, so there is none at which latency could be measured",
                found.tried.last().map_or(0.0, |last| last.rate)
                    / sizes.mean_wire_bits(scenario.frames.least())
            ));
        }
        let is_external = matches!(scenario.device, Device::External { .. });
        if is_external && scenario.trials.line_rate.is_none() && found.rate() >= found.top {
            remarks.push(format!(
                "{sizes} B: the device carried all that was offered, which is what the tester can do over shared memory; its ports may \
                 carry more: say their `line-rate`"
            ));
        }
        let tolerated = scenario.trials.loss;
        let above = |point: &&Point| point.rate > found.rate() * 1.001 && point.loss <= tolerated;
        if let Some(point) = measured.frame_loss.iter().find(above) {
            remarks.push(format!(
                "{sizes} B: at {:.0} % of the top, above the throughput, another trial lost no more than is allowed: losses come and \
                 go. On shared cores, let the search repeat trials that lose frames (`repeats`)",
                100.0 * point.share
            ));
        }
    }
    remarks
}

fn updates(all: &[(Sizes, Measured)]) {
    let rows = all.iter().filter_map(|(sizes, measured)| {
        let rate = measured.updates?;
        Some(vec![sizes.to_string(), format!("{rate:.0}")])
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        say!("routes that the device changed meanwhile:\n{}", table(&["frame B", "1/s"], rows));
    }
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
            row.push(latency.variation.summary().map_or_else(
                || "-".into(),
                |variation| {
                    let VariationSummary { least, median, most, .. } = variation;
                    [least, median, most].map(|ns| microseconds(ns as f64)).join(" / ")
                },
            ));
            Some(row)
        })
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let header = [
            "frame B", "load %", "least us", "mean", "p50", "p90", "p99", "p99.9", "p99.99",
            "most", "PDV", "IPDV",
        ];
        say!(
            "latency at a share of the throughput; PDV: p99.9 less the least; IPDV, frame to frame: least / median / most:\n{}",
            table(&header, rows)
        );
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
            format!("{} of {}", found.searches, found.searches + found.void),
            format!("{:.0}", found.mean),
            found.least.to_string(),
            found.most.to_string(),
            format!("{:.1}", found.deviation),
            found.buffer.map_or_else(|| "-".into(), |seconds| format!("{:.1}", seconds * 1e6)),
        ])
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        let header =
            ["frame B", "searches", "burst (mean)", "least", "most", "deviation", "buffer us"];
        say!(
            "back-to-back frames; a search does not count where the tester could not send the next longer burst:\n{}",
            table(&header, rows)
        );
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use measure::outcome::Counts;

    use super::*;
    use crate::rfc2544::throughput;

    fn measured(rate: f64, lossless: f64) -> (Sizes, Measured) {
        let throughput = throughput::Measured {
            rates: vec![rate],
            top: 1e9,
            counts: Counts::default(),
            by_tester: false,
            is_cut: false,
            tried: Vec::new(),
        };
        let point = |share: f64| Point {
            rate: 1e9 * share,
            share,
            loss: if share > lossless { 0.1 } else { 0.0 },
            counts: Counts::default(),
        };
        let frame_loss = [1.0, 0.5, 0.2, 0.1].map(point).to_vec();
        (
            Sizes::One(64),
            Measured { throughput: Some(throughput), frame_loss, ..Measured::default() },
        )
    }

    fn scenario(trials: &str) -> Scenario {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        let text = format!("title = \"x\"\ndevice = {{ kind = \"none\" }}\n{trials}\n");
        std::fs::write(&file, text).unwrap();
        Scenario::read(Path::new(&file)).unwrap().remove(0)
    }

    #[test]
    fn a_search_that_was_cut_short_has_no_limit() {
        let limit = |is_cut, by_tester| {
            let (sizes, mut all) = measured(0.5e9, 0.5);
            let found = all.throughput.as_mut().unwrap();
            (found.is_cut, found.by_tester) = (is_cut, by_tester);
            throughput(sizes, &all, 64)[5].clone()
        };
        assert_eq!(limit(true, false), "interrupted");
        assert_eq!(limit(true, true), "interrupted");
        assert_eq!([limit(false, false), limit(false, true)], ["device", "tester or line"]);
    }

    #[test]
    fn bursts_without_an_answer_are_pointed_at() {
        let bursts = scenario("trials = { tests = [\"back-to-back\"] }");
        let [said] = &remarks(&bursts, &[(Sizes::One(64), Measured::default())])[..] else {
            panic!()
        };
        assert!(said.contains("64 B: no search for the longest burst"), "{said}");
        assert!(remarks(&scenario(""), &[(Sizes::One(64), Measured::default())]).is_empty());
    }

    #[test]
    fn what_shared_memory_carries_is_no_limit_of_a_card() {
        let all = [measured(1e9, 1.0)];
        let ports = ["null", "null"].map(str::to_owned);
        let external = Scenario { device: Device::External { ports, macs: None }, ..scenario("") };
        let [said] = &remarks(&external, &all)[..] else { panic!() };
        assert!(said.contains("over shared memory"), "{said}");
        let mut line = external.clone();
        line.trials.line_rate = Some(1.0);
        assert!(remarks(&line, &all).is_empty());
        assert!(remarks(&scenario(""), &all).is_empty());
        assert!(remarks(&external, &[measured(0.9e9, 0.9)]).is_empty());
    }

    #[test]
    fn answers_that_contradict_each_other_are_pointed_at() {
        let scenario = scenario("");
        let said = |rate, lossless| remarks(&scenario, &[measured(rate, lossless)]);
        assert!(said(0.2e9, 0.2).is_empty() && said(0.3e9, 0.2).is_empty());
        let [remark] = &said(0.15e9, 0.2)[..] else { panic!() };
        assert!(remark.contains("20 %") && remark.contains("repeats"), "{remark}");
        let [none, _] = &said(0.0, 0.2)[..] else { panic!() };
        assert!(none.contains("every load"), "{none}");
        let (sizes, measured) = measured(0.0, 0.0);
        let taken = Taken { trials: 9, void: 4, disturbed: 0 };
        let row = throughput(sizes, &Measured { taken, ..measured }, 64);
        assert_eq!(
            (&row[2], &row[6..]),
            (&"none".to_owned(), &["4 of 9".to_owned(), "-".into()][..])
        );
        assert_eq!([0.0, 0.001_234, 1.5].map(digits), ["0.000", "0.001234", "1.500"]);
    }
}
