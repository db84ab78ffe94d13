//! The machines, side by side.

use std::collections::BTreeSet;

use super::sheet::Sheet;
use crate::archive::Run;
use crate::results::Samples;

/// So many different values of one fact are named; where there are more, only their range, or how many.
const MOST: usize = 3;

/// The machines of some runs, in their order.
pub(super) fn machines(runs: &[Run]) -> Vec<String> {
    let mut machines: Vec<String> = Vec::new();
    for machine in runs.iter().map(Run::machine) {
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    machines
}

/// What is known of each machine and its settings.
pub(super) fn environments(runs: &[Run]) -> Sheet {
    let machines = machines(runs);
    let facts: Vec<Vec<(String, String)>> = machines
        .iter()
        .map(|machine| {
            let own = runs.iter().filter(|run| run.machine() == *machine);
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
    let header = std::iter::once("machine".to_owned()).chain(machines).collect();
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
