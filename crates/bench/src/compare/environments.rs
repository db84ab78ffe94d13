//! What differs between the machines, or their settings, of two sides.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::Run;

/// What differs from run to run without meaning anything, or shows in the results anyway.
const PASSING: &[&str] =
    &["began.", "ended.", "command", "stolen", "others", "rounds.", "disturbed"];

/// What files said, such as a scenario of `rfc2544`.
const CONFIGURATION: &str = "configuration.";

/// Facts whose values differ between the sides: `kernel: 6.1.0 against 6.12.0`.
pub(super) fn differences(before: &[Run], after: &[Run]) -> Vec<String> {
    let (before, after) = (facts(before), facts(after));
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    // What only one side has measured, or has not told, needs no words for each of its keys.
    let is_known = |name: &&String| {
        !name.starts_with(CONFIGURATION) || before.contains_key(*name) && after.contains_key(*name)
    };
    let names = names.into_iter().filter(is_known);
    let differing = names.filter(|name| before.get(*name) != after.get(*name));
    let text = |values: Option<&BTreeSet<String>>| {
        let values = values.into_iter().flatten().cloned();
        let values = values.collect::<Vec<_>>().join(" or ");
        if values.is_empty() { "not known".into() } else { values }
    };
    differing
        .map(|name| format!("{name}: {} against {}", text(before.get(name)), text(after.get(name))))
        .collect()
}

fn facts(runs: &[Run]) -> BTreeMap<String, BTreeSet<String>> {
    let mut facts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(Run::facts) {
        if !PASSING.iter().any(|passing| name.starts_with(passing)) {
            facts.entry(name).or_default().insert(value);
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;

    #[test]
    fn only_what_differs_is_named() {
        let with = |kernel: &str, command: &str| {
            let mut run = run("x", Vec::new());
            run.environment.insert("kernel".into(), kernel.into());
            run.environment.insert("command".into(), command.into());
            run
        };
        assert!(differences(&[with("6.1", "a")], &[with("6.1", "b")]).is_empty());
        let (before, after) = ([with("6.1", "a"), with("6.6", "a")], [with("6.12", "a")]);
        assert_eq!(differences(&before, &after), ["kernel: 6.1 or 6.6 against 6.12"]);
        assert_eq!(
            differences(&before[..1], &[run("x", Vec::new())]),
            ["kernel: 6.1 against not known"]
        );
    }

    #[test]
    fn what_was_configured_otherwise_is_named() {
        let with = |scenario: &str, seconds: u64| {
            let mut run = run("x", Vec::new());
            let trials = serde_json::json!({scenario: {"trials": {"seconds": seconds, "loss": 0}}});
            run.environment.insert("configuration".into(), trials);
            [run]
        };
        let expected = ["configuration.first look.trials.seconds: 60 against 2"];
        assert_eq!(differences(&with("first look", 60), &with("first look", 2)), expected);
        assert!(differences(&with("first look", 60), &with("jumbo", 2)).is_empty());
        assert!(differences(&with("first look", 60), &[run("x", Vec::new())]).is_empty());
    }
}
