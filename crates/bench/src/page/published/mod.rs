//! What the documents that Millrace answers to have published, beside what was measured here.
//!
//! | module | job |
//! | --- | --- |
//! | `catalogue` | the figures, and which results of ours are of the same quantity |

mod catalogue;

use std::collections::BTreeMap;

use super::machines::Machine;
use super::plots::file;
use super::sheet::Sheet;
use crate::archive::{Entry, Run, figure, printable};
use crate::results::{Axis, Line, Plot};
use catalogue::{Of, Ours, PUBLISHED, Published};

/// Results of ours that are named for one figure; more would only repeat its case.
const MOST: usize = 4;

impl Ours {
    /// What a result of ours comes to, if it is of this quantity.
    fn number(&self, entry: &Entry) -> Option<f64> {
        let parameters = entry.parameters();
        let has = |(name, value): &(&str, &str)| {
            parameters.iter().any(|(own, its)| own == name && its == value)
        };
        if entry.name != self.name || !self.with.iter().all(has) {
            return None;
        }
        match self.of {
            Of::Value(factor, _) => Some(entry.value? * factor),
            Of::Ratio => entry.ratio,
            // Of what the tester can do, where no line rate is given: theirs is always of the line's.
            Of::Share => Some(entry.observed.get("share_of_top")?.as_f64()? * 100.0),
        }
    }

    /// The same in words.
    fn text(&self, entry: &Entry) -> Option<String> {
        let number = self.number(entry)?;
        let value = match self.of {
            Of::Value(_, unit) => format!("{} {unit}", figure(number)),
            Of::Ratio => {
                let yardstick = printable(entry.yardstick.as_deref()?);
                format!("{} times {yardstick}", figure(number))
            }
            Of::Share => format!("{number:.0} % of the top"),
        };
        let value = if entry.is_least() { format!("at least {value}") } else { value };
        let parameters = entry.parameters();
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

/// A published figure with those of ours that are of the same quantity.
struct Row {
    name: String,
    theirs: [f64; 2],
    /// Of each machine.
    ours: Vec<Vec<f64>>,
}

impl Row {
    /// `None` where nothing of ours stands beside it.
    fn of(published: &Published, runs: &[Run], machines: &[Machine]) -> Option<Self> {
        let (theirs, ours) = (published.at?, published.ours.as_ref()?);
        let of = |machine: &Machine| -> Vec<f64> {
            let own = runs.iter().filter(|run| machine.has(run));
            let own = own.flat_map(|run| &run.results).filter_map(|entry| ours.number(entry));
            // Beyond, the axis has no digits left.
            own.filter(|number| (0.0..1e15).contains(number)).collect()
        };
        let ours: Vec<Vec<f64>> = machines.iter().map(of).collect();
        // Behind its name, a source says when and on what it has measured.
        let source = published.source.split(" (").next().unwrap_or_default();
        let name = format!("{}; {source}", published.what);
        ours.iter().any(|own| !own.is_empty()).then_some(Self { name, theirs, ours })
    }
}

/// Rows of the published figures that ours stand beside, a plot for each unit.
pub(super) fn plots(runs: &[Run], machines: &[Machine]) -> Vec<Plot> {
    let mut units: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for published in PUBLISHED {
        let unit = published.ours.as_ref().map_or("", |ours| ours.of.unit());
        if let Some(row) = Row::of(published, runs, machines) {
            units.entry(unit).or_default().push(row);
        }
    }
    units.into_iter().map(|(unit, rows)| plot(unit, &rows, machines)).collect()
}

fn plot(unit: &str, rows: &[Row], machines: &[Machine]) -> Plot {
    let numbered = || (1..).map(f64::from).zip(rows);
    let theirs = numbered().map(|(place, row)| (place, row.theirs[1]));
    let between = numbered().map(|(place, row)| (place, row.theirs));
    let theirs = Line::new("published", theirs.collect()).spread(between.collect());
    let ours = machines.iter().enumerate().map(|(number, machine)| {
        let own = |(place, row): (f64, &Row)| {
            let own = row.ours.get(number).cloned().unwrap_or_default();
            own.into_iter().map(move |value| (place, value))
        };
        Line::new(&machine.label, numbered().flat_map(own).collect())
    });
    let lines: Vec<Line> = std::iter::once(theirs).chain(ours).collect();
    let top = lines.iter().map(Line::top).fold(0.0, f64::max);
    Plot {
        name: file(&["published", unit]),
        title: format!("published by others on their machines, and ours: {unit}"),
        horizontal: Axis::named(rows.iter().map(|row| row.name.clone()).collect(), "what"),
        vertical: Axis::up_to(if top > 0.0 { top * 1.1 } else { 1.0 }, unit),
        lines,
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
                {"name": "throughput", "value": 1e6, "observed": {"share_of_top": 0.3, "by_tester": true},
                    "parameters": {"scenario": "3.4 NUMA placement, virtual switch, all on one node", "frame": 66,
                        "flows": 20_000}},
            ]),
        )];
        let machines = machines(&runs);
        let plots = plots(&runs, &machines);
        let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
        let expected = ["of-the-top", "mpps", "bytes", "times-the-yardstick"];
        assert_eq!(names, expected.map(|unit| format!("published-{unit}")));
        let svg = plots[0].rows().unwrap().svg;
        let name = "zero-loss load, 1 core; DPDK performance white paper V1.2";
        assert!([name, "Xeon", "published"].iter().all(|word| svg.contains(word)), "{svg}");
        assert!(!svg.contains("2 cores"), "nothing of ours stands beside it: {svg}");
        // Two published figures and two of ours, and their names.
        assert_eq!(svg.matches("<circle").count(), 6, "{svg}");
        let sheet = sheet(&runs, &machines);
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
        let least = ours("zero-loss load of a virtual switch");
        assert_eq!(least, "at least 30 % of the top (flows 20000)");
        let together = ours("the same, forwarder and transmitter on one logical core");
        assert_eq!(together, "9.00 Mpps (frame 64, receive_transmit same L3)");
        assert_eq!(ours("the same, forwarder on another node"), "");
        assert_eq!(ours("the same, 1 to 4 memory channels"), "12.00 Mpps (channels 2)");
    }
}
