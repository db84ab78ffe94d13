//! Findings as text of 80 columns, and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use doctor::{Finding, Setup, State, kernel_parameters};
use serde::Serialize;

use super::known::Known;
use crate::failure::Failure;
use crate::output::{self, printable};

/// Columns of a terminal that everybody has.
const WIDTH: usize = 80;

/// Where the second column of a finding's lines begins.
const INDENT: usize = 12;

/// Every state, the most urgent first.
const STATES: [State; 6] = [
    State::Bad,
    State::CouldBeBetter,
    State::Choice,
    State::Good,
    State::CannotBeTold,
    State::DoesNotApply,
];

#[derive(Serialize)]
struct Report<'a> {
    machine: Host<'a>,
    setup: &'a Setup,
    findings: &'a [Finding],
    /// What all complaints ask of the kernel's command line.
    kernel_parameters: String,
}

#[derive(Serialize)]
struct Host<'a> {
    processor: Option<&'a str>,
    kernel: Option<&'a str>,
    cores: usize,
    nodes: usize,
    r#virtual: bool,
}

impl<'a> Host<'a> {
    fn of(known: &'a Known) -> Self {
        let machine = &known.machine;
        Self {
            processor: machine.kernel.processor.as_deref(),
            kernel: machine.kernel.release.as_deref().ok(),
            cores: machine.topology.cores.len(),
            nodes: machine.topology.nodes.len(),
            r#virtual: machine.is_virtual(),
        }
    }
}

pub(super) fn json(known: &Known, findings: &[Finding]) -> Result<(), Failure> {
    let kernel_parameters = kernel_parameters(findings);
    output::json(&Report {
        machine: Host::of(known),
        setup: &known.setup,
        findings,
        kernel_parameters,
    })
}

pub(super) fn text(known: &Known, findings: &[Finding], verbose: bool) -> Result<(), Failure> {
    let mut text = head(known);
    let mut group = None;
    for finding in findings {
        if group != Some(finding.group) {
            group = Some(finding.group);
            let _ = writeln!(text, "\n{}", finding.group.heading());
        }
        text.push_str(&of(finding, verbose));
    }
    text.push_str(&end(findings));
    output::line(text)
}

/// The machine, and what is assumed of the data plane.
fn head(known: &Known) -> String {
    let host = Host::of(known);
    let count = |number: usize, what: &str| {
        format!("{number} {what}{}", if number == 1 { "" } else { "s" })
    };
    let words = [
        host.processor.unwrap_or("unknown processor").to_owned(),
        count(host.cores, "core"),
        count(host.nodes, "NUMA node"),
        if host.r#virtual { "virtual machine" } else { "bare metal" }.to_owned(),
        format!("Linux {}", host.kernel.unwrap_or("of unknown release")),
    ];
    let setup = &known.setup;
    format!(
        "{}{}",
        wrapped("Machine", &words.join(", ")),
        wrapped("Workers", &format!("on {} ({})", setup.workers.named(), setup.origin))
    )
}

/// One finding: a line for what is good or beside the point, everything for the rest.
fn of(finding: &Finding, verbose: bool) -> String {
    let subject =
        finding.subject.as_ref().map(|subject| format!(", {subject}")).unwrap_or_default();
    let title = format!("{}{subject}", finding.name);
    let mut text = format!("  {}: {}\n", printable(&title), finding.state.words());
    let mut add =
        |label: &str, words: &str| text.push_str(&wrapped(&format!("    {label}"), words));
    add("is", &finding.is);
    if let Some(better) = &finding.better {
        add("better", better);
    }
    let weighs = finding.state.is_complaint() || finding.state == State::Choice;
    if weighs || verbose {
        add("why", finding.why);
        add("source", finding.source);
    }
    if verbose || finding.state != State::Good {
        for remedy in &finding.remedies {
            let (label, words) = remedy.shown();
            // Commands and parameters are copied: in one piece, on a line of their own when they are long.
            let _ = writeln!(
                text,
                "    {label}:{}{}",
                if words.len() + label.len() + 6 > WIDTH { "\n      " } else { " " },
                printable(words)
            );
        }
    }
    text
}

/// How many of each, and what goes to the kernel's command line.
fn end(findings: &[Finding]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.state.words()).or_default() += 1;
    }
    let counted = STATES.iter().filter_map(|state| {
        let count = counts.get(state.words())?;
        Some(format!("{count} {}", state.words()))
    });
    let mut text = format!("\n{}\n", counted.collect::<Vec<_>>().join(", "));
    let parameters = kernel_parameters(findings);
    if !parameters.is_empty() {
        let _ = write!(
            text,
            "\nAll of them on the kernel's command line:\n  {}\n",
            printable(&parameters)
        );
    }
    let changes: usize = findings.iter().map(|finding| finding.changes.len()).sum();
    if changes > 0 {
        let _ = write!(
            text,
            "\nmillrace doctor --apply makes the changes that can be undone: {changes}\n"
        );
    }
    text
}

/// A label, and words beside it, wrapped at 80 columns.
fn wrapped(label: &str, words: &str) -> String {
    let mut text = String::new();
    let mut line = format!("{label:<INDENT$}");
    let mut empty = true;
    for word in printable(words).split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(INDENT);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_stay_whole_and_lines_short() {
        let words = format!("{} {} end", "a ".repeat(100).trim_end(), "/long".repeat(30));
        let text = wrapped("    is", &words);
        assert!(text.starts_with("    is      a a a"));
        assert!(text.contains(&format!("            {}\n", "/long".repeat(30))));
        let others = text.lines().filter(|line| !line.contains("/long"));
        assert!(others.clone().count() > 2);
        assert!(others.clone().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(
            text.split_whitespace().skip(1).collect::<Vec<_>>(),
            words.split(' ').collect::<Vec<_>>()
        );
    }
}
