//! The machines, side by side.

use std::collections::BTreeSet;

use super::sheet::Sheet;
use crate::archive::Run;

/// So many different values of one fact are named; where there are more, only how many.
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
    let names: BTreeSet<&String> = facts.iter().flatten().map(|(name, _)| name).collect();
    let value = |facts: &[(String, String)], name: &str| {
        let own = facts.iter().filter(|(other, _)| other == name);
        let values: BTreeSet<&str> = own.map(|(_, value)| value.as_str()).collect();
        match values.len() {
            count if count > MOST => format!("{count} values, one for each run"),
            _ => values.into_iter().collect::<Vec<_>>().join("; "),
        }
    };
    let rows = names.into_iter().map(|name| {
        let values = facts.iter().map(|facts| value(facts, name));
        std::iter::once(name.clone()).chain(values).collect::<Vec<String>>()
    });
    let rows = rows.collect();
    let header = std::iter::once("machine".to_owned()).chain(machines).collect();
    Sheet { title: "What was measured on".into(), header, rows }
}
