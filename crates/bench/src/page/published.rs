//! What the documents that Millrace answers to have published, beside what was measured here.

use super::machines::Machine;
use super::sheet::Sheet;
use crate::archive::{Entry, Run, figure, printable};

/// Results of ours that are named for one figure; more would only repeat its case.
const MOST: usize = 4;

const FORWARDING: &str = "layer-3 forwarding on DPDK (thesis, 2016), 10 GbE";
const NGINX: &str = "NGINX on the VPP host stack (thesis, 2020), 2 x 14-core Xeon, 40 GbE";
const SDB: &str = "network processing development kit (paper, 2016), 10 GbE";
const DMA: &str = "minimum-overhead DMA (paper), one 2.4 GHz socket, 2 x 10 GbE";
const OPERATOR: &str = "DPDK performance white paper V1.2 (telecom operator, 2016)";

/// A published figure.
struct Published {
    source: &'static str,
    what: &'static str,
    figure: &'static str,
    ours: Option<Ours>,
}

/// Which results of ours are of the same quantity.
struct Ours {
    name: &'static str,
    /// Parameters that they must have.
    with: &'static [(&'static str, &'static str)],
    of: Of,
}

/// What of a result is comparable.
#[derive(Clone, Copy)]
enum Of {
    /// Its value times this, in this unit.
    Value(f64, &'static str),
    /// Its ratio to the yardstick.
    Ratio,
    /// The share of the highest load that was carried, which is the line rate or what the tester can do: percent.
    Share,
}

/// Parameters and their values.
type With = &'static [(&'static str, &'static str)];

const fn published(source: &'static str, what: &'static str, figure: &'static str) -> Published {
    Published { source, what, figure, ours: None }
}

impl Published {
    const fn beside(self, name: &'static str, with: With, of: Of) -> Self {
        Self { ours: Some(Ours { name, with, of }), ..self }
    }
}

const MPPS: Of = Of::Value(1e-6, "Mpps");

/// Forwarding with the threads on such cores.
const fn cores(what: &'static str, figure: &'static str, with: With) -> Published {
    published(FORWARDING, what, figure).beside("forwarding by cores", with, MPPS)
}

/// Zero-loss load with frames of 66 B, a scenario of the white paper.
const fn operator(what: &'static str, figure: &'static str, with: With) -> Published {
    published(OPERATOR, what, figure).beside("throughput", with, Of::Share)
}

/// The figures as they were published; `beside` names ours where the quantity is the same.
const PUBLISHED: &[Published] = &[
    published(FORWARDING, "64 B, IPv4 routes, one core for each port", "14.5 of 14.88 Mpps")
        .beside("throughput", &[("frame", "64")], MPPS),
    cores(
        "receiver, forwarder and transmitter on cores of one node",
        "14.5 Mpps",
        &[
            ("receive_worker", "same L3"),
            ("worker_transmit", "same L3"),
            ("receive_transmit", "same L3"),
        ],
    ),
    cores(
        "the same, forwarder on another node",
        "13.5 Mpps",
        &[("receive_worker", "other node"), ("receive_transmit", "same L3")],
    ),
    cores(
        "the same, forwarder on the transmit core's hyper-twin",
        "10.5 Mpps",
        &[("worker_transmit", "SMT sibling"), ("receive_worker", "same L3")],
    ),
    cores(
        "the same, forwarder and transmitter on one logical core",
        "7.1 Mpps",
        &[("worker_transmit", "same core"), ("receive_worker", "same L3")],
    ),
    published(FORWARDING, "the same, 256 to 2048 MB of hugepages", "no effect above 128 MB")
        .beside("forwarding by pages", &[("pages", "2 MB")], MPPS),
    published(FORWARDING, "the same, 1 to 4 memory channels", "no effect").beside(
        "forwarding by channels",
        &[],
        MPPS,
    ),
    published(
        NGINX,
        "requests/s, bodies of 64 B and 1 KB",
        "3.33 times the kernel, 1.5 times F-Stack",
    )
    .beside("requests", &[("path", "inline"), ("body", "64")], Of::Ratio),
    published(NGINX, "latency", "55 us; kernel 70, VPP LDP 83, F-Stack 105").beside(
        "latency, p50",
        &[("path", "inline"), ("body", "64")],
        Of::Value(1.0, "us"),
    ),
    published(NGINX, "CPU when idle", "0 %").beside(
        "idle CPU of NGINX and daemon",
        &[("path", "inline")],
        Of::Value(100.0, "% of a core"),
    ),
    published(SDB, "64 B, one thread", "4.9 Gbit/s; four threads 7.49").beside(
        "throughput",
        &[("frame", "64")],
        // Bits of the frames alone: 14.88 Mpps of 64 B are 7.62 Gbit/s.
        Of::Value(64.0 * 8.0 / 1e9, "Gbit/s"),
    ),
    published(DMA, "PCIe bytes for a received packet of 64 B", "128, instead of 192").beside(
        "units of 64 B",
        &[("direction", "receive"), ("size", "64")],
        Of::Value(1.0, "bytes"),
    ),
    published(DMA, "the same, less than with descriptors written back", "33.3 % less").beside(
        "units of 64 B",
        &[("direction", "receive"), ("size", "64")],
        Of::Ratio,
    ),
    published(DMA, "forwarding, 64 B; random lengths", "13.3 Gbit/s; 18.7 Gbit/s"),
    operator(
        "zero-loss load, 1 core",
        "74 % of line rate",
        &[("scenario", "1.2 one core and two, 1 core"), ("frame", "66")],
    ),
    operator(
        "zero-loss load, 2 cores",
        "93 %",
        &[("scenario", "1.2 one core and two, 2 cores"), ("frame", "66")],
    ),
    operator(
        "zero-loss load, core on the other node",
        "65 %",
        &[
            ("scenario", "1.3 NUMA placement, bare machine, core on the other node"),
            ("frame", "66"),
        ],
    ),
    operator(
        "zero-loss load, card on the other node",
        "77 %",
        &[
            ("scenario", "1.3 NUMA placement, bare machine, card on the other node"),
            ("frame", "66"),
        ],
    ),
    operator(
        "zero-loss load, 120 Gbit/s",
        "63 %",
        &[("scenario", "1.7 load from 20 to 120 Gbit/s, 120 Gbit/s"), ("frame", "66")],
    ),
    operator(
        "zero-loss load, 20,000 flows each way",
        "79.5 %",
        &[("scenario", "1.8 size of the flow table, 20,000 flows each way"), ("frame", "66")],
    ),
    operator(
        "zero-loss load, 16,777,216 flows each way",
        "64 %",
        &[("scenario", "1.8 size of the flow table, 16,777,216 flows each way"), ("frame", "66")],
    ),
    operator(
        "zero-loss load in a guest (SR-IOV), 20,000 flows each way",
        "80 %",
        &[
            ("scenario", "2.7 size of the flow table, SR-IOV, 20,000 flows each way"),
            ("frame", "66"),
        ],
    ),
    operator(
        "zero-loss load in a guest (SR-IOV), 16,777,216 flows each way",
        "51 %",
        &[
            ("scenario", "2.7 size of the flow table, SR-IOV, 16,777,216 flows each way"),
            ("frame", "66"),
        ],
    ),
    operator(
        "zero-loss load of a virtual switch",
        "43 to 60 %",
        &[("scenario", "3.4 NUMA placement, virtual switch, all on one node"), ("frame", "66")],
    ),
    operator(
        "zero-loss load of a virtual switch, card on the other node",
        "5 %",
        &[
            ("scenario", "3.4 NUMA placement, virtual switch, card on the other node"),
            ("frame", "66"),
        ],
    ),
];

impl Ours {
    /// What a result of ours comes to, if it is of this quantity.
    fn text(&self, entry: &Entry) -> Option<String> {
        let parameters = entry.parameters();
        let has = |(name, value): &(&str, &str)| {
            parameters.iter().any(|(own, its)| own == name && its == value)
        };
        if entry.name != self.name || !self.with.iter().all(has) {
            return None;
        }
        let value = match self.of {
            Of::Value(factor, unit) => format!("{} {unit}", figure(entry.value? * factor)),
            Of::Ratio => {
                let yardstick = printable(entry.yardstick.as_deref()?);
                format!("{} times {yardstick}", figure(entry.ratio?))
            }
            Of::Share => {
                let share = entry.observed.get("share_of_top")?.as_f64()?;
                // Of what the tester can do, where no line rate is given: theirs is always of the line's.
                format!("{:.0} % of the top", share * 100.0)
            }
        };
        let named = |name: &String| self.with.iter().any(|(own, _)| own == name);
        let others = parameters.iter().filter(|(name, _)| !named(name));
        let others: Vec<String> = others.map(|(name, value)| format!("{name} {value}")).collect();
        let others = others.join(", ");
        Some(if others.is_empty() { value } else { format!("{value} ({others})") })
    }
}

/// The published figures, and ours of each machine.
pub(super) fn sheet(runs: &[Run], machines: &[Machine]) -> Sheet {
    let of = |published: &Published, machine: &Machine| {
        let Some(ours) = &published.ours else { return String::new() };
        let own = runs.iter().filter(|run| machine.has(run));
        let all = own.flat_map(|run| &run.results).filter_map(|entry| ours.text(entry));
        let mut all: Vec<String> = all.collect();
        all.dedup();
        let more = all.len().saturating_sub(MOST);
        all.truncate(MOST);
        let text = all.join("; ");
        if more > 0 { format!("{text}; and {more} more") } else { text }
    };
    let rows = PUBLISHED.iter().map(|published| {
        let theirs = [published.what, published.figure, published.source].map(str::to_owned);
        theirs
            .into_iter()
            .chain(machines.iter().map(|machine| of(published, machine)))
            .collect::<Vec<_>>()
    });
    let header = ["what", "published", "by"].map(str::to_owned).into_iter();
    Sheet {
        title: "Published by others, on their machines".into(),
        header: header.chain(machines.iter().map(|machine| machine.label.clone())).collect(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::page::machines::machines;
    use crate::page::tests::run;

    #[test]
    fn ours_stands_beside_theirs_where_the_quantity_is_the_same() {
        let runs = [run(
            "Xeon",
            json!([
                {"name": "units of 64 B", "unit": "bytes/packet", "value": 128.0, "ratio": 1.5,
                    "yardstick": "descriptors written back",
                    "parameters": {"direction": "receive", "size": 64}},
                {"name": "units of 64 B", "value": 256.0, "parameters": {"direction": "transmit", "size": 64}},
                {"name": "forwarding by cores", "value": 9e6, "parameters": {"receive_worker": "same L3",
                    "worker_transmit": "same core", "receive_transmit": "same L3", "frame": 64}},
                {"name": "forwarding by cores", "value": null, "observed": {"cannot_run": "there is one NUMA node"},
                    "parameters": {"receive_worker": "other node", "worker_transmit": "other node",
                        "receive_transmit": "same L3", "frame": 64}},
                {"name": "forwarding by channels", "value": 12e6, "parameters": {"channels": 2}},
                {"name": "throughput", "value": 1e6, "observed": {"share_of_top": 0.4},
                    "parameters": {"scenario": "1.2 one core and two, 1 core", "frame": 66, "flows": 1}},
                {"name": "throughput", "value": 1e6, "observed": {"share_of_top": 0.3},
                    "parameters": {"scenario": "3.4 NUMA placement, virtual switch, all on one node", "frame": 66,
                        "flows": 20_000}},
            ]),
        )];
        let sheet = sheet(&runs, &machines(&runs));
        assert_eq!(sheet.header, ["what", "published", "by", "Xeon"]);
        let ours = |what: &str| {
            let row = sheet.rows.iter().find(|row| row[0] == what).unwrap();
            row[3].clone()
        };
        assert_eq!(ours("PCIe bytes for a received packet of 64 B"), "128 bytes");
        let less = ours("the same, less than with descriptors written back");
        assert_eq!(less, "1.50 times descriptors written back");
        assert_eq!(ours("zero-loss load, 1 core"), "40 % of the top (flows 1)");
        assert_eq!(ours("zero-loss load, 2 cores"), "");
        assert_eq!(ours("zero-loss load of a virtual switch"), "30 % of the top (flows 20000)");
        let together = ours("the same, forwarder and transmitter on one logical core");
        assert_eq!(together, "9.00 Mpps (frame 64, receive_transmit same L3)");
        assert_eq!(ours("the same, forwarder on another node"), "");
        assert_eq!(ours("the same, 1 to 4 memory channels"), "12.00 Mpps (channels 2)");
    }
}
