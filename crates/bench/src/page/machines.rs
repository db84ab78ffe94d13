//! The machines, side by side.

use std::collections::BTreeSet;

use super::sheet::Sheet;
use crate::archive::Run;
use crate::results::Samples;

/// So many different values of one fact are named; where there are more, only their range, or how many.
const MOST: usize = 3;

/// What a run tells of a machine.
type Told = fn(&Run) -> Option<String>;

/// What machines with the same processor and cores may differ in: its name, and how a run tells it.
const MORE: [(&str, Told); 3] = [
    ("NUMA nodes", nodes),
    ("server", |run| run.told("product")),
    ("kernel", |run| Some(format!("Linux {}", run.told("kernel")?))),
];

fn nodes(run: &Run) -> Option<String> {
    match run.environment.get("numa")?.as_array()?.len() {
        1 => Some("1 NUMA node".into()),
        count => Some(format!("{count} NUMA nodes")),
    }
}

/// A machine, as far as its runs tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    /// Processor and cores.
    name: String,
    more: [Option<String>; MORE.len()],
    /// Its name, and what tells it from the others of that name.
    pub(super) label: String,
}

impl Machine {
    fn of(run: &Run) -> Self {
        let name = run.machine();
        Self { label: name.clone(), name, more: MORE.map(|(_, told)| told(run)) }
    }

    /// Whether a run was on it.
    pub(super) fn has(&self, run: &Run) -> bool {
        let mut more = MORE.iter().zip(&self.more);
        self.name == run.machine() && more.all(|((_, told), own)| told(run) == *own)
    }

    /// The shortest label that no other of these machines has.
    fn label_among(&self, all: &[Self]) -> String {
        let mut label = self.name.clone();
        let alike = all.iter().filter(|other| other.name == self.name);
        for (place, (what, _)) in MORE.iter().enumerate() {
            let own = &self.more[place];
            if alike.clone().any(|other| other.more[place] != *own) {
                let unknown = || format!("unknown {what}");
                label += &format!(", {}", own.clone().unwrap_or_else(unknown));
            }
        }
        label
    }
}

/// The machines of some runs, in their order.
pub(super) fn machines(runs: &[Run]) -> Vec<Machine> {
    let mut machines: Vec<Machine> = Vec::new();
    for run in runs {
        if !machines.iter().any(|machine| machine.has(run)) {
            machines.push(Machine::of(run));
        }
    }
    let labels: Vec<String> =
        machines.iter().map(|machine| machine.label_among(&machines)).collect();
    for (machine, label) in machines.iter_mut().zip(labels) {
        machine.label = label;
    }
    machines
}

/// What is known of each machine and its settings.
pub(super) fn environments(runs: &[Run]) -> Sheet {
    let machines = machines(runs);
    let facts: Vec<Vec<(String, String)>> = machines
        .iter()
        .map(|machine| {
            let own = runs.iter().filter(|run| machine.has(run));
            own.flat_map(Run::facts).collect()
        })
        .collect();
    // What files configured is not the machine's.
    let own = |name: &&String| !name.starts_with("configuration.");
    let names: BTreeSet<&String> =
        facts.iter().flatten().map(|(name, _)| name).filter(own).collect();
    let value = |facts: &[(String, String)], name: &str| {
        let own = facts.iter().filter(|(other, _)| other == name);
        let values: BTreeSet<&str> = own.map(|(_, value)| value.as_str()).collect();
        match values.len() {
            count if count > MOST => range(&values).unwrap_or_else(|| format!("{count} values")),
            _ => values.into_iter().collect::<Vec<_>>().join("; "),
        }
    };
    let rows = names.into_iter().map(|name| {
        let values = facts.iter().map(|facts| value(facts, name));
        std::iter::once(name.clone()).chain(values).collect::<Vec<String>>()
    });
    let rows = rows.collect();
    let labels = machines.into_iter().map(|machine| machine.label);
    let header = std::iter::once("machine".to_owned()).chain(labels).collect();
    Sheet { title: "What was measured on".into(), header, rows, notes: Vec::new() }
}

/// The least and the most, where all are numbers.
fn range(values: &BTreeSet<&str>) -> Option<String> {
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
    let numbers = Samples(numbers?);
    Some(format!("{} to {}", numbers.min(), numbers.max()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::page::tests::run;

    #[test]
    fn machines_are_told_apart_by_no_more_than_it_takes() {
        let of = |cpu: &str, nodes: usize, product: &str, kernel: &str| {
            let mut run = run(cpu, json!([]));
            run.environment.insert("numa".into(), vec!["node"; nodes].into());
            run.environment.insert("product".into(), product.into());
            run.environment.insert("kernel".into(), kernel.into());
            run
        };
        let labels = |runs: &[&Run]| -> Vec<String> {
            let runs: Vec<Run> = runs.iter().map(|run| (*run).clone()).collect();
            let machines = machines(&runs);
            for run in &runs {
                assert_eq!(machines.iter().filter(|machine| machine.has(run)).count(), 1);
            }
            machines.into_iter().map(|machine| machine.label).collect()
        };
        let xeon = of("Xeon", 1, "Dell", "6.1");
        let epyc = of("EPYC", 2, "HP", "6.12");
        assert_eq!(labels(&[&xeon, &epyc, &xeon]), ["Xeon", "EPYC"]);
        let nodes = of("Xeon", 2, "Dell", "6.1");
        assert_eq!(labels(&[&xeon, &nodes]), ["Xeon, 1 NUMA node", "Xeon, 2 NUMA nodes"]);
        let kernel = of("Xeon", 1, "Dell", "6.12");
        let three = ["Xeon, Linux 6.12", "EPYC", "Xeon, Linux 6.1"];
        assert_eq!(labels(&[&kernel, &epyc, &xeon]), three);
        let server = of("Xeon", 1, "HP", "6.12");
        let all = ["Xeon, Dell, Linux 6.1", "Xeon, HP, Linux 6.12"];
        assert_eq!(labels(&[&xeon, &server]), all);
        let unknown = of("Xeon", 1, "", "6.1");
        assert_eq!(labels(&[&xeon, &unknown]), ["Xeon, Dell", "Xeon, unknown server"]);
    }

    #[test]
    fn what_differs_from_run_to_run_is_a_range() {
        let of = |steal: Value, command: &str| {
            let mut run = run("Xeon", json!([]));
            run.environment.insert("stolen".into(), steal);
            run.environment.insert("command".into(), command.into());
            run
        };
        let all = [(json!(0.5), "a"), (json!(0.1), "b"), (json!(2), "c"), (json!(1), "d")];
        let runs = all.map(|(steal, command)| of(steal, command));
        let value = |runs: &[Run], name: &str| {
            let sheet = environments(runs);
            assert_eq!(sheet.header, ["machine", "Xeon"]);
            sheet.rows.iter().find(|row| row[0] == name).unwrap()[1].clone()
        };
        assert_eq!(value(&runs, "stolen"), "0.1 to 2");
        assert_eq!(value(&runs, "command"), "4 values");
        assert_eq!(value(&runs[..2], "command"), "a; b");
    }

    #[test]
    fn what_was_configured_is_none_of_the_machines_facts() {
        let mut run = run("Xeon", json!([]));
        run.environment.insert("configuration".into(), json!({"x": {"trials": {"seconds": 2}}}));
        let sheet = environments(&[run]);
        assert_eq!(sheet.rows, [["cpu", "Xeon"]]);
    }
}
